"""News on its way to subscribers: encoded once for each form of framing, kept once for all who have not been sent it.

A subscriber's outbox is a line of references. What all of them keep alive is bounded: beyond `size_max` the oldest news is dropped for
everyone who still waits for it. A subscriber that stopped reading in the middle of the oldest one cannot skip the rest of it: its
connection ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from dragoman.limits import NO_BOUND
from dragoman.wire.zmtp.frames import encode_message

if TYPE_CHECKING:
    from dragoman.dialects.subscriber import TopicSubscriber

# What a publish counts for beside its bytes, and what each reference to it does.
NEWS_SIZE: Final = 400
REFERENCE_SIZE: Final = 16


@final
class News:
    """One publish in one form of framing, as sockets are given it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size: int = NEWS_SIZE + len(data)
        self.number: int = 0  # the order of what waits
        self.holders: int = 0  # subscribers that have not been sent all of it
        self.is_dropped: bool = False

    def drop(self) -> None:
        self.is_dropped = True
        self.data = b""


@final
class Newsstand:
    """All news that waits for a subscriber, the oldest first."""

    def __init__(self) -> None:
        self.size: int = 0
        self.size_max: int = NO_BOUND
        self.subscriber_size_max: int = NO_BOUND  # what one subscriber may be behind by
        self.waiting: dict[int, News] = {}  # by their order
        self.next_number: int = 1
        self.behind: dict[int, TopicSubscriber] = {}  # those that something waits for, by connection
        self.stuck: list[TopicSubscriber] = []  # to be cut off: the rest of what they were being sent is gone
        self.dropped: int = 0  # news not given to a subscriber, each time
        # The publish that is being given out.
        self.last_topic: bytes = b""
        self.last_body: bytes = b""
        self.last: News | None = None
        self.last_v1: News | None = None

    def news_of(self, topic: bytes, body: bytes, is_v1: bool) -> News:
        """The one object of a publish: its subscribers are given it one after the other."""
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
        """One more subscriber waits for it."""
        if news.holders == 0:
            news.number = self.next_number
            self.next_number += 1
            self.waiting[news.number] = news
            self.size += news.size
        news.holders += 1
        self.size += REFERENCE_SIZE
        self.behind[subscriber.connection_no] = subscriber
        if self.size > self.size_max:
            self.make_room()

    def done(self, news: News) -> None:
        """One that waited for it was sent it, or does without."""
        self.size -= REFERENCE_SIZE
        news.holders -= 1
        if news.holders == 0 and not news.is_dropped:
            self.size -= news.size
            del self.waiting[news.number]

    def make_room(self) -> None:
        """Send what can be sent; then drop the oldest until there is room again for an eighth of what there may be."""
        for subscriber in list(self.behind.values()):
            subscriber.send_news()
        if self.size <= self.size_max:
            return
        enough = self.size_max - self.size_max // 8
        for news in list(self.waiting.values()):
            if (
                self.size <= enough or len(self.waiting) == 1
            ):  # the one that just came may be as large as a message can be
                break
            self.size -= news.size
            del self.waiting[news.number]
            news.drop()
        for subscriber in list(self.behind.values()):
            subscriber.skip_dropped()
