"""A subscriber on a PUB or XPUB port: sends subscriptions, gets `topic, body`."""

from __future__ import annotations

from typing import final

from dragoman.dialects.session import Hub, ZmtpSession
from dragoman.limits import NAME_SIZE_MAX, SUBSCRIPTIONS_MAX


@final
class TopicSubscriber(ZmtpSession):
    """As with any PUB socket, news for one who does not read is dropped, and counted."""

    def __init__(self, dialect: int, listener: str, listener_no: int, hub: Hub, socket_type: bytes) -> None:
        super().__init__(dialect, listener, listener_no, hub, socket_type)
        self.prefixes: dict[bytes, int] = {}

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
                return
            self.prefixes[prefix] = count + 1
            if count == 0:
                self.exchange.subscribe(self, prefix)
        elif count == 1:
            del self.prefixes[prefix]
            self.exchange.unsubscribe(self, prefix)
        elif count > 1:
            self.prefixes[prefix] = count - 1

    def published(self, topic: bytes, body: bytes) -> None:
        if self.is_blocked:
            self.exchange.note(self, "SLOW_SUBSCRIBER_DROPPED")
        else:
            self.say_now([topic, body])

    def ended(self) -> None:
        for prefix in self.prefixes:
            self.exchange.unsubscribe(self, prefix)
        self.exchange.goodbye(self)
