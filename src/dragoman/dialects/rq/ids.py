"""The ids of requests on one connection. `FreeIds` allocates the smallest free id, from 0, with a step per factor of eight.

A set bit means "free". Level 0 has one bit per id; a bit of a higher level shows whether its byte of the level below has any:

    level 2   1 byte      ─┐
    level 1   8 bytes     ─┴─► the first set bit leads down to the smallest free id
        level 0   64 bytes         512 ids; when full, it becomes eight times as wide
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import BytesWriter
from mypy_extensions import i64, u8

from dragoman.model.message import Message

if TYPE_CHECKING:
    from dragoman.dialects.rq.consumer import RqConsumer

LEVELS_FIRST: Final = 3
ALL_FREE: Final = 0xFF


def _first_bits() -> bytes:
    return bytes([0] + [(n & -n).bit_length() - 1 for n in range(1, 256)])


FIRST_BIT: Final[bytes] = _first_bits()


def _level(size: int, used: int) -> BytesWriter:
    """A level of `size` bytes, the first `used` bits in use; `used` is a multiple of eight, or one bit of a single byte."""
    out = BytesWriter()
    for at in range(size):
        out.append(
            0 if (at + 1) * 8 <= used else ALL_FREE if at * 8 >= used else ALL_FREE << (used - at * 8) & ALL_FREE
        )
    return out


@final
class FreeIds:
    """The ids of one connection."""

    def __init__(self) -> None:
        self.levels: list[BytesWriter] = []
        self.build(LEVELS_FIRST, 0)

    def build(self, depth: int, used: int) -> None:
        """Allocate 8^depth ids, the first `used` in use."""
        self.levels = []
        for level in range(depth):
            self.levels.append(_level(1 << (3 * (depth - 1 - level)), used))
            used //= 8

    def take(self) -> i64:
        depth: i64 = len(self.levels)
        if self.levels[depth - 1][0] == 0:
            self.build(len(self.levels) + 1, 1 << (3 * len(self.levels)))
            depth += 1
        at: i64 = 0
        level: i64 = depth - 1
        while level >= 0:
            at = at * 8 + i64(FIRST_BIT[i64(self.levels[level][at])])
            level -= 1
        request_id: i64 = at
        level = 0
        while level < depth:
            bits = self.levels[level]
            left: i64 = i64(bits[at >> 3]) & ~(1 << (at & 7))
            bits[at >> 3] = u8(left)
            if left != 0:
                break
            at >>= 3
            level += 1
        return request_id

    def give(self, request_id: i64) -> None:
        """Return an id that was in use."""
        depth: i64 = len(self.levels)
        at: i64 = request_id
        level: i64 = 0
        while level < depth:
            bits = self.levels[level]
            was: i64 = i64(bits[at >> 3])
            bits[at >> 3] = u8(was | (1 << (at & 7)))
            if was != 0:
                break
            at >>= 3
            level += 1


@final
class Stale:
    """An id whose message was withdrawn: the message, its consumer, and whether DELIVERED is the only answer to expect."""

    def __init__(self, number: int, consumer: RqConsumer, is_noreply: bool) -> None:
        self.number = number
        self.consumer = consumer
        self.is_noreply = is_noreply


@final
class RequestIds:
    """The requests that one node has, by their ids on its connection, for all its consumers.

    An id is in use until the node answers it or its connection ends, whatever happens to the message in between. An id whose message was
    withdrawn is *stale*: its answer belongs to the old message, never to a newer one.
    """

    def __init__(self) -> None:
        self.ids = FreeIds()
        self.table: list[Message | None] = []  # by id
        self.stale: dict[int, Stale] = {}
        self.count: int = 0
        self.looked_at: i64 = 0  # where the last withdrawn message was found: the next one mostly follows it

    def take(self, message: Message) -> i64:
        """Assign an id to a message."""
        request_id: i64 = self.ids.take()
        table = self.table
        if request_id < len(table):
            table[request_id] = message
        else:
            table.append(message)
        self.count += 1
        return request_id

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

    def mark_stale(self, message: Message, consumer: RqConsumer, is_noreply: bool) -> None:
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
