"""Reads a large body back from disk in steps, for the worker that will lease its message.

The message stays in its line meanwhile: it may be cancelled, expire, or be carried to another segment.
"""

from __future__ import annotations

from typing import final

from dragoman.core.state.queue import Queue
from dragoman.core.state.state import State
from dragoman.model.facts.record_load import RecordLoad
from dragoman.model.message import IN_FRESH, IN_RETURNED, Message
from dragoman.model.peer import Peer


@final
class BodyLoad:
    """The load of one message's body, and the worker it is for."""

    def __init__(self, m: Message, queue: Queue, peer: Peer) -> None:
        self.m = m
        self.queue = queue
        self.peer = peer
        self.place: int = 0  # the record's reference when the current read began
        self.source: RecordLoad | None = None

    def step(self, state: State, size: int) -> bool:
        """Read the next `size` bytes; True when the message has its body. Raises `RecordDamaged`."""
        m = self.m
        kept = state.kept
        source = self.source
        if source is None or m.place != self.place:  # the record was carried meanwhile: its old segment may be deleted
            source = kept.begin(m.place, m.number, False)
            self.source = source
            self.place = m.place
        kept.effort += size
        if not source.step(size):
            return False
        kept.set_body(m, source.head, source.taken())
        state.bodies_size += m.body_size
        return True

    def is_wanted(self, state: State) -> bool:
        """Whether the message still waits in a line, without its body."""
        m = self.m
        is_in_line = m.where == IN_FRESH or m.where == IN_RETURNED
        return is_in_line and not m.is_loaded and state.messages.get(m.number) is m


def has_room(peer: Peer) -> bool:
    """Whether a worker can take a message now."""
    return peer.work.slots > 0 and not peer.work.is_leaving and not peer.is_blocked and len(peer.work.serves) > 0
