"""Rate-limited log of peer faults: a maximum number of lines per second in total and, for some kinds, one per address, listener and minute. A flood
must not fill a disk, and an old program that connects ten times a second must not hide the others."""

from __future__ import annotations

from typing import Final

import structlog

from dragoman.dialects.session import Session
from dragoman.errors import LegacyGreetingOff, PeerError
from dragoman.limits import FAULT_ADDRESSES_MAX, FAULT_LOGS_PER_SECOND, FAULT_REPEAT_NS

log = structlog.get_logger("dragoman")

MORE: Final = "more peer faults"


class FaultLog:
    """One per broker. `each_second` logs how many lines were left out."""

    def __init__(self) -> None:
        self._this_second = 0
        self._left_out = 0
        self._next_ns: dict[tuple[str, str, str], int] = {}  # by address, listener and code, oldest first

    def write(self, event: str, **fields: object) -> bool:
        """Log a line unless the limit of this second is reached. Return whether it was logged."""
        self._this_second += 1
        if self._this_second > FAULT_LOGS_PER_SECOND:
            self._left_out += 1
            return False
        log.warning(event, **fields)
        return True

    def write_rarely(self, now_ns: int, host: str, event: str, code: str, listener: str, **fields: object) -> None:
        """Like `write`, but at most once per address, listener and code in a minute."""
        key = (host, listener, code)
        if now_ns < self._next_ns.get(key, 0):
            self._left_out += 1
            return
        if not self.write(event, code=code, listener=listener, **fields):
            return
        self._next_ns.pop(key, None)
        if len(self._next_ns) >= FAULT_ADDRESSES_MAX:
            del self._next_ns[next(iter(self._next_ns))]
        self._next_ns[key] = now_ns + FAULT_REPEAT_NS

    def write_fault(self, now_ns: int, host: str, session: Session, fault: PeerError) -> None:
        """Log a protocol error of a peer."""
        about = {"peer": session.remote, "fault": str(fault)}
        if session.is_greeted:
            self.write("peer fault", code=fault.code, listener=session.listener, **about)
            return
        if isinstance(fault, LegacyGreetingOff):
            about["advice"] = f"to take such peers here, add {session.listener} to security.legacy_greetings"
        self.write_rarely(now_ns, host, "peer refused by its first bytes", fault.code, session.listener, **about)

    def each_second(self) -> None:
        if self._left_out:
            log.warning(MORE, count=self._left_out)
        self._this_second = self._left_out = 0
