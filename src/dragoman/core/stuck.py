"""What does not move although it should: found by looking over queues and workers, said in sentences.

Nothing here waits for an alarm to grow old by itself: each finding is true now. What is too short to matter (a worker that joined a
moment ago, a message that came a moment ago) is none.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.core.core import Core
from dragoman.core.heads import oldest_ns
from dragoman.core.lookup import lane_size, worker_name
from dragoman.core.phrases import count_of, duration, number_text, shown
from dragoman.core.queue import Queue
from dragoman.limits import FINDINGS_MAX, IDLE_NS_MAX, OLD_MESSAGE_NS
from dragoman.model.peer import Peer
from dragoman.model.words import REFUSAL_TEXTS, TAKEN

REFUSING: Final = "refusing"
QUEUE_WITHOUT_WORKER: Final = "queue_without_worker"
PAUSED_WITH_WAITING: Final = "paused_with_waiting"
OLD_MESSAGE: Final = "old_message"
IDLE_WORKER: Final = "idle_worker"
BLOCKED_WORKER: Final = "blocked_worker"


@final
class Findings:
    """What was found; of each kind the first `FINDINGS_MAX`, so that none hides the others."""

    def __init__(self) -> None:
        self.found: list[dict[str, object]] = []
        self.counts: dict[str, int] = {}
        self.oldest: dict[int, int] = {}  # by queue_no: many workers may serve one queue

    def add(self, kind: str, queue: str, worker: str, line: str) -> None:
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
    """Everything the core can see; the broker adds what it knows of its children."""
    found = Findings()
    if core.refusing != TAKEN:
        found.add(REFUSING, "", "", f"new work is refused: {REFUSAL_TEXTS[core.refusing]}")
    if core.dispatch.is_stopped:
        return found.found  # it is being stopped: nothing is to move
    for queue in core.state.queues_by_no.values():
        if queue.waiting > 0:
            look_at_queue(core, queue, found)
    for peer in core.workers.values():
        look_at_worker(core, peer, found)
    return found.found


def look_at_queue(core: Core, queue: Queue, found: Findings) -> None:
    name = shown(queue.name)
    if queue.is_paused:
        found.add(PAUSED_WITH_WAITING, name, "", f"queue `{name}` is paused with {queue.waiting} waiting")
        return
    if not queue.servings:
        found.add(QUEUE_WITHOUT_WORKER, name, "", f"queue `{name}` has {queue.waiting} waiting and no worker")
        return
    age_ns = core.now_ns - found.oldest_of(queue)
    if age_ns >= OLD_MESSAGE_NS:
        found.add(
            OLD_MESSAGE,
            name,
            "",
            f"queue `{name}` has {queue.waiting} waiting, the oldest for {duration(age_ns)}; "
            f"{count_of(len(queue.servings), 'worker')} there, {queue.leased} leased",
        )


def look_at_worker(core: Core, peer: Peer, found: Findings) -> None:
    quiet_ns = core.now_ns - max(peer.last_leased_ns, peer.joined_ns)
    if peer.is_leaving or quiet_ns < IDLE_NS_MAX:
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
        found.add(BLOCKED_WORKER, name, worker, line)
    elif peer.slots > 0:
        line = f"{label} has free slots and matching work in `{name}` but {took_nothing}"
        found.add(IDLE_WORKER, name, worker, line)
    elif not peer.held:
        line = f"{label} has never said that it has room and {took_nothing}; {queue.waiting} wait in `{name}`"
        found.add(BLOCKED_WORKER, name, worker, line)


def waiting_queue(core: Core, peer: Peer, found: Findings) -> Queue | None:
    """The first of a worker's queues in which something has waited for long that may be given to it."""
    for serving in peer.serves:
        queue = core.state.queues_by_no[serving.queue_no]
        if queue.waiting == 0 or queue.is_paused or not serving.takes():
            continue
        if core.now_ns - found.oldest_of(queue) >= IDLE_NS_MAX and has_fit(queue, peer.pickiness):
            return queue
    return None


def has_fit(queue: Queue, pickiness: int) -> bool:
    """Whether anything waits that workers of this kind have not turned down."""
    for lane in queue.lanes:
        if lane_size(lane) > 0:
            return True
    for group in queue.unfit:
        if group.kinds & pickiness == 0:
            for lane in group.lanes:
                if lane_size(lane) > 0:
                    return True
    return False
