"""Decides which connections may continue an unfinished message while all unfinished messages together exceed their share of memory.

    total size of unfinished messages
    within the share    every connection is read
    above it            a connection that has sent 64 KiB enters the line, in order of arrival. Space is reserved for those in line whose
                        whole rest fits into the share plus one message of the maximum size: they are read until their message is complete
                        a connection that sends less is *tried*: read outside the line, a limited number at a time, until it sends 64 KiB

A message that has its space can be completed, completion frees memory, and so no connection must be closed because several messages are large. A
connection that has space and does not send 64 KiB within 0.1 s (UNFINISHED_SLOW_NS) is tried instead. A tried connection costs at most one
read, because after 64 KiB it enters the line at once.

A connection is closed here for three reasons only:
- it sent no byte for 1 s (UNFINISHED_STILL_NS) of being read while the total is above the share: those silent longest are closed first, until
  the others are within it;
- another one in line has waited for 0.5 s (UNFINISHED_WAIT_NS) and does not fit: those that sent less than 64 KiB in 1 s of being read are
  closed, slowest first;
- the total exceeds that limit by half a share, because of the first reads of very many connections or because of workers: slow ones are closed,
  then the newest, workers before the others if their own messages exceed one message of the maximum size.

Connections of workers are always read, because answers free memory. Time in which a connection is not read does not count against it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman import limits
from dragoman.dialects.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.runtime.broker import Broker
    from dragoman.runtime.connection import Connection


class Turn:
    """One unfinished message."""

    __slots__ = (
        "connection",
        "has_space",
        "idle_ns",
        "is_recent",
        "mark_size",
        "number",
        "paused_since_ns",
        "read_since_ns",
        "seen_size",
        "session",
        "silent_ns",
    )  # fmt: skip

    def __init__(self, session: Session, connection: Connection | None, now_ns: int) -> None:
        self.session = session
        self.number = session.connection_no
        self.connection = connection  # None: a link that the broker opened itself, which is always read
        self.seen_size = self.mark_size = session.unfinished_size
        self.idle_ns = 0  # time of being read without receiving UNFINISHED_STEP_SIZE
        self.silent_ns = 0  # and without receiving one byte
        self.read_since_ns = now_ns
        self.paused_since_ns = 0  # 0: it is being read
        self.has_space = False  # reserved for the rest of its message
        self.is_recent = False  # it began, or received 64 KiB, just now

    @property
    def is_slow(self) -> bool:
        return self.idle_ns >= limits.UNFINISHED_SLOW_NS

    @property
    def need(self) -> int:
        """Bytes missing from the message, as far as announced."""
        return max(self.session.missing_size(), limits.UNFINISHED_STEP_SIZE)

    def is_always_read(self) -> bool:
        return self.connection is None or self.session.holds_work()

    def has_progressed(self) -> bool:
        """Whether 64 KiB were received since this was last true, or another message has begun."""
        size = self.session.unfinished_size
        if self.mark_size <= size < self.mark_size + limits.UNFINISHED_STEP_SIZE:
            return False
        self.mark_size = size
        self.idle_ns = self.silent_ns = 0
        return True

    def watch(self, now_ns: int, looked_ns: int) -> None:
        """Update the idle times with what was received since the last look, or since it is read."""
        since_ns = max(self.read_since_ns, looked_ns, self.connection.unpaused_ns if self.connection is not None else 0)
        elapsed_ns = min(now_ns - since_ns, limits.UNFINISHED_LOOK_NS_MAX)
        if not self.has_progressed():
            self.idle_ns += elapsed_ns
            self.silent_ns = self.silent_ns + elapsed_ns if self.session.unfinished_size == self.seen_size else 0
        self.seen_size = self.session.unfinished_size


class UnfinishedLine:
    """One per broker. Does nothing while the total is within the share."""

    def __init__(self, broker: Broker, end: Callable[[Session], None]) -> None:
        self._broker = broker
        self._end = end  # closes the connection of a session because of its message
        self._size_max = 0  # the share plus one message of the maximum size
        self._hard_max = 0  # plus half a share
        self._tried_max = 0
        self.is_crowded = False
        self._line: dict[int, Turn] = {}  # by connection number, in order of arrival
        self._tried: dict[int, Turn] = {}  # connections that have not sent 64 KiB lately
        self._read: dict[int, Turn] = {}  # those of both that are being read
        self._free_size = 0  # bytes not reserved
        self._looked_ns = 0
        broker.outboxes.on_unfinished_over = self._on_over

    def apply(self, share: int, message_size_max: int) -> None:
        """Apply settings."""
        self._size_max = share + message_size_max
        self._hard_max = self._size_max + share // 2
        self._tried_max = min(share // 2 // limits.UNFINISHED_READ_SIZE, limits.UNFINISHED_TRIED_MAX)

    @property
    def waiting(self) -> list[Connection]:
        """Connections that are not read until there is space for their message."""
        turns = [*self._line.values(), *self._tried.values()]
        return [turn.connection for turn in turns if turn.paused_since_ns and turn.connection is not None]

    def _on_over(self, session: Session) -> None:
        """An unfinished message has grown while the total is above the share."""
        outboxes = self._broker.outboxes
        if not session.is_cut_short:
            session.forget_spent()
            return
        if not self.is_crowded:
            self.is_crowded = True
            self._looked_ns = self._broker.clock.now_ns()
            self.look()
        elif session.connection_no in self._tried:
            self._on_input(self._tried[session.connection_no])
        elif session.connection_no not in self._line:
            self._join(session)
        while outboxes.unfinished_size > self._hard_max and (self._line or self._tried):
            self._drop(self._first_to_close())

    def check(self) -> None:
        """Called every tick: look if a message was completed or ended, which frees space."""
        if len(self._broker.outboxes.unfinished) < len(self._line) + len(self._tried):
            if self._broker.clock.now_ns() - self._looked_ns >= limits.UNFINISHED_LOOK_NS_MIN:
                self.look()

    def look(self) -> None:
        """Decide again which connections are read."""
        outboxes = self._broker.outboxes
        now_ns = self._broker.clock.now_ns()
        self._watch(now_ns)
        self._looked_ns = now_ns
        self._update()
        if outboxes.unfinished_size > outboxes.unfinished_max:
            self._end_silent()
        if outboxes.unfinished_size > outboxes.unfinished_max:
            self._assign_space(now_ns)
        else:
            self._resume_all()

    def _watch(self, now_ns: int) -> None:
        """Find slow connections. One that was tried without success is tried again after the others."""
        for number, turn in self._read.items():
            if turn.connection is not None and turn.connection.is_paused:
                continue  # paused by the broker
            turn.watch(now_ns, self._looked_ns)
            if turn.is_slow:
                self._line.pop(number, None)
                self._tried.pop(number, None)
                self._tried[number] = turn
                turn.has_space = False

    def _update(self) -> None:
        unfinished = self._broker.outboxes.unfinished
        for session in [session for session in unfinished.values() if not session.is_cut_short]:
            session.forget_spent()
        for turns in (self._line, self._tried):
            for number in [number for number in turns if number not in unfinished]:
                self._resume(turns[number])
                self._forget(number)
        for number, session in unfinished.items():
            if number not in self._line and number not in self._tried:
                turn = self._read[number] = self._turn_of(session)
                (self._line if turn.is_recent else self._tried)[number] = turn

    def _end_silent(self) -> None:
        outboxes = self._broker.outboxes
        silent = [turn for turn in self._tried.values() if turn.silent_ns >= limits.UNFINISHED_STILL_NS]
        silent.sort(key=lambda turn: (-turn.silent_ns, -turn.session.unfinished_size))
        for turn in silent[: limits.UNFINISHED_ENDED_MAX]:
            if outboxes.unfinished_size <= outboxes.unfinished_max:
                return
            self._drop(turn)

    def _assign_space(self, now_ns: int) -> None:
        before, self._read = self._read, {}
        self._free_size = self._size_max - self._broker.outboxes.unfinished_size
        for turn in before.values():
            if turn.has_space:
                self._free_size -= turn.need
            if turn.has_space or turn.is_always_read():
                self._read[turn.number] = turn
        self._reserve_in_order(now_ns)
        if self._line and not any(turn.has_space for turn in self._read.values()):
            # No message fits: choose the one that needs least.
            self._reserve(min(self._line.values(), key=lambda turn: turn.need))
        for turn in [turn for turn in self._tried.values() if turn.number not in self._read][: self._tried_max]:
            self._resume(turn)
        for number, turn in before.items():
            if number not in self._read and (number in self._line or number in self._tried):
                self._pause(turn)

    def _reserve_in_order(self, now_ns: int) -> None:
        """Reserve space for what fits. Stop at a connection that has waited so long that the space is left for it."""
        for turn in [turn for turn in self._line.values() if turn.number not in self._read]:
            if len(self._read) >= limits.UNFINISHED_LET_ON_MAX:
                return
            waited_ns = now_ns - turn.paused_since_ns if turn.paused_since_ns else 0
            if turn.need > self._free_size and waited_ns >= limits.UNFINISHED_WAIT_NS:
                self._end_slow_for(turn)
                if turn.need > self._free_size:
                    return
            if turn.need <= self._free_size:
                self._reserve(turn)

    def _end_slow_for(self, waiting: Turn) -> None:
        slow = [turn for turn in self._tried.values() if turn.idle_ns >= limits.UNFINISHED_STILL_NS]
        slow = sorted((turn for turn in slow if not turn.is_always_read()), key=lambda turn: -turn.idle_ns)
        for turn in slow[: limits.UNFINISHED_ENDED_MAX]:
            if waiting.need <= self._free_size:
                return
            self._free_size += turn.session.unfinished_size
            self._drop(turn)

    def _first_to_close(self) -> Turn:
        """The connection to close when there is no space left at all."""
        for turn in self._tried.values():
            if turn.is_slow:
                return turn
        workers = [turn for turn in self._read.values() if turn.is_always_read()]
        if sum([turn.session.unfinished_size for turn in workers]) > self._broker.memory.message_size_max:
            return workers[-1]
        for turns in (self._tried, self._line):
            for turn in reversed(turns.values()):
                if not turn.is_always_read():
                    return turn
        return workers[-1] if workers else next(iter((self._tried or self._line).values()))

    def _resume_all(self) -> None:
        for turn in [*self._line.values(), *self._tried.values()]:
            self._resume(turn)
        self._line, self._tried, self._read = {}, {}, {}
        self.is_crowded = False

    def _turn_of(self, session: Session) -> Turn:
        turn = Turn(session, self._broker.connections.get(session), self._broker.clock.now_ns())
        turn.is_recent = self._broker.core.now_ns - session.progress_ns < limits.UNFINISHED_SLOW_NS
        return turn

    def _join(self, session: Session) -> None:
        """Add a new message: it is read if it fits."""
        turn = self._turn_of(session)
        self._line[turn.number] = self._read[turn.number] = turn
        if not turn.is_always_read():
            self._reserve_or_pause(turn)

    def _on_input(self, turn: Turn) -> None:
        """Handle input from a tried connection."""
        if not turn.is_always_read() and turn.has_progressed():
            del self._tried[turn.number]
            self._line[turn.number] = turn
            self._reserve_or_pause(turn)

    def _reserve_or_pause(self, turn: Turn) -> None:
        if turn.need <= self._free_size and len(self._read) <= limits.UNFINISHED_LET_ON_MAX:
            self._reserve(turn)
        else:
            self._pause(turn)

    def _drop(self, turn: Turn) -> None:
        self._forget(turn.number)
        self._end(turn.session)

    def _forget(self, number: int) -> None:
        for turns in (self._line, self._tried, self._read):
            turns.pop(number, None)

    def _reserve(self, turn: Turn) -> None:
        self._free_size -= turn.need
        turn.has_space = True
        self._resume(turn)

    def _resume(self, turn: Turn) -> None:
        self._read[turn.number] = turn
        if turn.paused_since_ns and turn.connection is not None:
            turn.read_since_ns = self._broker.clock.now_ns()
            turn.session.progress_ns += turn.read_since_ns - turn.paused_since_ns
            turn.paused_since_ns = 0
            turn.connection.waits_its_turn = False
            self._broker.balance(turn.connection)

    def _pause(self, turn: Turn) -> None:
        self._read.pop(turn.number, None)
        turn.has_space = False
        if not turn.paused_since_ns and turn.connection is not None:
            turn.paused_since_ns = self._broker.clock.now_ns()
            turn.connection.waits_its_turn = True
            self._broker.balance(turn.connection)
