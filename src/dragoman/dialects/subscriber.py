"""A subscriber on a PUB or XPUB port: sends subscriptions, receives `topic, body`."""

from __future__ import annotations

from collections import deque
from typing import final

from mypy_extensions import i64

from dragoman.dialects.news import News
from dragoman.dialects.session import Outboxes, ZmtpSession
from dragoman.limits import NAME_SIZE_MAX, NEWS_WRITE_SIZE, SUBSCRIPTIONS_MAX


class SubscriberSession(ZmtpSession):
    """Reads the subscriptions of one connection. `subscribed` and `unsubscribed` are called for the first and the last of equal ones."""

    def __init__(self, dialect: int, listener: str, listener_no: int, outboxes: Outboxes, socket_type: bytes) -> None:
        super().__init__(dialect, listener, listener_no, outboxes, socket_type)
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
                self.subscribed(prefix)
        elif count == 1:
            del self.prefixes[prefix]
            self.unsubscribed(prefix)
        elif count > 1:
            self.prefixes[prefix] = count - 1

    def subscribed(self, prefix: bytes) -> None:
        pass

    def unsubscribed(self, prefix: bytes) -> None:
        pass


@final
class TopicSubscriber(SubscriberSession):
    """News for a subscriber that does not read waits in a buffer shared by all subscribers (dialects/news.py). As with any PUB socket, excess
    news is dropped, and counted: new news while the subscriber's own backlog is full, the oldest when the shared buffer is full."""

    def __init__(self, dialect: int, listener: str, listener_no: int, outboxes: Outboxes, socket_type: bytes) -> None:
        super().__init__(dialect, listener, listener_no, outboxes, socket_type)
        self.news: deque[News] = deque()
        self.news_size: int = 0  # of all waiting news, including `current`
        self.current: News | None = None  # the news being sent
        self.current_at: i64 = 0  # and how much of it was sent
        self.is_stuck: bool = False  # the rest of it was dropped: nothing more can be sent

    def subscribed(self, prefix: bytes) -> None:
        self.exchange.topics.subscribe(self, prefix)

    def unsubscribed(self, prefix: bytes) -> None:
        self.exchange.topics.unsubscribe(self, prefix)

    def published(self, topic: bytes, body: bytes) -> None:
        if not self.is_connected or self.is_stuck:
            return
        buffer = self.outboxes.news
        news = buffer.news_of(topic, body, self.zmtp.is_v1)
        if self.news_size > 0 and self.news_size + news.size > buffer.subscriber_size_max:
            self.send_news()
            if self.news_size > 0 and self.news_size + news.size > buffer.subscriber_size_max:
                self.note_dropped()
                return
        self.news.append(news)
        self.news_size += news.size
        self.touch()
        buffer.wait(self, news)

    def note_dropped(self) -> None:
        self.outboxes.news.dropped += 1
        self.exchange.note(self, "SLOW_SUBSCRIBER_DROPPED")

    def send_news(self) -> None:
        """Write as much to the socket as it accepts, immediately: it does not depend on a fact."""
        data = self.take_more()
        while data:
            self.outboxes.traffic_size += len(data)
            self.sink(data)
            data = self.take_more()

    def take_all(self) -> bytes:
        return self.take_free() + self.take_held()

    def take_free(self) -> bytes:
        if len(self.free_out) == 0:
            return self.take_more()
        return super().take_free()

    def take_more(self) -> bytes:
        """The next part of the news, unless the socket is full."""
        if self.is_socket_full or self.is_stuck or self.news_size == 0:
            return b""
        parts: list[bytes] = []
        size: i64 = 0
        while size < NEWS_WRITE_SIZE:
            news = self.current
            if news is None:
                if not self.news:
                    break
                news = self.news.popleft()
                self.current = news
                self.current_at = 0
            data = news.data
            at = self.current_at
            stop = at + NEWS_WRITE_SIZE - size
            if stop < len(data):
                self.current_at = stop
            else:
                stop = len(data)
                self.current = None
                self.release(news)
            parts.append(data[at:stop])
            size += stop - at
        return b"".join(parts)

    def release(self, news: News) -> None:
        self.news_size -= news.size
        buffer = self.outboxes.news
        buffer.done(news)
        if self.news_size == 0:
            buffer.subscribers.pop(self.connection_no, None)

    def skip_dropped(self) -> None:
        """Remove dropped news from the queue. A subscriber that was sent a part of it cannot continue."""
        current = self.current
        if current is not None and current.is_dropped:
            self.current = None
            if self.current_at > 0:
                self.is_stuck = True
                self.outboxes.news.stuck.append(self)
            self.note_dropped()
            self.release(current)
        news = self.news
        while news and news[0].is_dropped:
            self.note_dropped()
            self.release(news.popleft())

    def set_blocked(self, is_blocked: bool) -> None:
        super().set_blocked(is_blocked)
        if not is_blocked and self.news_size > 0:
            self.touch()

    def ended(self) -> None:
        if self.current is not None:
            self.news.appendleft(self.current)
            self.current = None
        while self.news:
            self.release(self.news.popleft())
        for prefix in self.prefixes:
            self.exchange.topics.unsubscribe(self, prefix)
        self.exchange.goodbye(self)
