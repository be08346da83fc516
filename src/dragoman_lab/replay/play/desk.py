"""Operator actions of a replay: changes that reach a core without a connection, each made as the admin socket makes it.

`put_past`, `give` and `go_on` set up what was open when the story begins: they write the facts that recovery would read.
"""

from __future__ import annotations

from typing import Any

from dragoman.core import operator
from dragoman.core.core import Core
from dragoman.core.lifecycle import WAITING
from dragoman.model.facts.layout import NO_DIALECT
from dragoman.model.message import NOWHERE, Message
from dragoman.model.units import SECOND_NS
from dragoman.model.words import HANDOVER_WANTED, INTERNAL, REASON_NAMES, TIMED_OUT, WORKER_LOST
from dragoman_lab.replay.tables import Asked


def submit(core: Core, asked: Asked) -> None:
    """Submit a message of a due schedule. The schedule itself is not part of the story."""
    m = Message(INTERNAL, asked.queue, b"", asked.body)
    m.headers, m.flags, m.priority, m.retries_left = asked.headers, asked.flags, asked.priority, asked.retries
    m.timeout_ns = int(asked.timeout_s * SECOND_NS)
    m.expires_ns = core.now_ns + int(asked.expires_s * SECOND_NS) if asked.expires_s else 0
    core.submit(m)


def cancel(core: Core, number: int, reason: str) -> None:
    message = core.state.take(number)
    if message is not None:
        core.cancel(message, REASON_NAMES.index(reason))


def requeue(core: Core, number: int) -> None:
    message = core.state.take(number)
    if message is not None:
        operator.requeue(core, message)


def set_paused(core: Core, queue: str, is_paused: bool) -> None:
    core.roster.queue_of(queue.encode())
    operator.set_paused(core, queue.encode(), is_paused)


def set_draining(core: Core, queue: str) -> None:
    core.roster.queue_of(queue.encode())
    operator.set_draining(core, queue.encode())


def lose(core: Core, worker_no: int, reason: str) -> None:
    peer = core.workers.get(worker_no)
    if peer is not None:
        core.lose(peer, REASON_NAMES.index(reason))


def put_past(core: Core, number: int, past: dict[str, Any]) -> None:
    """Set up a message's earlier attempts: `attempts`, how many of them were `deaths` of workers, `retries_left`, `due_s` (from now),
    `handed_over` (its client was notified that a worker has it), `quarantined` (the reason)."""
    m = core.state.take(number)
    if (
        m is None
    ):  # it expired before the story begins, which the broker of the story was too slow to see: its life is left out
        return
    queue = core.state.queues_by_no[m.queue_no]
    attempts, deaths = past["attempts"], past.get("deaths", 0)
    due_ns = core.now_ns + int(past["due_s"] * SECOND_NS) if "due_s" in past else 0
    for attempt in range(attempts):
        worker_no = core.state.take_number()
        is_death = attempt < deaths
        core.log.leased(m, worker_no)
        core.state.on_leased(m, queue, worker_no)
        if attempt == attempts - 1 and "quarantined" in past:
            reason = REASON_NAMES.index(past["quarantined"])
            core.log.quarantined(m, worker_no, NO_DIALECT, reason, worker_no if is_death else 0)
            core.state.on_quarantined(m, queue, reason, worker_no if is_death else 0, b"")
            return
        reason = WORKER_LOST if is_death else TIMED_OUT
        core.log.released(m, worker_no, NO_DIALECT, past["retries_left"], due_ns, reason, is_death)
        core.state.on_released(m, queue, past["retries_left"], due_ns, reason, worker_no if is_death else 0)
    m.is_handed_over = past.get("handed_over", False) and m.flags & HANDOVER_WANTED != 0


def give(core: Core, number: int, worker_no: int) -> None:
    """Lease a waiting message to a worker, regardless of the queue's order."""
    m, peer = core.state.take(number), core.workers.get(worker_no)
    if m is None or m.state != WAITING or peer is None:
        return
    peer.work.slots = max(peer.work.slots, 1)
    queue = core.state.queues_by_no[m.queue_no]
    if m.where != NOWHERE:
        core.state.unline(m, queue)
    core.state.ensure_body(m)
    core.dispatch.lease(m, queue, peer)


def open_gate(core: Core, worker_no: int) -> int:
    """Let a worker read again with one free slot; return the number of its other slots, which are withheld for now."""
    peer = core.workers.get(worker_no)
    if peer is None or not peer.is_blocked:
        return 0
    spare = max(peer.work.slots - 1, 0)
    peer.work.slots -= spare
    core.unblock(peer)
    return spare


def shut_gate(core: Core, worker_no: int, spare: int) -> None:
    """Stop the worker's reading again, and give back its withheld slots."""
    peer = core.workers.get(worker_no)
    if peer is not None:
        peer.is_blocked = True
        peer.work.slots += spare


def go_on(core: Core) -> None:
    core.dispatch.is_stopped = False
    for peer in list(core.workers.values()):
        core.dispatch.feed(peer)
