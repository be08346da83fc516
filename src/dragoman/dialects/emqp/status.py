"""Answers an admin's queries in the original's JSON, and the queries for one request."""

from __future__ import annotations

from typing import Final

import msgspec

from dragoman.dialects.emqp.commands import ACK, REPLY, SHOW_SCHEDULERS, SHOW_WORKERS
from dragoman.dialects.emqp.dialect import EmqpDialect
from dragoman.dialects.emqp.jobs import error_value
from dragoman.dialects.session import Outboxes
from dragoman.model.enums import BY_CLIENT, TAKEN, shown
from dragoman.model.exchange import Exchange
from dragoman.model.peer import Peer
from dragoman.model.units import SECOND_NS

REMOTE_STOP_OFF: Final = "DISCONNECT does not stop this broker; emqp.remote_stop = true would allow it"


def answer(command: bytes, exchange: Exchange, emqp: EmqpDialect) -> bytes:
    if command == SHOW_WORKERS:
        return msgspec.json.encode(workers(exchange))
    if command == SHOW_SCHEDULERS:
        found = {identity_text(s): {"hb": s.last_sign_ns / SECOND_NS} for s in emqp.schedulers.values()}
        return msgspec.json.encode({"connected_schedulers": found})
    return msgspec.json.encode(counts(exchange))


def state_of(client_id: bytes, exchange: Exchange) -> bytes:
    """The state of one request as JSON; settled ones are remembered for a while."""
    m = exchange.lookup(client_id)
    if m is None:
        return msgspec.json.encode({"state": exchange.settled_state(client_id)})
    queue = shown(m.queue)
    return msgspec.json.encode({"state": exchange.state_name(m), "attempt": m.attempt, "queue": queue})


def cancel(client_id: bytes, exchange: Exchange) -> bytes:
    """Cancel one request; returns whether there was one to cancel."""
    m = exchange.lookup(client_id)
    return b"true" if m is not None and exchange.cancel(m, BY_CLIENT) == TAKEN else b"false"


def stop(message_id: bytes, outboxes: Outboxes, emqp: EmqpDialect) -> list[bytes]:
    """Handle an admin's DISCONNECT: stop the broker if the setting allows it, else name the setting. Returns the frames of the answer."""
    if not emqp.settings.remote_stop:
        return [REPLY, emqp.next_id(), error_value("REMOTE_STOP_OFF", REMOTE_STOP_OFF), message_id]
    outboxes.stop_requested = True
    return [ACK, emqp.next_id(), message_id]


def counts(exchange: Exchange) -> dict[str, dict[str, int]]:
    """Message counts by queue. Latencies are in milliseconds, from acceptance to the first lease, as in the original."""
    queues = exchange.queue_counts()
    settled = [q for q in queues if q.settled]
    return {
        "inflight_messages_by_queue": {q.name: q.leased for q in queues if q.leased},
        "latency_messages_by_queue": {q.name: q.wait_mean_ms for q in settled},
        "max_latency_messages_by_queue": {q.name: q.wait_max_ms for q in settled},
        "waiting_messages_by_queue": {q.name: q.waiting for q in queues if q.waiting},
        "processed_messages_by_queue": {q.name: q.settled for q in settled},
        "processed_messages_by_worker": {identity_text(p): p.work.settled for p in exchange.all_workers()},
    }


def workers(exchange: Exchange) -> dict[str, object]:
    connected: dict[str, object] = {}
    queues: dict[str, list[list[object]]] = {}
    for peer in exchange.all_workers():
        name = identity_text(peer)
        served = [[s.weight, shown(s.queue)] for s in peer.work.serves]
        connected[name] = {"queues": served, "hb": peer.last_sign_ns / SECOND_NS, "available_slots": peer.work.slots}
        for weight, queue in served:
            queues.setdefault(str(queue), []).append([weight, name])
    return {"connected_workers": connected, "connected_queues": queues}


def identity_text(peer: Peer) -> str:
    """An identity as text: the original's are uuids; a binary one is shown with escapes."""
    return shown(peer.identity) or peer.remote
