"""Where messages wait: a queue's lanes by priority, a lane's ring of lines by client, a line's fresh and returned ends.

A message that comes back goes to its line's returned end and is served before fresh ones. Entries are dropped lazily: one whose
message says it is elsewhere by now (out of line, at the other end, or in another line: a message may change lines) is stale and
skipped, so leaving the middle of a line costs nothing.
"""

from __future__ import annotations

import zlib
from collections import deque
from typing import final

from dragoman.core.tail import Tail, id_hash
from dragoman.limits import LINES_MAX, STALE_ENTRIES_MAX
from dragoman.model.message import IN_FRESH, IN_RETURNED, NOWHERE, Message


@final
class Line:
    """One client's messages of one priority in one queue, oldest first; of some clients when there are very many."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.fresh: deque[Message] = deque()
        self.returned: deque[Message] = deque()
        self.tail = Tail()
        self.size: int = 0  # live messages, those on disk included
        self.stale: int = 0

    def push(self, m: Message, head_max: int) -> bool:
        """Put a fresh message at the end; False when it went to the tail and its object is not kept."""
        if m.place != 0 and (self.tail.live > 0 or len(self.fresh) >= head_max):
            self.size += 1
            self.tail.append(m.number, m.place, m.accepted_ns, m.expires_ns, id_hash(m.client_id))
            return False
        self.push_head(m)
        return True

    def push_head(self, m: Message) -> None:
        """Behind the fresh ones in memory, whatever the tail still holds."""
        self.size += 1
        m.where = IN_FRESH
        m.line = self
        self.fresh.append(m)

    def push_returned(self, m: Message) -> None:
        self.size += 1
        m.where = IN_RETURNED
        m.line = self
        self.returned.append(m)

    def pop(self) -> Message | None:
        """The next message in memory; None when there is none (the tail may still hold some)."""
        returned = self.returned
        while returned:
            m = returned.popleft()
            if m.where == IN_RETURNED and m.line is self:
                m.where = NOWHERE
                m.line = None
                self.size -= 1
                return m
            self.stale -= 1
        fresh = self.fresh
        while fresh:
            m = fresh.popleft()
            if m.where == IN_FRESH and m.line is self:
                m.where = NOWHERE
                m.line = None
                self.size -= 1
                return m
            self.stale -= 1
        return None

    def remove(self, m: Message) -> None:
        """Take a message out of the middle: its entry goes stale, unless it is the very next one."""
        self.size -= 1
        line = self.fresh if m.where == IN_FRESH else self.returned
        m.where = NOWHERE
        m.line = None
        if line and line[0] is m:
            line.popleft()
            return
        self.stale += 1
        if self.stale > STALE_ENTRIES_MAX and self.stale > self.size:
            self.fresh = deque([x for x in self.fresh if x.where == IN_FRESH and x.line is self])
            self.returned = deque([x for x in self.returned if x.where == IN_RETURNED and x.line is self])
            self.stale = 0


@final
class Lane:
    """One priority of a queue: its clients' lines, served in turn."""

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.lines: dict[bytes, Line] = {}
        self.ring: deque[Line] = deque()

    def line_of(self, address: bytes) -> Line:
        return self.line(line_key(address))

    def head_max(self, head_max: int) -> int:
        """What one line may keep in memory when all together may keep `head_max`."""
        return max(head_max // max(len(self.lines), 1), 1)

    def line(self, key: bytes) -> Line:
        line = self.lines.get(key)
        if line is None:
            line = Line(key)
            self.lines[key] = line
            self.ring.append(line)
        return line

    def current(self) -> Line | None:
        """The line whose turn it is; empty ones are dropped."""
        ring = self.ring
        while ring:
            line = ring[0]
            if line.size > 0:
                return line
            ring.popleft()
            del self.lines[line.key]
        return None

    def turn(self) -> None:
        """The current line has been served: the next client's turn."""
        if len(self.ring) > 1:
            self.ring.rotate(-1)


def line_key(address: bytes) -> bytes:
    """The line of a client: the same whenever it comes, so that replay and checkpoint agree on it."""
    return (zlib.crc32(address) % LINES_MAX).to_bytes(2, "big")


def line_code(queue_no: int, lane: Lane, line: Line) -> int:
    """A line in one number: `queue_no << 24 | priority << 16 | key`."""
    return queue_no << 24 | lane.priority << 16 | int.from_bytes(line.key, "big")
