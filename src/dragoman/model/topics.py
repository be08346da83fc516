"""Publish and subscribe: a publish goes to every subscriber of a prefix of its topic.

A publish is not a fact of its own; once a second, one `published` fact per topic holds how many there were.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.limits import TOPICS_COUNTED_MAX
from dragoman.model.peer import Peer

ALL_DIALECTS: Final = -1


@final
class Topics:
    """Subscribers by prefix and by exact topic, and the publishes of the current second."""

    def __init__(self) -> None:
        self.prefixes: dict[bytes, dict[int, Peer]] = {}
        # The lengths of all prefixes, so that a topic is looked up once per length; and how many prefixes have each length.
        self.lengths: list[int] = []
        self.by_length: dict[int, int] = {}
        self.exact: dict[bytes, dict[int, Peer]] = {}  # subscribers of one topic only
        self.reserved: set[bytes] = set()  # only the broker may publish on these: subscribers rely on that
        self.counts: dict[bytes, int] = {}
        self.published: int = 0

    def subscribe(self, peer: Peer, prefix: bytes) -> None:
        peers = self.prefixes.get(prefix)
        if peers is None:
            peers = {}
            self.prefixes[prefix] = peers
            length = len(prefix)
            count = self.by_length.get(length, 0)
            self.by_length[length] = count + 1
            if count == 0:
                self.lengths.append(length)
        peers[id(peer)] = peer

    def unsubscribe(self, peer: Peer, prefix: bytes) -> None:
        peers = self.prefixes.get(prefix)
        if peers is None:
            return
        peers.pop(id(peer), None)
        if not peers:
            del self.prefixes[prefix]
            length = len(prefix)
            self.by_length[length] -= 1
            if self.by_length[length] == 0:
                del self.by_length[length]
                self.lengths.remove(length)

    def subscribe_exactly(self, peer: Peer, topic: bytes) -> None:
        """Subscribe to one topic, not to those it is a prefix of."""
        self.exact.setdefault(topic, {})[id(peer)] = peer

    def unsubscribe_exactly(self, peer: Peer, topic: bytes) -> None:
        peers = self.exact.get(topic)
        if peers is not None:
            peers.pop(id(peer), None)
            if not peers:
                del self.exact[topic]

    def publish(self, topic: bytes, body: bytes, dialect: int = ALL_DIALECTS) -> int:
        """Send a publish to its subscribers, once each; returns how many. `dialect`: only to peers of that dialect."""
        self.published += 1
        if topic in self.counts or len(self.counts) < TOPICS_COUNTED_MAX:
            self.counts[topic] = self.counts.get(topic, 0) + 1
        else:
            self.counts[b""] = self.counts.get(b"", 0) + 1
        reached: dict[int, Peer] = {}
        listeners = self.exact.get(topic)
        if listeners is not None:
            reached.update(listeners)
        for length in self.lengths:
            if length <= len(topic):
                peers = self.prefixes.get(topic[:length])
                if peers is not None:
                    reached.update(peers)
        recipients = 0
        for peer in reached.values():
            if dialect == ALL_DIALECTS or peer.dialect == dialect:
                peer.published(topic, body)
                recipients += 1
        return recipients

    def take_counts(self) -> dict[bytes, int]:
        counts = self.counts
        self.counts = {}
        return counts
