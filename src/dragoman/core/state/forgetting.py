"""Forgets unused queues: peers choose the names, and each queue costs memory, a line in every list and one of QUEUES_MAX.

A queue may be forgotten when nothing refers to it: no open message, no worker, no schedule, no dedupe key that has not expired, no pause or
drain. Its number is never reused, so readers of facts can tell a later queue of the same name from it.
"""

from __future__ import annotations

from typing import final

from dragoman.core.state.queue import Queue
from dragoman.core.state.state import State
from dragoman.core.tallies import Tallies
from dragoman.limits import FORGET_AFTER_START_NS, QUEUES_FORGOTTEN_STEP, QUEUES_LOOKED_AT_STEP
from dragoman.model.enums import BY_OPERATOR, NO_REASON
from dragoman.model.facts.layout import QUEUE_FORGOTTEN
from dragoman.model.facts.records import FactLog
from dragoman.model.phrases import count_of
from dragoman.model.units import SECOND_NS


@final
class Forgetting:
    """Checks up to QUEUES_LOOKED_AT_STEP queues per sweep, all of them in turn."""

    def __init__(self, state: State, log: FactLog, tallies: Tallies) -> None:
        self.state = state
        self.log = log
        self.tallies = tallies
        self.to_look_at: list[int] = []  # numbers of the queues still to check in this round

    def sweep(self, now_ns: int) -> None:
        state = self.state
        forget_ns = state.settings.forget_ns
        # After a start, give workers time to reconnect, however long the broker was down.
        if forget_ns == 0 or now_ns - state.started_ns < min(forget_ns, FORGET_AFTER_START_NS):
            return
        if not self.to_look_at:
            self.to_look_at = list(state.queues_by_no)
        forgotten = 0
        for _ in range(min(QUEUES_LOOKED_AT_STEP, len(self.to_look_at))):
            queue = state.queues_by_no.get(self.to_look_at.pop())
            if queue is None or now_ns - unused_since(state, queue) < forget_ns or use_of(queue, now_ns):
                continue
            self.forget(queue, NO_REASON)
            forgotten += 1
            if forgotten >= QUEUES_FORGOTTEN_STEP:
                return

    def forget_by_operator(self, name: bytes) -> str:
        """Forget a queue, however recently it was used; if something refers to it, returns what instead."""
        queue = self.state.queues[name]
        use = use_of(queue, self.state.now_ns)
        if not use:
            self.forget(queue, BY_OPERATOR)
        return use

    def forget(self, queue: Queue, reason: int) -> None:
        self.log.numbered(QUEUE_FORGOTTEN, queue.number, reason, queue.name)
        on_queue_forgotten(self.state, queue)
        self.tallies.forget(queue)


def on_queue_forgotten(state: State, queue: Queue) -> None:
    """The mutator. The queue stays if it still has messages or schedules: a salvage may have lost the facts that ended them."""
    if queue.waiting + queue.delayed + queue.leased + queue.quarantined + queue.schedules > 0:
        return
    del state.queues_by_no[queue.number]
    state.recent = state.recent_named = None
    state.recent_name = b""
    if state.queues.get(queue.name) is queue:
        del state.queues[queue.name]
    state.serving_history.left.pop(queue.number, None)
    state.forgotten.done += queue.done
    state.forgotten.failed += queue.failed
    state.forgotten.released += queue.released


def unused_since(state: State, queue: Queue) -> int:
    left = state.serving_history.left.get(queue.number)
    return max(queue.used_ns, left[0]) if left is not None else queue.used_ns


def use_of(queue: Queue, now_ns: int) -> str:
    """What still uses a queue, as text; empty: nothing."""
    for count, noun, how in (
        (queue.waiting, "message", "in it waiting for a worker"),
        (queue.leased, "message", "of it in the hands of workers"),
        (queue.delayed, "message", "in it delayed"),
        (queue.quarantined, "message", "of it in quarantine"),
        (len(queue.servings), "worker", "serving it"),
        (queue.schedules, "schedule", "making messages for it"),
    ):
        if count > 0:
            return f"{count_of(count, noun)} {how}"
    if queue.is_paused or queue.is_draining:
        return "it is paused" if queue.is_paused else "it is being drained"
    if queue.dedupe:
        until_ns = max([known[1] for known in queue.dedupe.values()])
        if until_ns > now_ns:
            return f"its dedupe keys count for another {(until_ns - now_ns) // SECOND_NS + 1} s"
    return ""
