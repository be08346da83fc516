"""The requests that one node holds, by their ids on its connection.

An id stays taken until the node answers it or its connection ends, whatever happens to the message in between. An id whose message was
withdrawn is *stale*: its answer belongs to the old message, never to a newer one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from mypy_extensions import i64

from dragoman.dialects.rq.ids import FreeIds
from dragoman.model.message import Message

if TYPE_CHECKING:
    from dragoman.dialects.rq.consumer import RqConsumer


@final
class Stale:
    """An id whose message was withdrawn: the message, its consumer, and whether DELIVERED is the only answer to expect."""

    def __init__(self, number: int, consumer: RqConsumer, is_noreply: bool) -> None:
        self.number = number
        self.consumer = consumer
        self.is_noreply = is_noreply


@final
class HeldIds:
    """The taken ids of one connection, for all its consumers."""

    def __init__(self) -> None:
        self.ids = FreeIds()
        self.table: list[Message | None] = []  # by id
        self.stale: dict[int, Stale] = {}
        self.count: int = 0
        self.looked_at: i64 = 0  # where the last withdrawn message was found: the next one is mostly behind it

    def take(self, message: Message) -> i64:
        """Assign an id to a message."""
        taken: i64 = self.ids.take()
        table = self.table
        if taken < len(table):
            table[taken] = message
        else:
            table.append(message)
        self.count += 1
        return taken

    def get(self, request_id: i64) -> Message | None:
        """The message with this id."""
        table = self.table
        if request_id >= len(table):
            return None
        return table[request_id]

    def free(self, request_id: i64) -> None:
        """Free an id that the node has answered."""
        self.table[request_id] = None
        self.ids.give(request_id)
        self.count -= 1

    def get_stale(self, request_id: i64) -> Stale | None:
        return self.stale.get(int(request_id)) if self.stale else None

    def free_stale(self, request_id: i64) -> None:
        del self.stale[int(request_id)]
        self.ids.give(request_id)
        self.count -= 1

    def take_away(self, message: Message, consumer: RqConsumer, is_noreply: bool) -> None:
        """Mark an id as stale: its lease ended without an answer. A second call (the message timed out, and expired because of that) is ignored."""
        table = self.table
        size: i64 = len(table)
        at: i64 = self.looked_at
        steps: i64 = 0
        while steps < size:
            if at >= size:
                at = 0
            if table[at] is message:
                table[at] = None
                self.stale[int(at)] = Stale(message.number, consumer, is_noreply)
                self.looked_at = at + 1
                return
            at += 1
            steps += 1
