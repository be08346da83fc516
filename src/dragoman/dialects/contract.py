"""What the runtime asks of every dialect, whatever it speaks."""

from __future__ import annotations

from dragoman.dialects.session import Hub, Session


class Dialect:
    """What all sessions of one dialect share. One per broker; it lives as long as the broker does."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.exchange = hub.exchange
        self.sessions: dict[int, Session] = {}  # by connection number; a session enters and leaves by itself

    def sweep(self, now_ns: int) -> None:
        """Ten times a second: say signs of life that are due, lose peers that are silent."""
        for session in list(self.sessions.values()):
            session.beat(now_ns)

    def excuse(self, stall_ns: int) -> None:
        """The broker did not listen for so long: that time is nobody's silence."""
        now_ns = self.exchange.now_ns
        for session in self.sessions.values():
            session.last_sign_ns = min(session.last_sign_ns + stall_ns, now_ns)

    def went_on(self, still_ns: int) -> None:
        """Time stood still at `still_ns`, and goes on: a sign of that instant came at any time since. Not quite now, so that it is not
        taken for one of the next standstill."""
        now_ns = self.exchange.now_ns - 1
        for session in self.sessions.values():
            if session.last_sign_ns == still_ns:
                session.last_sign_ns = now_ns

    def reconfigured(self) -> None:
        """The settings were read again."""

    def listening(self) -> None:
        """The broker is open."""

    def draining(self) -> None:
        """The broker takes no new work from now on; what workers hold they may finish."""

    def closing(self) -> None:
        """The broker stops now: the last words to every peer."""
        for session in list(self.sessions.values()):
            session.say_goodbye()

    def words_when_full(self) -> bytes:
        """What a connection over the limit is told before it ends."""
        return b""
