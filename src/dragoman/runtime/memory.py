"""The memory budget: how much memory the broker uses for its peers, by kind, and what happens above the limits.

    kind         share   above its share
    messages     1/2     bodies are kept on disk only, large ones first; then waiting messages take 40 bytes each (core/state/state)
    uncommitted  1/8     clients are not read until the journal has caught up (runtime/broker)
    unfinished   1/8     senders wait until the rest of their message fits; connections that do not continue theirs are closed (runtime/unfinished)
    news         1/8     the oldest news is dropped for subscribers that have not read it (dialects/news)
    outboxes     1/8     the connections of the peers that read least are closed

A kind may use shares that others leave free. When all kinds together approach the budget, senders are paused, those that send
most first, and resumed in the order in which they were paused; near its end, new messages are refused with MEMORY_FULL. A peer
that leads to workers is always read, because its answers free memory. A peer that sent almost nothing is read too, because it may be
the missing worker. No sender is paused for longer than PAUSED_NS_MAX, because a worker may wait for one of its messages.

Sizes are counters updated at each change. Only outboxes, whose size the sockets know, are summed, each time after a number of bytes of traffic.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

import structlog

from dragoman import limits
from dragoman.errors import MessageStalled, UnfinishedTooMuch
from dragoman.runtime.process import machine
from dragoman.runtime.unfinished import UnfinishedLine

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.dialects.session import Session
    from dragoman.runtime.broker import Broker
    from dragoman.runtime.connection import Connection

log = structlog.get_logger("dragoman")


class MemoryBudget:
    """One per broker. `check` runs every tick and decides whether to look at the sizes; `look` acts on them."""

    def __init__(self, broker: Broker, resident_size: Callable[[], int] | None) -> None:
        self._broker = broker
        self._resident_size = resident_size
        self.size_max = 0
        self.uncommitted_max = 0
        self.message_size_max = 0
        self.outboxes_size = 0  # at the last sum
        self.outboxes_dropped = 0  # connections closed because they did not read
        self.unfinished_dropped = 0  # and because of an unfinished message
        self.paused: dict[Connection, int] = {}  # paused senders, and since when
        self._step_size = 0
        self._looked_at = 0  # the last look: as traffic count, and as time
        self._looked_ns = 0
        self._trimmed_ns = 0  # when freed memory was last returned, and what was resident then
        self._trimmed_resident = 0
        self.unfinished = UnfinishedLine(broker, self._end_unfinished)

    def apply(self) -> None:
        """Apply settings, at start and at a reload."""
        broker = self._broker
        config = broker.config.limits
        size = self.size_max = config.memory_max or default_size()
        self._step_size = size // 64
        self.uncommitted_max = min(config.uncommitted_max, size // 8)
        self.message_size_max = min(config.message_size_max, size // 8)
        # Sync before the unsynced size reaches the limit that pauses clients.
        broker.journal.unsynced_size_soon = min(limits.UNSYNCED_SIZE_SOON, self.uncommitted_max // 4)
        outboxes, settings = broker.outboxes, broker.core.settings
        outboxes.message_size_max = self.message_size_max
        outboxes.unfinished_max = size // 8
        self.unfinished.apply(size // 8, self.message_size_max)
        outboxes.news.size_max = size // 8
        outboxes.news.subscriber_size_max = min(config.out_buffer_max // 2, size // 8)
        settings.bodies_max = size // 4
        settings.large_bodies_max = size // 8
        settings.objects_max = size // 8 // limits.MESSAGE_SIZE
        settings.messages_size_max = size - size // 8
        broker.core.settling.undelivered.size_max = min(limits.ANSWERS_HELD_SIZE_MAX, size // 16)

    def sizes(self) -> dict[str, int]:
        """Bytes by kind."""
        broker = self._broker
        outboxes = broker.outboxes
        return {
            "messages": broker.core.state.memory_size(),
            "uncommitted": broker.committer.unsynced_size,
            "unfinished": outboxes.unfinished_size,
            "news": outboxes.news.size,
            "answers": broker.core.settling.undelivered.size,
            "outboxes": self.outboxes_size,
        }

    def check(self) -> None:
        """Called every tick: look once there was enough traffic that something may have changed."""
        if self._broker.outboxes.traffic_size - self._looked_at > self._step_size:
            self.look()
        if self.unfinished.is_crowded:
            self.unfinished.check()

    def look(self) -> None:
        broker = self._broker
        outboxes = broker.outboxes
        self._looked_at = outboxes.traffic_size
        self._looked_ns = broker.clock.now_ns()
        self._add_up_outboxes()
        if outboxes.news.stuck:
            stuck, outboxes.news.stuck = outboxes.news.stuck, []
            for session in stuck:
                if (connection := broker.connections.get(session)) is not None:
                    broker.on_overflow(connection)
        if self.outboxes_size > self.size_max // 8:
            self._end_slow_readers()
        used = sum(self.sizes().values())
        if used > self.size_max * 3 // 4:
            self._pause(used)
        if self.paused:
            self._resume(used)

    def _add_up_outboxes(self) -> None:
        """Sum the pending output, and note for each connection since when it has not decreased."""
        broker = self._broker
        total, now_ns = 0, broker.clock.now_ns()
        for connection in broker.connections.values():
            size = connection.unsent_size
            if size < connection.unsent_seen or connection.unsent_seen == 0:
                connection.unsent_since_ns = now_ns
            connection.unsent_seen = size
            total += size
        self.outboxes_size = total + broker.outboxes.held_size() + broker.batch_size

    def _end_slow_readers(self) -> None:
        """Close connections that do not read, those with most pending output first, until the rest is within the share."""
        broker = self._broker
        before_ns = broker.clock.now_ns() - limits.DEAF_NS
        # At twice the share there is no time to distinguish slow readers from those that do not read at all.
        is_urgent = self.outboxes_size > self.size_max // 4
        slow = [
            (connection.unsent_seen, connection)
            for connection in broker.connections.values()
            if connection.unsent_seen > 0 and (is_urgent or connection.unsent_since_ns < before_ns)
        ]
        for size, connection in sorted(slow, key=itemgetter(0), reverse=True):
            if self.outboxes_size <= self.size_max // 8:
                return
            self.outboxes_size -= size
            self.outboxes_dropped += 1
            broker.on_overflow(connection)

    def _end_unfinished(self, session: Session) -> None:
        self._abandon(session, UnfinishedTooMuch(session.unfinished_size, self._broker.outboxes.unfinished_max))

    def end_stalled(self, before_ns: int) -> None:
        """Close connections whose message has made no progress since `before_ns`. Connections that are not being read are exempt."""
        broker = self._broker
        for session in list(broker.outboxes.unfinished.values()):
            connection = broker.connections.get(session)
            if connection is not None and connection.waits_its_turn:
                continue  # its timeout continues when it is read
            if connection is None or not connection.is_read:
                session.progress_ns = broker.core.now_ns
            elif session.is_cut_short and session.progress_ns < before_ns:
                self._abandon(session, MessageStalled(session.unfinished_size))

    def _abandon(self, session: Session, fault: MessageStalled | UnfinishedTooMuch) -> None:
        session.abandon(fault)
        self.unfinished_dropped += 1
        if (connection := self._broker.connections.get(session)) is not None:
            self._broker.on_fault(connection, fault)

    def each_second(self) -> None:
        for session in self._broker.connections:
            session.received_before = session.received_mark
            session.received_mark = session.received_size
        self.look()
        if self._resident_size is not None:
            self._return_free_memory(self._resident_size())

    def _return_free_memory(self, resident: int) -> None:
        """The C library keeps memory that large messages freed between small ones: after many of them, several times what is used."""
        unused = resident - limits.PROCESS_SIZE - sum(self.sizes().values())
        step = min(self.size_max // 4, limits.UNUSED_SIZE_MAX)
        has_grown = resident - self._trimmed_resident > step and resident > self.size_max // 2
        is_due = has_grown or resident > self.size_max or self._looked_ns - self._trimmed_ns > limits.TRIM_INTERVAL_NS
        if unused > step and is_due:
            machine.return_free_memory()
            self._trimmed_ns = self._looked_ns
            self._trimmed_resident = machine.resident_size()

    def _pause(self, used: int) -> None:
        """Pause the senders of half of the bytes received in the last seconds, largest first; near the limit, all senders."""
        senders = []
        total = 0
        for session, connection in self._broker.connections.items():
            size = session.received_size - session.received_before
            if size >= limits.SENDER_SIZE_MIN and not connection.is_sender_paused and not session.holds_work():
                senders.append((size, connection))
                total += size
        enough = total if used > self.size_max * 13 // 16 else total // 2
        if senders and not self.paused:
            log.warning("memory is short: senders are paused", code="MEMORY_SHORT", used=used, memory_max=self.size_max)
        for size, connection in sorted(senders, key=itemgetter(0), reverse=True):
            if enough <= 0:
                return
            enough -= size
            self.paused[connection] = self._broker.clock.now_ns()
            connection.is_sender_paused = True
            self._broker.balance(connection)

    def _resume(self, used: int) -> None:
        """Resume senders: once there is space, the tenth that has been paused longest, and in any case those paused for PAUSED_NS_MAX."""
        count = len(self.paused) // 10 + 1 if used < self.size_max * 5 // 8 else 0
        long_ago_ns = self._broker.clock.now_ns() - limits.PAUSED_NS_MAX
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
        """Periodic work, about ten times a second."""
        if self.paused:
            self.look()
        if self.unfinished.is_crowded:
            self.unfinished.look()

    def view(self) -> dict[str, object]:
        """For `status`."""
        sizes = self.sizes()
        paused = [*self.paused, *(each for each in self.unfinished.waiting if each not in self.paused)]
        names = [connection.session.remote for connection in paused if connection.session is not None]
        return {
            "resident": machine.resident_size(),
            "max": self.size_max,
            "used": sum(sizes.values()),
            **sizes,
            "paused": len(paused),
            "paused_peers": names[: limits.PAUSED_SHOWN_MAX],
            "news_dropped": self._broker.outboxes.news.dropped,
            "outboxes_dropped": self.outboxes_dropped,
            "unfinished_dropped": self.unfinished_dropped,
        }


def default_size() -> int:
    """A quarter of the memory this process may use, and at most MEMORY_SHARE_MAX."""
    return min(machine.memory_size() // 4 or limits.MEMORY_SHARE_MAX, limits.MEMORY_SHARE_MAX)
