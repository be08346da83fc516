"""Where messages wait: a queue's lanes by priority, a lane's ring of lines by client, a line's fresh and returned ends.

A message that comes back goes to its line's returned end and is served before fresh ones. Entries are dropped lazily: one whose
message says it is elsewhere by now (out of line, at the other end, or in another line: a message may change lines) is stale and
skipped, so leaving the middle of a line costs nothing. A message may come back to the returned end where its stale entry still is:
only the entry whose number it carries (`entry_no`, counted along the returned end) is its place.
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
        self.first_entry_no: int = 0  # of the entry at the front of `returned`; the others count up from it
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
        m.entry_no = self.first_entry_no + len(self.returned)
        self.returned.append(m)

    def pop(self) -> Message | None:
        """The next message in memory; None when there is none (the tail may still hold some)."""
        returned = self.returned
        while returned:
            m = returned.popleft()
            entry_no = self.first_entry_no
            self.first_entry_no = entry_no + 1
            if m.entry_no == entry_no and m.where == IN_RETURNED and m.line is self:
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
        is_fresh = m.where == IN_FRESH
        m.where = NOWHERE
        m.line = None
        if is_fresh:
            if self.fresh and self.fresh[0] is m:
                self.fresh.popleft()
                return
        elif m.entry_no == self.first_entry_no:
            self.returned.popleft()
            self.first_entry_no += 1
            return
        self.stale += 1
        if self.stale > STALE_ENTRIES_MAX and self.stale > self.size:
            self.drop_stale()

    def drop_stale(self) -> None:
        self.fresh = deque([m for m in self.fresh if m.where == IN_FRESH and m.line is self])
        live = self.returned_live()
        for at in range(len(live)):
            live[at].entry_no = at
        self.returned = deque(live)
        self.first_entry_no = 0
        self.stale = 0

    def returned_head(self) -> Message | None:
        entry_no = self.first_entry_no
        for m in self.returned:
            if m.entry_no == entry_no and m.where == IN_RETURNED and m.line is self:
                return m
            entry_no += 1
        return None

    def returned_live(self) -> list[Message]:
        """The messages of the returned end, in order."""
        live: list[Message] = []
        entry_no = self.first_entry_no
        for m in self.returned:
            if m.entry_no == entry_no and m.where == IN_RETURNED and m.line is self:
                live.append(m)
            entry_no += 1
        return live


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
    return code_of(queue_no, lane.priority, line.key)


def code_of(queue_no: int, priority: int, key: bytes) -> int:
    return queue_no << 24 | priority << 16 | int.from_bytes(key, "big")
