"""Where messages wait: a queue has lanes by priority, a lane a ring of lines by client, a line a fresh and a returned end.

A message that is released goes to the returned end of its line and is served before fresh ones. Entries are dropped lazily: one
whose message is elsewhere by now (in no line, at the other end, or in another line: a message may change lines) is stale and skipped,
so removing from the middle of a line costs nothing. A message may return to a returned end that still has a stale entry of it: only
the entry with the message's `entry_no` (counted along the returned end) is valid.
"""

from __future__ import annotations

import zlib
from collections import deque
from typing import final

from dragoman.core.state.tail import Tail, id_hash
from dragoman.limits import LINES_MAX, STALE_ENTRIES_MAX
from dragoman.model.message import IN_FRESH, IN_RETURNED, NOWHERE, Message


@final
class Line:
    """One client's messages of one priority in one queue, oldest first. Clients whose addresses hash alike (`line_key`) share it."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.fresh: deque[Message] = deque()
        self.returned: deque[Message] = deque()
        self.tail = Tail()
        self.first_entry_no: int = 0  # of the entry at the front of `returned`; the others count up from it
        self.size: int = 0  # live messages, including those on disk only
        self.stale: int = 0
        self.popped: int = NOWHERE  # the end that the last `pop` took from

    def push(self, m: Message, head_max: int) -> bool:
        """Append a fresh message; False when it went to the tail and its object is not kept."""
        if m.position != 0 and (self.tail.live > 0 or len(self.fresh) >= head_max):
            self.size += 1
            self.tail.append(m.number, m.position, m.accepted_ns, m.expires_ns, id_hash(m.client_id))
            return False
        self.push_head(m)
        return True

    def push_head(self, m: Message) -> None:
        """Append to the fresh messages in memory, before those of the tail."""
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
                self.popped = IN_RETURNED
                return m
            self.stale -= 1
        fresh = self.fresh
        while fresh:
            m = fresh.popleft()
            if m.where == IN_FRESH and m.line is self:
                m.where = NOWHERE
                m.line = None
                self.size -= 1
                self.popped = IN_FRESH
                return m
            self.stale -= 1
        return None

    def put_back(self, m: Message) -> None:
        """Undo the last `pop` exactly."""
        self.size += 1
        m.where = self.popped
        m.line = self
        if self.popped == IN_RETURNED:
            self.first_entry_no -= 1  # the message still has this `entry_no`
            self.returned.appendleft(m)
        else:
            self.fresh.appendleft(m)

    def remove(self, m: Message) -> None:
        """Remove a message from any position: its entry goes stale, unless it is the first of its end."""
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
    """One priority of a queue: its clients' lines, served round-robin."""

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.lines: dict[bytes, Line] = {}
        self.ring: deque[Line] = deque()
        # The address whose key was computed last: a client's messages mostly come one after another.
        self.recent_address: bytes = b""
        self.recent_key: bytes = line_key(b"")

    def line_of(self, address: bytes) -> Line:
        if address is not self.recent_address:
            self.recent_key = line_key(address)
            self.recent_address = address
        return self.line(self.recent_key)

    def head_max(self, head_max: int) -> int:
        """Messages one line may keep in memory when all lines together may keep `head_max`."""
        return max(head_max // max(len(self.lines), 1), 1)

    def line(self, key: bytes) -> Line:
        line = self.lines.get(key)
        if line is None:
            line = Line(key)
            self.lines[key] = line
            self.ring.append(line)
        return line

    def current(self) -> Line | None:
        """The line to serve next; drops empty ones. None: nothing waits."""
        ring = self.ring
        while ring:
            line = ring[0]
            if line.size > 0:
                return line
            ring.popleft()
            del self.lines[line.key]
        return None

    def turn(self) -> None:
        """Move on to the next client's line after the current one was served."""
        if len(self.ring) > 1:
            self.ring.rotate(-1)

    def turn_back(self) -> Line:
        """Undo the last `turn`; returns the line that was served."""
        self.ring.rotate(1)
        return self.ring[0]


def line_key(address: bytes) -> bytes:
    """The key of a client's line: always the same for an address, so that replay and checkpoint agree on it."""
    return (zlib.crc32(address) % LINES_MAX).to_bytes(2, "big")


def line_code(queue_no: int, lane: Lane, line: Line) -> int:
    """A line as one number: `queue_no << 24 | priority << 16 | key`."""
    return code_of(queue_no, lane.priority, line.key)


def code_of(queue_no: int, priority: int, key: bytes) -> int:
    return queue_no << 24 | priority << 16 | int.from_bytes(key, "big")
