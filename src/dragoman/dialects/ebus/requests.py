"""The table of requests by client and rid, so that a rid sent again is the same request and never runs twice.

A request is identified by its client and its rid. While it is open, the same rid again attaches to it; once it has ended, its outcome is
remembered for a while and sent again. A client is identified by its address (identity at a listener, or just its connection). The original's
clients reconnect with a new identity and send unanswered requests again, so a request of a connection that has ended is an *orphan*: the
first client that sends its rid, service and data unchanged takes it over.

While a client has no connection, its `ClientRecord` is registered at its address and receives the outcomes. A request that a client took
over from another has that client's `ClientRecord` as its client from then on, because the message keeps the first client's address.

When a client with few requests connects or disconnects, the table iterates over them. With many that would block the event loop: its
requests are then found by its address, and its rids are looked up in its own tables (`crowds`), not in the common table of orphans.

Outcomes are remembered in batches of up to SHELF_MAX and forgotten a batch at a time: forgetting them one by one would touch as much cold
memory as the rest of a request's processing.
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from mypy_extensions import i64

from dragoman.dialects.ebus.data import reject_data
from dragoman.model.exchange import Exchange
from dragoman.model.message import Message
from dragoman.model.peer import Peer
from dragoman.model.units import SECOND_NS
from dragoman.model.words import EBUS

# A body up to this size is remembered by its hash: computing it costs less than keeping the body.
HASHED_SIZE_MAX: Final = 512
# An outcome is remembered for this many times the request's `stales` time.
STALES_KEPT: Final = 3
# The most rids of a client to iterate over when it connects or disconnects: a millisecond or two.
WALKED_MAX: Final = 2000
# Bytes compared without a match when searching for the orphan that equals a request; then the search stops.
COMPARED_SIZE_MAX: Final = 1024 * 1024
# Disconnected clients remembered per rid; only the newest are considered when the rid is sent again.
ORPHANS_PER_RID_MAX: Final = 32
# Outcomes in one batch: as many as a dict holds whose index fits into the processor's inner caches.
SHELF_MAX: Final = 20_000
# A batch holds at most 1/SHELF_PART of what may be remembered, so that half is left when a batch is forgotten.
SHELF_PART: Final = 2
# A batch older than this, and than this fraction of the time its outcomes are kept, gets no more outcomes: they expire together, and a
# client that sends requests all day has few batches to search, however long its answers are kept.
SHELF_NS: Final = SECOND_NS
SHELF_TIME_PART: Final = 16
# How often expired batches are searched for.
LOOK_NS: Final = SECOND_NS


@final
class Ended:
    """The outcome of a request, with its body for comparison: a large one itself, a small one by its hash."""

    def __init__(
        self, value: bytes, has_value: bool, is_rejected: bool, digest: i64, body: bytes, until_ns: int
    ) -> None:
        self.value = value
        self.has_value = has_value
        self.is_rejected = is_rejected
        self.digest = digest
        self.body = body
        self.until_ns = until_ns  # from then on the same rid is a new request


@final
class OutcomeBatch:
    """Outcomes of one client that are forgotten together."""

    def __init__(self, asker: ClientRecord, began_ns: int) -> None:
        self.asker = asker
        self.began_ns = began_ns
        self.closes_ns: int = began_ns + SHELF_NS  # no outcomes are added after this
        self.until_ns: int = 0
        self.size: int = 0  # bytes of values and bodies
        self.ended: dict[bytes, Ended] = {}


@final
class ClientRecord(Peer):
    """A client in the table, across all its connections."""

    def __init__(self, requests: Requests, address: bytes) -> None:
        super().__init__(EBUS, "ebus.client")
        self.requests = requests
        self.address = address
        self.is_standing_in: bool = False  # it has no connection
        self.open: dict[bytes, int] = {}  # rid → number of its message
        self.shelves: list[OutcomeBatch] = []  # the newest last
        self.unsaid: list[bytes] = []  # rids of outcomes that came while it had no connection
        self.connections: list[Peer] = []
        self.envelope: int = (
            1  # empty frames before the signature of its last request; after a restart, one as in the original
        )

    def find(self, rid: bytes) -> Ended | None:
        """The outcome of its request with this rid, if it has ended; the client must have a connection."""
        for shelf in self.shelves:
            ended = shelf.ended.get(rid)
            if ended is not None:
                if ended.until_ns > self.requests.exchange.now_ns:
                    return ended
                del shelf.ended[rid]
                self.requests.take_off(shelf, ended)
        return None

    def has(self, rid: bytes) -> bool:
        return rid in self.open or any(rid in shelf.ended for shelf in self.shelves)

    def is_empty(self) -> bool:
        return not self.open and not self.shelves

    def has_few(self) -> bool:
        count = len(self.open)
        for shelf in self.shelves:
            count += len(shelf.ended)
        return count <= WALKED_MAX

    def answered(self, message: Message, value: bytes) -> None:
        if self.connections:
            self.connections[-1].answered(message, value)
            return
        self.unsaid.append(message.client_id)
        self.requests.ended(self, message, value, True, False)

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        if self.connections:
            self.connections[-1].failed_for_good(message, outcome, reason, value)
            return
        self.unsaid.append(message.client_id)
        value = reject_data(reason, value, self.requests.is_json)
        self.requests.ended(self, message, value, len(value) > 0, True)


@final
class Requests:
    """The table of a broker's ebus clients and their requests."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.askers: dict[bytes, ClientRecord] = {}
        self.orphans: dict[bytes, list[ClientRecord]] = {}  # rid → clients without a connection that sent it
        self.crowds: dict[
            bytes, ClientRecord
        ] = {}  # by address: clients without a connection that have too many requests for `orphans`
        self.shelves: deque[OutcomeBatch] = deque()  # of all clients, the oldest first
        self.count: int = 0  # outcomes in them
        self.size: int = 0  # bytes in them
        self.kept_ns: int = 5 * SECOND_NS
        self.answers_max: int = 0
        self.size_max: int = 0
        self.is_json: bool = False
        self.next_look_ns: int = 0
        self.emptied: list[
            ClientRecord
        ] = []  # checked by the next sweep, because outcomes arrive in the middle of the core's work
        self.is_loaded: bool = False

    def load(self) -> None:
        """Load the requests accepted before a restart: all are orphans until their clients reconnect. Every request expires."""
        if self.is_loaded:
            return
        self.is_loaded = True
        for m in self.exchange.open_messages(EBUS):
            if m.is_answerable:
                self.asker_of(m.address).open[m.client_id] = m.number
        for asker in self.askers.values():
            self.stand_in(asker)

    def asker_of(self, address: bytes) -> ClientRecord:
        asker = self.askers.get(address)
        if asker is None:
            asker = ClientRecord(self, address)
            self.askers[address] = asker
        return asker

    # -- clients come and go --------------------------------------------------------------------------------------------

    def knows(self, address: bytes) -> bool:
        if not self.is_loaded:
            self.load()
        return address in self.askers

    def arrived(self, client: Peer) -> ClientRecord:
        """Register a client's connection; it receives the outcomes of requests from earlier connections again."""
        asker = self.asker_of(client.address)
        if asker.is_standing_in:
            has_few = asker.address not in self.crowds
            self.stand_down(asker)
            if has_few:
                for rid, number in asker.open.items():
                    m = self.exchange.by_number(number)
                    if m is not None:
                        self.claim(m, rid, hearer(m, asker, client))
        asker.connections.append(client)
        return asker

    def take_unsaid(self, asker: ClientRecord) -> list[bytes]:
        unsaid = asker.unsaid
        asker.unsaid = []
        return unsaid

    def left(self, asker: ClientRecord, client: Peer) -> None:
        """Unregister a connection that has ended: another one of the same client receives the outcomes, or the record itself does."""
        asker.connections.remove(client)
        if asker.connections:
            other = asker.connections[-1]
            for number in asker.open.values() if len(asker.open) <= WALKED_MAX else []:
                m = self.exchange.by_number(number)
                if m is not None and m.client is client:
                    self.exchange.readdress(m, hearer(m, asker, other))
        elif asker.is_empty():
            del self.askers[asker.address]
        else:
            self.stand_in(asker)

    def stand_in(self, asker: ClientRecord) -> None:
        asker.is_standing_in = True
        self.exchange.hello(asker)
        if not asker.has_few():
            self.crowds[asker.address] = asker
            return
        for rid, number in asker.open.items():
            self.orphan(rid, asker)
            self.readdress(rid, number, asker)
        for shelf in asker.shelves:
            for rid in shelf.ended:
                self.orphan(rid, asker)

    def stand_down(self, asker: ClientRecord) -> None:
        asker.is_standing_in = False
        self.exchange.goodbye(asker)
        asker.is_connected = True  # messages that have it as their client reach a connection through it
        if self.crowds.pop(asker.address, None) is not None:
            return
        for rid in asker.open:
            self.unorphan(rid, asker)
        for shelf in asker.shelves:
            for rid in shelf.ended:
                self.unorphan(rid, asker)

    def readdress(self, rid: bytes, number: int, client: Peer) -> None:
        m = self.exchange.by_number(number)
        if m is not None:
            self.claim(m, rid, client)

    def claim(self, m: Message, rid: bytes, client: Peer) -> None:
        """Redirect a request's outcome to a connection of its client. A damaged record has lost its rid; this table still has it."""
        if m.is_bare:
            m.client_id = rid
        self.exchange.readdress(m, client)

    def orphan(self, rid: bytes, asker: ClientRecord) -> None:
        orphans = self.orphans.get(rid)
        if orphans is None:
            self.orphans[rid] = [asker]
        else:
            orphans.append(asker)
            if len(orphans) > ORPHANS_PER_RID_MAX:
                del orphans[0]  # it still gets its outcome if it reconnects itself

    def unorphan(self, rid: bytes, asker: ClientRecord) -> None:
        orphans = self.orphans.get(rid)
        if orphans is None or asker not in orphans:
            return
        orphans.remove(asker)
        if not orphans:
            del self.orphans[rid]

    # -- requests -------------------------------------------------------------------------------------------------------

    def has_orphans(self) -> bool:
        return len(self.orphans) > 0 or len(self.crowds) > 0

    def orphans_of(self, rid: bytes) -> list[ClientRecord]:
        found = self.orphans.get(rid, [])
        if self.crowds:
            found = found + [asker for asker in self.crowds.values() if asker.has(rid)]
        return found

    def adopt(self, asker: ClientRecord, rid: bytes, queue: bytes, body: bytes) -> None:
        """Take over the orphan that is identical to this request, if there is one."""
        compared_size = 0
        for before in self.orphans_of(rid):
            number = before.open.get(rid, 0)
            if number != 0:
                if compared_size > COMPARED_SIZE_MAX:
                    return  # many requests that differ only in large data are not from a client that reconnected
                if self.is_open_same(number, queue, body):
                    del before.open[rid]
                    asker.open[rid] = number
                    self.readdress(rid, number, asker)
                    self.moved(rid, before)
                    return
                compared_size += len(body)
                continue
            for shelf in before.shelves:
                ended = shelf.ended.get(rid)
                if ended is not None and ended.until_ns > self.exchange.now_ns and is_ended_same(ended, queue, body):
                    del shelf.ended[rid]
                    self.take_off(shelf, ended)
                    self.keep(asker, rid, ended)
                    self.moved(rid, before)
                    return

    def moved(self, rid: bytes, before: ClientRecord) -> None:
        if before.address not in self.crowds:
            self.unorphan(rid, before)
        self.emptied.append(before)

    def is_open_same(self, number: int, queue: bytes, body: bytes) -> bool:
        m = self.exchange.fetch(number)
        return m is not None and m.queue == queue and m.body_size == len(body) and self.exchange.body_of(m) == body

    def ended(self, asker: ClientRecord, message: Message, value: bytes, has_value: bool, is_rejected: bool) -> None:
        """Remember a request's outcome, within the time and size limits of the settings."""
        rid = message.client_id
        if asker.open.get(rid, 0) != message.number:
            return
        del asker.open[rid]
        body = message.body if message.is_loaded else self.exchange.body_of(message)
        digest = digest_of(message.queue, body)
        kept_ns = STALES_KEPT * (message.expires_ns - message.accepted_ns)
        until_ns = self.exchange.now_ns + (kept_ns if kept_ns > self.kept_ns else self.kept_ns)
        self.keep(asker, rid, Ended(value, has_value, is_rejected, digest, large(body), until_ns))

    def keep(self, asker: ClientRecord, rid: bytes, ended: Ended) -> None:
        shelves = asker.shelves
        shelf = shelves[-1] if shelves else None
        if shelf is None or self.is_full(shelf):
            shelf = OutcomeBatch(asker, self.exchange.now_ns)
            shelves.append(shelf)
            self.shelves.append(shelf)
        shelf.ended[rid] = ended
        if ended.until_ns > shelf.until_ns:
            shelf.until_ns = ended.until_ns
            closes_ns = shelf.began_ns + (ended.until_ns - shelf.began_ns) // SHELF_TIME_PART
            if closes_ns > shelf.closes_ns:
                shelf.closes_ns = closes_ns
        size = len(ended.value) + len(ended.body)
        shelf.size += size
        self.size += size
        self.count += 1
        while self.count > self.answers_max or self.size > self.size_max:
            self.forget(self.shelves.popleft())

    def is_full(self, shelf: OutcomeBatch) -> bool:
        count = len(shelf.ended)
        return (
            count >= SHELF_MAX
            or count * SHELF_PART >= self.answers_max
            or shelf.size * SHELF_PART >= self.size_max
            or self.exchange.now_ns > shelf.closes_ns
        )

    def take_off(self, shelf: OutcomeBatch, ended: Ended) -> None:
        size = len(ended.value) + len(ended.body)
        shelf.size -= size
        self.size -= size
        self.count -= 1

    def forget(self, shelf: OutcomeBatch) -> None:
        """Forget a batch. A forgotten request that is sent again runs a second time."""
        self.count -= len(shelf.ended)
        self.size -= shelf.size
        asker = shelf.asker
        asker.shelves.remove(shelf)
        if not asker.connections:
            if asker.address not in self.crowds:
                for rid in shelf.ended:
                    self.unorphan(rid, asker)
            self.emptied.append(asker)

    def sweep(self, now_ns: int) -> None:
        if now_ns >= self.next_look_ns:
            self.next_look_ns = now_ns + LOOK_NS
            self.forget_old(now_ns)
        if self.emptied:
            emptied = self.emptied
            self.emptied = []
            for asker in emptied:
                # Remove a client without a connection and without requests.
                if not asker.connections and asker.is_empty() and self.askers.get(asker.address) is asker:
                    del self.askers[asker.address]
                    self.crowds.pop(asker.address, None)
                    self.exchange.goodbye(asker)

    def forget_old(self, now_ns: int) -> None:
        """Forget expired batches anywhere in the queue: one that is kept for days must not keep those behind it."""
        old = [shelf for shelf in self.shelves if shelf.until_ns <= now_ns]
        if old:
            self.shelves = deque([shelf for shelf in self.shelves if shelf.until_ns > now_ns])
            for shelf in old:
                self.forget(shelf)


def hearer(m: Message, asker: ClientRecord, client: Peer) -> Peer:
    """The peer that receives a request's outcome: the connection, if the message has its address; a message taken over from another client has
    that client's address, so it gets the record, which forwards to a connection or stores the outcome."""
    return client if m.address == client.address else asker


def is_ended_same(ended: Ended, queue: bytes, body: bytes) -> bool:
    return ended.digest == digest_of(queue, body) and ended.body == large(body)


def digest_of(queue: bytes, body: bytes) -> i64:
    """A hash of service and body. Python's hash is keyed per process, so a client cannot construct two bodies that share one."""
    digest: i64 = hash(queue)
    if len(body) <= HASHED_SIZE_MAX:
        digest ^= i64(hash(body)) >> 1  # shifted: a body equal to the service's name must not cancel it out
    return digest


def large(body: bytes) -> bytes:
    """The body if it is remembered itself, else empty."""
    return body if len(body) > HASHED_SIZE_MAX else b""
