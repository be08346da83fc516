"""Decides which parts of open messages are in memory and which are on disk only.

`CoreSettings.bodies_max` and its neighbours limit the memory. Below the limits a message is entirely in memory. Above them, large bodies are
unloaded first, then all bodies that are not needed now; and fresh waiting messages become 40 bytes each in the tail of their line
(core/state/tail). Only what has a record in the journal is unloaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from dragoman.limits import INLINE_BODY_SIZE_MAX, MESSAGE_SIZE, REFILL_COUNT, REFILL_SIZE, TAIL_ENTRY_SIZE
from dragoman.model.message import Message

if TYPE_CHECKING:
    from dragoman.core.state.lines import Lane, Line
    from dragoman.core.state.queue import Queue
    from dragoman.core.state.state import State


def is_crowded(state: State) -> bool:
    """Whether fresh waiting messages go to disk only."""
    return state.bodies_size > state.settings.bodies_max or len(state.messages) > state.settings.objects_max


def lighten(state: State, m: Message) -> None:
    """Unload a body that is not needed now if memory is short: a large body sooner than a small one."""
    size = state.bodies_size
    settings = state.settings
    if size > settings.large_bodies_max and (size > settings.bodies_max or m.body_size > INLINE_BODY_SIZE_MAX):
        state.unload(m)


def refill(state: State, queue: Queue, lane: Lane, line: Line) -> None:
    """Load the next messages of a line from disk: as many as the limits allow, at least the one that is about to be leased. Small bodies are
    loaded with them. A message with a large body ends the batch, because verifying its CRC takes long; the body itself is read in steps when
    the message is next (core/dispatch)."""
    tail = line.tail
    settings = state.settings
    count = min(REFILL_COUNT, lane.head_max(settings.head_max), max(settings.objects_max - len(state.messages), 1))
    size = min(REFILL_SIZE, max(settings.bodies_max - state.bodies_size, 1))
    while count > 0 and size > 0:
        at = tail.pop()
        if at < 0:
            break
        m = state.kept.read_row(queue, lane, line, at, True)
        state.index(m)
        line.size -= 1
        line.push_head(m)
        count -= 1
        size = size - m.body_size if m.is_loaded else 0
    tail.cut()


def memory_size(state: State) -> i64:
    """Estimated memory of all open messages: bodies, objects, and 40 bytes for each that is on disk only."""
    objects: i64 = len(state.messages)
    open_messages: i64 = i64(state.accepted) - i64(state.settled)
    return i64(state.bodies_size) + objects * (MESSAGE_SIZE - TAIL_ENTRY_SIZE) + open_messages * TAIL_ENTRY_SIZE
