"""The interface between the runtime and every dialect."""

from __future__ import annotations

from dragoman.dialects.session import Outboxes, Session


class Dialect:
    """State shared by all sessions of one dialect. One instance per broker, for the broker's lifetime."""

    def __init__(self, outboxes: Outboxes) -> None:
        self.outboxes = outboxes
        self.exchange = outboxes.exchange
        self.sessions: dict[int, Session] = {}  # by connection number; a session adds and removes itself

    def sweep(self, now_ns: int) -> None:
        """Called ten times a second: send due heartbeats, drop silent peers."""
        for session in list(self.sessions.values()):
            session.beat(now_ns)

    def excuse(self, stall_ns: int) -> None:
        """Do not count as silence a time in which the broker did not read."""
        now_ns = self.exchange.now_ns
        for session in self.sessions.values():
            session.last_sign_ns = min(session.last_sign_ns + stall_ns, now_ns)

    def went_on(self, still_ns: int) -> None:
        """Called when the core's time, which stood still at `still_ns`, advances again: a byte received at that instant may have arrived at any
        time since. One nanosecond before now, so that it is not mistaken for a byte of the next standstill."""
        now_ns = self.exchange.now_ns - 1
        for session in self.sessions.values():
            if session.last_sign_ns == still_ns:
                session.last_sign_ns = now_ns

    def reconfigured(self) -> None:
        """The settings were reloaded."""

    def listening(self) -> None:
        """The broker has opened its ports."""

    def draining(self) -> None:
        """The broker accepts no new work from now on; workers may finish what they have leased."""

    def closing(self) -> None:
        """The broker stops now: send the last message to every peer."""
        for session in list(self.sessions.values()):
            session.say_goodbye()

    def words_when_full(self) -> bytes:
        """The bytes sent to a connection over the limit before it is closed."""
        return b""
