"""Operator commands on queues and quarantined messages."""

from __future__ import annotations

from dragoman.core.core import Core
from dragoman.core.lifecycle import CANCEL
from dragoman.model.enums import DRAINS, NOT_FOUND, PURGED, TAKEN, WRONG_STATE
from dragoman.model.facts.layout import PAUSED, RESUMED
from dragoman.model.message import IN_DELAYED, Message


def requeue(core: Core, message: Message) -> int:
    """Retry a quarantined message (its client was answered already and gets no second answer), or end the backoff of one that waits for
    its next attempt."""
    is_in_line = is_backing_off(message)
    if message.number not in core.state.quarantine and not is_in_line:
        return WRONG_STATE
    queue = core.state.queues_by_no[message.queue_no]
    core.log.requeued(message, is_in_line)
    core.state.on_requeued(message, queue)
    core.dispatch.lease_waiting(queue)
    return TAKEN


def is_backing_off(message: Message) -> bool:
    """Whether it is delayed by the backoff of its last attempt, not by its client."""
    return message.where == IN_DELAYED and message.attempt > 0


def set_paused(core: Core, name: bytes, is_paused: bool) -> int:
    """Pause or resume a queue. A paused queue accepts messages and leases none. Survives restarts."""
    return switch(core, name, is_paused, False)


def set_draining(core: Core, name: bytes) -> int:
    """Drain a queue: it leases what waits and accepts nothing until it is resumed. Survives restarts; ends a pause."""
    return switch(core, name, False, True)


def switch(core: Core, name: bytes, is_paused: bool, is_draining: bool) -> int:
    queue = core.state.queues.get(name)
    if queue is None:
        return NOT_FOUND
    if queue.is_paused != is_paused or queue.is_draining != is_draining:
        core.log.numbered(PAUSED if is_paused else RESUMED, queue.number, DRAINS if is_draining else 0, b"")
        core.state.on_paused(queue, is_paused, is_draining)
        core.dispatch.lease_waiting(
            queue
        )  # by rank and load: workers are in the idle lines even while a queue is paused
    return TAKEN


def purge(core: Core, name: bytes, most: int) -> int:
    """Cancel up to `most` waiting messages of a queue, fewer if too many bytes had to be read from disk; returns how many."""
    queue = core.state.queues.get(name)
    if queue is None:
        return 0
    count = 0
    stored = core.state.stored
    cost_max = stored.read_cost + core.settings.load_step_size
    while count < most and queue.waiting > 0 and stored.read_cost < cost_max:
        message = core.dispatch.pop_lanes(queue, queue.lanes, False)
        for group in queue.unfit:
            if message is None:
                message = core.dispatch.pop_lanes(queue, group.lanes, False)
        assert message is not None, "a queue that counts waiting messages yields them"
        core.settling.close(message, CANCEL, PURGED, b"", None)
        count += 1
    return count
