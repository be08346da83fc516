"""The admin's questions, answered in the original's JSON."""

from __future__ import annotations

from typing import Final

import msgspec

from dragoman.dialects.emqp.dialect import EmqpDialect
from dragoman.dialects.emqp.jobs import error_value
from dragoman.dialects.emqp.words import ACK, REPLY, SHOW_SCHEDULERS, SHOW_WORKERS
from dragoman.dialects.session import Hub
from dragoman.model.exchange import Exchange
from dragoman.model.peer import Peer
from dragoman.model.units import SECOND_NS
from dragoman.model.words import BY_CLIENT, TAKEN

REMOTE_STOP_OFF: Final = "DISCONNECT does not stop this broker; emqp.remote_stop = true would allow it"


def answer(command: bytes, exchange: Exchange, emqp: EmqpDialect) -> bytes:
    if command == SHOW_WORKERS:
        return msgspec.json.encode(workers(exchange))
    if command == SHOW_SCHEDULERS:
        found = {shown(s): {"hb": seconds(s.last_sign_ns)} for s in emqp.schedulers.values()}
        return msgspec.json.encode({"connected_schedulers": found})
    return msgspec.json.encode(counts(exchange))


def state_of(client_id: bytes, exchange: Exchange) -> bytes:
    """The JSON of one request's state; settled ones are remembered for a while."""
    m = exchange.lookup(client_id)
    if m is None:
        return msgspec.json.encode({"state": exchange.settled_state(client_id)})
    queue = m.queue.decode("utf-8", "backslashreplace")
    return msgspec.json.encode({"state": exchange.state_name(m), "attempt": m.attempt, "queue": queue})


def cancel(client_id: bytes, exchange: Exchange) -> bytes:
    """End one request; says whether there was one to end."""
    m = exchange.lookup(client_id)
    return b"true" if m is not None and exchange.cancel(m, BY_CLIENT) == TAKEN else b"false"


def stop(message_id: bytes, hub: Hub, emqp: EmqpDialect) -> list[bytes]:
    """An admin's DISCONNECT: stop the broker where the setting allows it, else name the setting. The frames of the answer."""
    if not emqp.settings.remote_stop:
        return [REPLY, emqp.next_id(), error_value("REMOTE_STOP_OFF", REMOTE_STOP_OFF), message_id]
    hub.stop_requested = True
    return [ACK, emqp.next_id(), message_id]


def counts(exchange: Exchange) -> dict[str, dict[str, int]]:
    """Latencies are in milliseconds, from acceptance to the first lease, as the original counts them."""
    inflight: dict[str, int] = {}
    latency: dict[str, int] = {}
    latency_max: dict[str, int] = {}
    waiting: dict[str, int] = {}
    processed: dict[str, int] = {}
    for q in exchange.queue_counts():
        if q.leased:
            inflight[q.name] = q.leased
        if q.waiting:
            waiting[q.name] = q.waiting
        if q.settled:
            processed[q.name] = q.settled
            latency[q.name] = q.wait_mean_ms
            latency_max[q.name] = q.wait_max_ms
    return {
        "inflight_messages_by_queue": inflight,
        "latency_messages_by_queue": latency,
        "max_latency_messages_by_queue": latency_max,
        "waiting_messages_by_queue": waiting,
        "processed_messages_by_queue": processed,
        "processed_messages_by_worker": {shown(p): p.settled for p in exchange.all_workers()},
    }


def workers(exchange: Exchange) -> dict[str, object]:
    connected: dict[str, object] = {}
    queues: dict[str, list[list[object]]] = {}
    for peer in exchange.all_workers():
        name = shown(peer)
        served = [[s.weight, s.queue.decode("utf-8", "backslashreplace")] for s in peer.serves]
        connected[name] = {"queues": served, "hb": seconds(peer.last_sign_ns), "available_slots": peer.slots}
        for weight, queue in served:
            queues.setdefault(str(queue), []).append([weight, name])
    return {"connected_workers": connected, "connected_queues": queues}


def shown(peer: Peer) -> str:
    """An identity as text: the original's are uuids; a binary one is shown with escapes."""
    return peer.identity.decode("utf-8", "backslashreplace") or peer.remote


def seconds(instant_ns: int) -> float:
    return instant_ns / SECOND_NS
