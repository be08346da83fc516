"""What an operator may do to queues and quarantined messages."""

from __future__ import annotations

from dragoman.core.core import Core
from dragoman.core.lifecycle import CANCEL
from dragoman.model.message import IN_DELAYED, Message
from dragoman.model.records import PAUSED, RESUMED
from dragoman.model.words import DRAINS, NOT_FOUND, PURGED, TAKEN, WRONG_STATE


def requeue(core: Core, message: Message) -> int:
    """Try a quarantined message once more; its client has had its answer and gets no second one. One that waits for its next attempt
    need not wait any longer."""
    is_in_line = is_backing_off(message)
    if message.number not in core.state.quarantine and not is_in_line:
        return WRONG_STATE
    queue = core.state.queues_by_no[message.queue_no]
    core.log.requeued(message, is_in_line)
    core.state.on_requeued(message, queue)
    core.dispatch.drain(queue)
    return TAKEN


def is_backing_off(message: Message) -> bool:
    """Whether it is delayed by how its last attempt ended, not because its client asked for it."""
    return message.where == IN_DELAYED and message.attempt > 0


def set_paused(core: Core, name: bytes, is_paused: bool) -> int:
    """A paused queue accepts and keeps; nothing of it is given to workers. Survives restarts."""
    return switch(core, name, is_paused, False)


def set_draining(core: Core, name: bytes) -> int:
    """A draining queue gives out what waits and accepts nothing, until it is resumed. Survives restarts; ends a pause."""
    return switch(core, name, False, True)


def switch(core: Core, name: bytes, is_paused: bool, is_draining: bool) -> int:
    queue = core.state.queues.get(name)
    if queue is None:
        return NOT_FOUND
    if queue.is_paused != is_paused or queue.is_draining != is_draining:
        core.log.numbered(PAUSED if is_paused else RESUMED, queue.number, DRAINS if is_draining else 0, b"")
        core.state.on_paused(queue, is_paused, is_draining)
        core.dispatch.drain(queue)  # by rank and load: free slots stand in the idle lines, paused or not
    return TAKEN


def purge(core: Core, name: bytes, most: int) -> int:
    """Cancel up to `most` waiting messages of a queue; returns how many."""
    queue = core.state.queues.get(name)
    if queue is None:
        return 0
    count = 0
    while count < most and queue.waiting > 0:
        message = core.dispatch.pop_lanes(queue, queue.lanes)
        for group in queue.unfit:
            if message is None:
                message = core.dispatch.pop_lanes(queue, group.lanes)
        assert message is not None, "a queue that counts waiting messages yields them"
        core.settling.close(message, CANCEL, PURGED, b"", None)
        count += 1
    return count
