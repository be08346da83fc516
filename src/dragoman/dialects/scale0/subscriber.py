"""A worker of the newest original, subscribed on the PUB port to `PING` and to its own id."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from dragoman.dialects.session import Outboxes, ZmtpSession
from dragoman.limits import NAME_SIZE_MAX, SUBSCRIPTIONS_MAX
from dragoman.model.words import SCALE0

if TYPE_CHECKING:
    from dragoman.dialects.scale0.dialect import Scale0Dialect


@final
class Scale0Subscriber(ZmtpSession):
    """A session on the PUB port. As with any PUB socket, messages for a subscriber that does not read are dropped. These are not topics of
    the broker: the messages are for Scale0's own workers."""

    def __init__(self, listener: str, listener_no: int, outboxes: Outboxes, dialect: Scale0Dialect) -> None:
        super().__init__(SCALE0, listener, listener_no, outboxes, b"PUB")
        self.scale0 = dialect
        self.prefixes: dict[bytes, int] = {}

    def opened(self) -> None:
        self.scale0.sessions[self.connection_no] = self
        self.scale0.listeners[self.connection_no] = self

    def ended(self) -> None:
        self.scale0.sessions.pop(self.connection_no, None)
        self.scale0.listeners.pop(self.connection_no, None)
        self.exchange.goodbye(self)

    def on_message(self, frames: list[bytes]) -> None:
        text = frames[0]
        if len(frames) != 1 or not text or text[0] > 1:
            self.exchange.note(self, "NOT_A_SUBSCRIPTION")
            return
        if len(text) > NAME_SIZE_MAX + 1:
            self.exchange.note(self, "TOPIC_TOO_LONG")
            return
        prefix = text[1:]
        count = self.prefixes.get(prefix, 0)
        if text[0] == 1:
            if count == 0 and len(self.prefixes) >= SUBSCRIPTIONS_MAX:
                self.exchange.note(self, "TOO_MANY_SUBSCRIPTIONS")
            else:
                self.prefixes[prefix] = count + 1
        elif count > 1:
            self.prefixes[prefix] = count - 1
        elif count == 1:
            del self.prefixes[prefix]

    def tell(self, frames: list[bytes]) -> None:
        if not self.wants(frames[0]):
            return
        if self.is_socket_full:
            self.exchange.note(self, "SLOW_SUBSCRIBER_DROPPED")
        else:
            self.say_now(frames)

    def wants(self, topic: bytes) -> bool:
        """Whether a prefix matches: looks up the beginnings of the topic, which are few, instead of iterating over thousands of prefixes."""
        prefixes = self.prefixes
        size = len(topic) + 1
        return any(topic[:end] in prefixes for end in range(size))
