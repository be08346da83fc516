"""News waiting for subscribers: encoded once per frame format, and stored once for all subscribers that have not received it.

A subscriber's outbox is a queue of references. The total size of what they keep alive is limited: above `size_max` the oldest news is
dropped for every subscriber that still waits for it. A subscriber that stopped reading in the middle of the oldest news cannot skip the
rest of it: its connection is closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from dragoman.limits import NO_BOUND
from dragoman.wire.zmtp.frames import encode_message

if TYPE_CHECKING:
    from dragoman.dialects.subscriber import TopicSubscriber

# The size counted for a publication besides its bytes, and for each reference to it.
NEWS_SIZE: Final = 400
REFERENCE_SIZE: Final = 16


@final
class News:
    """One publication in one frame format, as written to sockets."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size: int = NEWS_SIZE + len(data)
        self.number: int = 0  # the order of waiting news
        self.receivers_left: int = 0  # subscribers that have not received all of it
        self.is_dropped: bool = False


@final
class NewsBuffer:
    """All news that waits for a subscriber, the oldest first."""

    def __init__(self) -> None:
        self.size: int = 0
        self.size_max: int = NO_BOUND
        self.subscriber_size_max: int = NO_BOUND  # the most that may wait for one subscriber
        self.waiting: dict[int, News] = {}  # by number
        self.next_number: int = 1
        self.subscribers: dict[int, TopicSubscriber] = {}  # subscribers with waiting news, by connection
        self.stuck: list[TopicSubscriber] = []  # to be disconnected: the rest of a partly sent message was dropped
        self.dropped: int = 0  # counts each subscriber that did not get a publication
        # The publication that is being distributed.
        self.last_topic: bytes = b""
        self.last_body: bytes = b""
        self.last: News | None = None
        self.last_v1: News | None = None

    def news_of(self, topic: bytes, body: bytes, is_v1: bool) -> News:
        """The shared object of a publication, which is passed to its subscribers one after the other."""
        if self.last_body is not body or self.last_topic is not topic:
            self.last_topic = topic
            self.last_body = body
            self.last = None
            self.last_v1 = None
        news = self.last_v1 if is_v1 else self.last
        if news is None or news.is_dropped:
            news = News(encode_message([topic, body], is_v1))
            if is_v1:
                self.last_v1 = news
            else:
                self.last = news
        return news

    def wait(self, subscriber: TopicSubscriber, news: News) -> None:
        """Record that one more subscriber waits for it."""
        if news.receivers_left == 0:
            news.number = self.next_number
            self.next_number += 1
            self.waiting[news.number] = news
            self.size += news.size
        news.receivers_left += 1
        self.size += REFERENCE_SIZE
        self.subscribers[subscriber.connection_no] = subscriber
        if self.size > self.size_max:
            self.make_room()

    def done(self, news: News) -> None:
        """Record that one subscriber has received it, or skips it."""
        self.size -= REFERENCE_SIZE
        news.receivers_left -= 1
        if news.receivers_left == 0 and not news.is_dropped:
            self.size -= news.size
            del self.waiting[news.number]

    def make_room(self) -> None:
        """Send what can be sent; then drop the oldest until the size is an eighth below the limit."""
        for subscriber in list(self.subscribers.values()):
            subscriber.send_news()
        if self.size <= self.size_max:
            return
        enough = self.size_max - self.size_max // 8
        for news in list(self.waiting.values()):
            if self.size <= enough or len(self.waiting) == 1:  # the newest may be as large as a message can be
                break
            self.size -= news.size
            del self.waiting[news.number]
            news.is_dropped = True
            news.data = b""
        for subscriber in list(self.subscribers.values()):
            subscriber.skip_dropped()
