"""Finds queues and workers that are stuck, and describes each in a sentence.

Each finding is true now; there is no history of alarms. What is too recent (a worker that has just joined, a message that has just
been accepted) is not reported.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.core.core import Core
from dragoman.core.queries.lookup import lane_size, worker_name
from dragoman.core.state.queue import Queue
from dragoman.core.tallies import oldest_ns
from dragoman.limits import FINDINGS_MAX, IDLE_NS_MAX, OLD_MESSAGE_NS
from dragoman.model.enums import REFUSAL_TEXTS, TAKEN, shown
from dragoman.model.peer import Peer
from dragoman.model.phrases import count_of, duration, number_text

KINDS: Final = [
    "refusing",
    "queue_without_worker",
    "paused_with_waiting",
    "old_message",
    "idle_worker",
    "blocked_worker",
]


@final
class Findings:
    """The findings; of each kind the first `FINDINGS_MAX`, so that no kind hides the others."""

    def __init__(self) -> None:
        self.found: list[dict[str, object]] = []
        self.counts: dict[str, int] = {}
        self.oldest: dict[int, int] = {}  # cache by queue_no: many workers may serve one queue

    def add(self, kind: str, queue: str, worker: str, line: str) -> None:
        assert kind in KINDS
        count = self.counts.get(kind, 0) + 1
        self.counts[kind] = count
        if count <= FINDINGS_MAX:
            self.found.append({"kind": kind, "queue": queue, "worker": worker, "line": line})

    def oldest_of(self, queue: Queue) -> int:
        found = self.oldest.get(queue.number, -1)
        if found < 0:
            found = oldest_ns(queue)
            self.oldest[queue.number] = found
        return found


def findings(core: Core) -> list[dict[str, object]]:
    """All findings of the core; the broker adds those about its child processes."""
    found = Findings()
    if core.refusing != TAKEN:
        found.add("refusing", "", "", f"new work is refused: {REFUSAL_TEXTS[core.refusing]}")
    if core.dispatch.is_stopped:
        return found.found  # the broker is stopping: nothing is meant to move
    for queue in core.state.queues_by_no.values():
        if queue.waiting > 0:
            look_at_queue(core, queue, found)
    for peer in core.workers.values():
        look_at_worker(core, peer, found)
    return found.found


def look_at_queue(core: Core, queue: Queue, found: Findings) -> None:
    name = shown(queue.name)
    if queue.is_paused:
        found.add("paused_with_waiting", name, "", f"queue `{name}` is paused with {queue.waiting} waiting")
        return
    if not queue.servings:
        found.add("queue_without_worker", name, "", f"queue `{name}` has {queue.waiting} waiting and no worker")
        return
    age_ns = core.now_ns - found.oldest_of(queue)
    if age_ns >= OLD_MESSAGE_NS:
        found.add(
            "old_message",
            name,
            "",
            f"queue `{name}` has {queue.waiting} waiting, the oldest for {duration(age_ns)}; "
            f"{count_of(len(queue.servings), 'worker')} there, {queue.leased} leased",
        )


def look_at_worker(core: Core, peer: Peer, found: Findings) -> None:
    quiet_ns = core.now_ns - max(peer.work.last_leased_ns, peer.joined_ns)
    if peer.work.is_leaving or quiet_ns < IDLE_NS_MAX:
        return
    queue = waiting_queue(core, peer, found)
    if queue is None:
        return
    name = shown(queue.name)
    worker = "w" + number_text(peer.number)
    label = f"worker {worker} ({worker_name(peer)})"
    took_nothing = f"took nothing for {duration(quiet_ns)}"
    if peer.is_blocked:
        line = f"{label} does not read what is sent to it and {took_nothing}; {queue.waiting} wait in `{name}`"
        found.add("blocked_worker", name, worker, line)
    elif peer.work.slots > 0:
        line = f"{label} has free slots and matching work in `{name}` but {took_nothing}"
        found.add("idle_worker", name, worker, line)
    elif not peer.work.leases:
        line = f"{label} has never said that it has room and {took_nothing}; {queue.waiting} wait in `{name}`"
        found.add("blocked_worker", name, worker, line)


def waiting_queue(core: Core, peer: Peer, found: Findings) -> Queue | None:
    """The first of a worker's queues with a message that has waited long and that the worker may take."""
    for serving in peer.work.serves:
        queue = core.state.queues_by_no[serving.queue_no]
        if queue.waiting == 0 or queue.is_paused or not serving.takes():
            continue
        if core.now_ns - found.oldest_of(queue) >= IDLE_NS_MAX and has_fit(queue, peer.body_constraint):
            return queue
    return None


def has_fit(queue: Queue, body_constraint: int) -> bool:
    """Whether any waiting message has not been turned down by workers of this body_constraint."""
    lanes = list(queue.lanes)
    for group in queue.unfit:
        if group.kinds & body_constraint == 0:
            lanes.extend(group.lanes)
    return any(lane_size(lane) > 0 for lane in lanes)
