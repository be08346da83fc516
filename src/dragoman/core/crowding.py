"""What of the open messages is in memory, and what is on disk only.

Settings say how much of memory they may take (`CoreSettings.bodies_max` and its neighbours). While there is room, a message is whole in
memory. Then large bodies go, then all bodies that nobody needs at the moment, and fresh messages that wait are 40 bytes each in the far
end of their line (core/tail). Nothing goes that has no record in the journal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.limits import (
    INLINE_BODY_SIZE_MAX,
    MESSAGE_SIZE,
    REFILL_COUNT,
    REFILL_COUNT_CROWDED,
    REFILL_SIZE,
    REFILL_SIZE_CROWDED,
    TAIL_ENTRY_SIZE,
)
from dragoman.model.message import Message

if TYPE_CHECKING:
    from dragoman.core.lines import Lane, Line
    from dragoman.core.queue import Queue
    from dragoman.core.state import State


def is_crowded(state: State) -> bool:
    """Whether fresh messages that wait are to be on disk only."""
    return state.bodies_size > state.settings.bodies_max or len(state.messages) > state.settings.objects_max


def lighten(state: State, m: Message) -> None:
    """Unload a body that is not needed now if there is too little room for it: any body, and a large one sooner."""
    size = state.bodies_size
    settings = state.settings
    if size > settings.large_bodies_max and (size > settings.bodies_max or m.body_size > INLINE_BODY_SIZE_MAX):
        state.unload(m)


def refill(state: State, queue: Queue, lane: Lane, line: Line) -> None:
    """Bring the next messages of a line back from disk; the body comes along."""
    tail = line.tail
    crowded = is_crowded(state)
    count = min(REFILL_COUNT_CROWDED if crowded else REFILL_COUNT, lane.head_max(state.settings.head_max))
    size = REFILL_SIZE_CROWDED if crowded else REFILL_SIZE
    while count > 0 and size > 0:
        at = tail.pop()
        if at < 0:
            break
        m = state.kept.read_row(queue, lane, line, at, True)
        state.index(m)
        line.size -= 1
        line.push_head(m)
        count -= 1
        size -= m.body_size
    tail.cut()


def memory_size(state: State) -> int:
    """About what all open messages take of memory: bodies, objects, and the 40 bytes of those that are on disk only."""
    objects = len(state.messages)
    return state.bodies_size + objects * MESSAGE_SIZE + (state.accepted - state.settled - objects) * TAIL_ENTRY_SIZE
