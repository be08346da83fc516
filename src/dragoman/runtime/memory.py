"""The memory budget: what the broker keeps for its peers, by kind, and what it does when that is too much.

    kind         share   beyond its share
    messages     1/2     bodies leave memory, large ones first; then waiting messages are 40 bytes each (core/state)
    uncommitted  1/8     clients are not read until the journal has caught up (runtime/broker)
    unfinished   1/8     the connections end whose message made no progress for longest, of equal ones the largest
    news         1/8     the oldest news is dropped for those that have not read it (dialects/news)
    outboxes     1/8     the connections of the peers that read least end

Shares of one kind may be taken by another. When all kinds together come near the budget, senders are not read any more, those that send
most first, and are read again in the order in which they were paused; near its end, new messages are refused with MEMORY_FULL. A peer
that workers are reached through is always read, because its answers set memory free; one that sent next to nothing is, because it may be
the worker that is missing; and no sender is paused for longer than PAUSED_NS_MAX, because a worker may wait for one of its own.

Counting costs nothing: each kind is kept up where it changes. Outboxes, which only the sockets know, are added up after so many bytes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog

from dragoman.core.crowding import memory_size
from dragoman.errors import MessageStalled, UnfinishedTooMuch
from dragoman.limits import (
    ANSWERS_HELD_SIZE_MAX,
    MEMORY_SHARE_MAX,
    MESSAGE_SIZE,
    PAUSED_NS_MAX,
    PAUSED_SHOWN_MAX,
    SENDER_SIZE_MIN,
    UNSYNCED_SIZE_SOON,
)
from dragoman.runtime import machine

if TYPE_CHECKING:
    from dragoman.runtime.broker import Broker
    from dragoman.runtime.connection import Connection

# A peer that has not read for so long does not read.
DEAF_NS: Final = 1_000_000_000

log = structlog.get_logger("dragoman")


class MemoryBudget:
    """One broker's. Asked every tick whether it is time to look; what it finds it does something about."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.size_max = 0
        self.uncommitted_max = 0
        self.message_size_max = 0
        self.outboxes_size = 0  # when they were last added up
        self.outboxes_dropped = 0  # connections that ended because they did not read
        self.unfinished_dropped = 0  # and because of a message that was cut short
        self.paused: dict[Connection, int] = {}  # senders, and since when
        self._step_size = 0
        self._looked_at = 0
        broker.hub.on_unfinished_over = self._on_unfinished_over

    def apply(self) -> None:
        """Take over settings, at the start and at a reload."""
        broker = self._broker
        limits = broker.config.limits
        size = self.size_max = limits.memory_max or default_size()
        self._step_size = size // 64
        self.uncommitted_max = min(limits.uncommitted_max, size // 8)
        self.message_size_max = min(limits.message_size_max, size // 8)
        # Before so much is unsynced that clients are paused for it.
        broker.journal.unsynced_size_soon = min(UNSYNCED_SIZE_SOON, self.uncommitted_max // 4)
        hub, settings = broker.hub, broker.core.settings
        hub.message_size_max = self.message_size_max
        hub.unfinished_max = size // 8
        hub.news.size_max = size // 8
        hub.news.subscriber_size_max = min(limits.out_buffer_max // 2, size // 8)
        settings.bodies_max = size // 4
        settings.large_bodies_max = size // 8
        settings.objects_max = size // 8 // MESSAGE_SIZE
        settings.messages_size_max = size - size // 8
        broker.core.settling.leftovers.size_max = min(ANSWERS_HELD_SIZE_MAX, size // 16)

    # -- counting ---------------------------------------------------------------------------------------------------------

    def sizes(self) -> dict[str, int]:
        """Bytes by kind."""
        broker = self._broker
        hub = broker.hub
        return {
            "messages": memory_size(broker.core.state),
            "uncommitted": broker.committer.uncommitted_size,
            "unfinished": hub.unfinished_size,
            "news": hub.news.size,
            "answers": broker.core.settling.leftovers.size,
            "outboxes": self.outboxes_size,
        }

    def check(self) -> None:
        """Every tick: look once enough bytes came and went that something may have changed."""
        if self._broker.hub.traffic_size - self._looked_at > self._step_size:
            self.look()

    def look(self) -> None:
        broker = self._broker
        hub = broker.hub
        self._looked_at = hub.traffic_size
        self._add_up_outboxes()
        if hub.news.stuck:
            stuck, hub.news.stuck = hub.news.stuck, []
            for session in stuck:
                if (connection := broker.connections.get(session)) is not None:
                    broker.on_overflow(connection)
        if self.outboxes_size > self.size_max // 8:
            self._end_deaf()
        used = sum(self.sizes().values())
        if used > self.size_max * 3 // 4:
            self._pause(used)
        if self.paused:
            self._resume(used)

    def _add_up_outboxes(self) -> None:
        """Also note of each connection since when nothing of what waits for it has gone."""
        broker = self._broker
        total, now_ns = 0, broker.clock.now_ns()
        for connection in broker.connections.values():
            size = connection.unsent_size
            if size < connection.unsent_seen or connection.unsent_seen == 0:
                connection.unsent_since_ns = now_ns
            connection.unsent_seen = size
            total += size
        self.outboxes_size = total + broker.hub.held_size() + broker.batch_size

    # -- what is too much ---------------------------------------------------------------------------------------------------

    def _end_deaf(self) -> None:
        """End connections that do not read, those that most waits for first, until the rest is within its share."""
        broker = self._broker
        deaf_ns = broker.clock.now_ns() - DEAF_NS
        # Twice its share, and there is no time to see who reads slowly and who not at all.
        is_urgent = self.outboxes_size > self.size_max // 4
        deaf = [
            (connection.unsent_seen, connection)
            for connection in broker.connections.values()
            if connection.unsent_seen > 0 and (is_urgent or connection.unsent_since_ns < deaf_ns)
        ]
        for size, connection in sorted(deaf, key=_size, reverse=True):
            if self.outboxes_size <= self.size_max // 8:
                return
            self.outboxes_size -= size
            self.outboxes_dropped += 1
            broker.on_overflow(connection)

    def _on_unfinished_over(self) -> None:
        """A message that is cut short made them too many: those go that have made no progress for longest, of equal ones the largest."""
        hub = self._broker.hub
        for session in sorted(hub.unfinished.values(), key=lambda s: (s.progress_ns, -s.unfinished_size)):
            if hub.unfinished_size <= hub.unfinished_max:
                return
            size = session.unfinished_size
            self._abandon(session, UnfinishedTooMuch(size, hub.unfinished_max))

    def end_stalled(self, before_ns: int) -> None:
        """End connections whose message has made no progress since an instant. Whom we do not read cannot make any."""
        broker = self._broker
        for session in list(broker.hub.unfinished.values()):
            connection = broker.connections.get(session)
            if connection is None or not connection.is_read:
                session.progress_ns = broker.core.now_ns
            elif session.is_cut_short and session.progress_ns < before_ns:
                self._abandon(session, MessageStalled(session.unfinished_size))

    def _abandon(self, session: Any, fault: MessageStalled | UnfinishedTooMuch) -> None:
        session.abandon(fault)
        self.unfinished_dropped += 1
        if (connection := self._broker.connections.get(session)) is not None:
            self._broker.on_fault(connection, fault)

    # -- senders ------------------------------------------------------------------------------------------------------------

    def each_second(self) -> None:
        for session in self._broker.connections:
            session.received_before = session.received_mark
            session.received_mark = session.received_size
        self.look()

    def _pause(self, used: int) -> None:
        """Stop reading the senders that sent half of what came in the last seconds, the largest first; near the end, all."""
        senders = []
        total = 0
        for session, connection in self._broker.connections.items():
            size = session.received_size - session.received_before
            if size >= SENDER_SIZE_MIN and not connection.is_sender_paused and not session.holds_work():
                senders.append((size, connection))
                total += size
        enough = total if used > self.size_max * 13 // 16 else total // 2
        if senders and not self.paused:
            log.warning("memory is short: senders are paused", code="MEMORY_SHORT", used=used, memory_max=self.size_max)
        for size, connection in sorted(senders, key=_size, reverse=True):
            if enough <= 0:
                return
            enough -= size
            self.paused[connection] = self._broker.clock.now_ns()
            connection.is_sender_paused = True
            self._broker.balance(connection)

    def _resume(self, used: int) -> None:
        """Read again: a tenth of those that wait longest once there is room, and whoever has waited long in any case."""
        count = len(self.paused) // 10 + 1 if used < self.size_max * 5 // 8 else 0
        long_ago_ns = self._broker.clock.now_ns() - PAUSED_NS_MAX
        for connection, since_ns in list(self.paused.items()):
            if count <= 0 and since_ns > long_ago_ns:
                break
            count -= 1
            del self.paused[connection]
            connection.is_sender_paused = False
            self._broker.balance(connection)
        if not self.paused:
            log.info("memory is sufficient again: all senders are read", used=used, memory_max=self.size_max)

    def forget(self, connection: Connection) -> None:
        self.paused.pop(connection, None)

    def sweep(self) -> None:
        """Ten times a second."""
        if self.paused:
            self.look()

    def view(self) -> dict[str, object]:
        """For `status`."""
        sizes = self.sizes()
        names = [connection.session.remote for connection in self.paused if connection.session is not None]
        return {
            "resident": resident_size(),
            "max": self.size_max,
            "used": sum(sizes.values()),
            **sizes,
            "paused": len(self.paused),
            "paused_peers": names[:PAUSED_SHOWN_MAX],
            "news_dropped": self._broker.hub.news.dropped,
            "outboxes_dropped": self.outboxes_dropped,
            "unfinished_dropped": self.unfinished_dropped,
        }


def default_size() -> int:
    """A quarter of what this process may use, and not more than MEMORY_SHARE_MAX."""
    return min(machine.memory_size() // 4 or MEMORY_SHARE_MAX, MEMORY_SHARE_MAX)


def resident_size() -> int:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def _size(pair: tuple[int, Connection]) -> int:
    return pair[0]
