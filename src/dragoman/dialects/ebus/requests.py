"""The table of requests by client and rid, so that a rid sent again is the same request and never runs twice.

A request is identified by its client and its rid. While it is open, the same rid again attaches to it; once it has ended, its outcome is
remembered for a while and sent again. A client is identified by its address (identity at a listener, or just its connection). The original's
clients reconnect with a new identity and send unanswered requests again, so a request of a connection that has ended is an *orphan*: the
first client that sends its rid, service and data unchanged takes it over.

While a client has no connection, its `ClientRecord` is registered at its address and receives the outcomes. A request that a client took
over from another has that client's `ClientRecord` as its client from then on, because the message still has the first client's address.

When a client with few requests connects or disconnects, the table iterates over them. With many that would block the event loop: its
requests are then found by its address, and its rids are looked up in its own tables (`large_records`), not in the common table of orphans.

Outcomes are remembered in batches of up to BATCH_MAX and forgotten a batch at a time: forgetting them one by one would touch as much cold
memory as the rest of a request's processing.
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from mypy_extensions import i64

from dragoman.dialects.ebus.data import reject_data
from dragoman.model.enums import EBUS
from dragoman.model.exchange import Exchange
from dragoman.model.message import Message
from dragoman.model.peer import Peer
from dragoman.model.units import SECOND_NS

# A body up to this size is remembered by its hash: computing it costs less than storing the body.
HASHED_SIZE_MAX: Final = 512
# An outcome is remembered for this many times the request's `stales` time.
STALES_STORED: Final = 3
# The most rids of a client to iterate over when it connects or disconnects: a millisecond or two.
WALKED_MAX: Final = 2000
# Bytes compared without a match when searching for the orphan that equals a request; then the search stops.
COMPARED_SIZE_MAX: Final = 1024 * 1024
# Disconnected clients remembered per rid; only the newest are considered when the rid is sent again.
ORPHANS_PER_RID_MAX: Final = 32
# Outcomes in one batch: as many as a dict has whose index fits into the processor's inner caches.
BATCH_MAX: Final = 20_000
# A batch has at most 1/BATCH_PART of what may be remembered, so that half is left when a batch is forgotten.
BATCH_PART: Final = 2
# A batch older than this, and than this fraction of the time its outcomes are stored, gets no more outcomes: they expire together, and a
# client that sends requests all day has few batches to search, however long its answers are stored.
BATCH_NS: Final = SECOND_NS
BATCH_TIME_PART: Final = 16
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

    def __init__(self, client_record: ClientRecord, began_ns: int) -> None:
        self.client_record = client_record
        self.began_ns = began_ns
        self.closes_ns: int = began_ns + BATCH_NS  # no outcomes are added after this
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
        self.is_away: bool = False  # it has no connection
        self.open: dict[bytes, int] = {}  # rid → number of its message
        self.batches: list[OutcomeBatch] = []  # the newest last
        self.undelivered: list[bytes] = []  # rids of outcomes that came while it had no connection
        self.connections: list[Peer] = []
        # Empty frames before the signature of its last request; after a restart, one as in the original.
        self.envelope: int = 1

    def find(self, rid: bytes) -> Ended | None:
        """The outcome of its request with this rid, if it has ended; the client must have a connection."""
        for batch in self.batches:
            ended = batch.ended.get(rid)
            if ended is not None:
                if ended.until_ns > self.requests.exchange.now_ns:
                    return ended
                del batch.ended[rid]
                self.requests.count_out(batch, ended)
        return None

    def has(self, rid: bytes) -> bool:
        return rid in self.open or any(rid in batch.ended for batch in self.batches)

    def is_empty(self) -> bool:
        return not self.open and not self.batches

    def has_few(self) -> bool:
        count = len(self.open)
        for batch in self.batches:
            count += len(batch.ended)
        return count <= WALKED_MAX

    def answered(self, message: Message, value: bytes) -> None:
        if self.connections:
            self.connections[-1].answered(message, value)
            return
        self.undelivered.append(message.client_id)
        self.requests.ended(self, message, value, True, False)

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        if self.connections:
            self.connections[-1].failed_for_good(message, outcome, reason, value)
            return
        self.undelivered.append(message.client_id)
        value = reject_data(reason, value, self.requests.is_json)
        self.requests.ended(self, message, value, len(value) > 0, True)


@final
class Requests:
    """The table of a broker's ebus clients and their requests."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.client_records: dict[bytes, ClientRecord] = {}
        self.orphans: dict[bytes, list[ClientRecord]] = {}  # rid → clients without a connection that sent it
        # By address: clients without a connection that have too many requests for `orphans`.
        self.large_records: dict[bytes, ClientRecord] = {}
        self.batches: deque[OutcomeBatch] = deque()  # of all clients, the oldest first
        self.count: int = 0  # outcomes in them
        self.size: int = 0  # bytes in them
        self.stored_ns: int = 5 * SECOND_NS
        self.answers_max: int = 0
        self.size_max: int = 0
        self.is_json: bool = False
        self.next_look_ns: int = 0
        # Checked by the next sweep, because outcomes arrive in the middle of the core's work.
        self.emptied: list[ClientRecord] = []
        self.is_loaded: bool = False

    def load(self) -> None:
        """Load the requests accepted before a restart: all are orphans until their clients reconnect. Every request expires."""
        if self.is_loaded:
            return
        self.is_loaded = True
        for m in self.exchange.open_messages(EBUS):
            if m.is_answerable:
                self.client_record_of(m.address).open[m.client_id] = m.number
        for client_record in self.client_records.values():
            self.went_away(client_record)

    def client_record_of(self, address: bytes) -> ClientRecord:
        client_record = self.client_records.get(address)
        if client_record is None:
            client_record = ClientRecord(self, address)
            self.client_records[address] = client_record
        return client_record

    # -- clients come and go --------------------------------------------------------------------------------------------

    def knows(self, address: bytes) -> bool:
        if not self.is_loaded:
            self.load()
        return address in self.client_records

    def arrived(self, client: Peer) -> ClientRecord:
        """Register a client's connection; it receives the outcomes of requests from earlier connections again."""
        client_record = self.client_record_of(client.address)
        if client_record.is_away:
            has_few = client_record.address not in self.large_records
            self.came_back(client_record)
            if has_few:
                for rid, number in client_record.open.items():
                    m = self.exchange.by_number(number)
                    if m is not None:
                        self.claim(m, rid, recipient_of(m, client_record, client))
        client_record.connections.append(client)
        return client_record

    def left(self, client_record: ClientRecord, client: Peer) -> None:
        """Unregister a connection that has ended: another one of the same client receives the outcomes, or the record itself does."""
        client_record.connections.remove(client)
        if client_record.connections:
            other = client_record.connections[-1]
            for number in client_record.open.values() if len(client_record.open) <= WALKED_MAX else []:
                m = self.exchange.by_number(number)
                if m is not None and m.client is client:
                    self.exchange.readdress(m, recipient_of(m, client_record, other))
        elif client_record.is_empty():
            del self.client_records[client_record.address]
        else:
            self.went_away(client_record)

    def went_away(self, client_record: ClientRecord) -> None:
        client_record.is_away = True
        self.exchange.hello(client_record)
        if not client_record.has_few():
            self.large_records[client_record.address] = client_record
            return
        for rid, number in client_record.open.items():
            self.orphan(rid, client_record)
            self.readdress(rid, number, client_record)
        for batch in client_record.batches:
            for rid in batch.ended:
                self.orphan(rid, client_record)

    def came_back(self, client_record: ClientRecord) -> None:
        client_record.is_away = False
        self.exchange.goodbye(client_record)
        client_record.is_connected = True  # messages that have it as their client reach a connection through it
        if self.large_records.pop(client_record.address, None) is not None:
            return
        for rid in client_record.open:
            self.unorphan(rid, client_record)
        for batch in client_record.batches:
            for rid in batch.ended:
                self.unorphan(rid, client_record)

    def readdress(self, rid: bytes, number: int, client: Peer) -> None:
        m = self.exchange.by_number(number)
        if m is not None:
            self.claim(m, rid, client)

    def claim(self, m: Message, rid: bytes, client: Peer) -> None:
        """Redirect a request's outcome to a connection of its client. A damaged record has lost its rid; this table still has it."""
        if m.is_unreadable:
            m.client_id = rid
        self.exchange.readdress(m, client)

    def orphan(self, rid: bytes, client_record: ClientRecord) -> None:
        orphans = self.orphans.setdefault(rid, [])
        orphans.append(client_record)
        if len(orphans) > ORPHANS_PER_RID_MAX:
            del orphans[0]  # it still gets its outcome if it reconnects itself

    def unorphan(self, rid: bytes, client_record: ClientRecord) -> None:
        orphans = self.orphans.get(rid)
        if orphans is None or client_record not in orphans:
            return
        orphans.remove(client_record)
        if not orphans:
            del self.orphans[rid]

    # -- requests -------------------------------------------------------------------------------------------------------

    def has_orphans(self) -> bool:
        return len(self.orphans) > 0 or len(self.large_records) > 0

    def orphans_of(self, rid: bytes) -> list[ClientRecord]:
        found = self.orphans.get(rid, [])
        if self.large_records:
            found = found + [client_record for client_record in self.large_records.values() if client_record.has(rid)]
        return found

    def adopt(self, client_record: ClientRecord, rid: bytes, queue: bytes, body: bytes) -> None:
        """Take over the orphan that is identical to this request, if there is one."""
        compared_size = 0
        for before in self.orphans_of(rid):
            number = before.open.get(rid, 0)
            if number != 0:
                if compared_size > COMPARED_SIZE_MAX:
                    return  # many requests that differ only in large data are not from a client that reconnected
                if self.is_open_same(number, queue, body):
                    del before.open[rid]
                    client_record.open[rid] = number
                    self.readdress(rid, number, client_record)
                    self.moved(rid, before)
                    return
                compared_size += len(body)
                continue
            for batch in before.batches:
                ended = batch.ended.get(rid)
                if ended is not None and ended.until_ns > self.exchange.now_ns and is_ended_same(ended, queue, body):
                    del batch.ended[rid]
                    self.count_out(batch, ended)
                    self.store(client_record, rid, ended)
                    self.moved(rid, before)
                    return

    def moved(self, rid: bytes, before: ClientRecord) -> None:
        if before.address not in self.large_records:
            self.unorphan(rid, before)
        self.emptied.append(before)

    def is_open_same(self, number: int, queue: bytes, body: bytes) -> bool:
        m = self.exchange.fetch(number)
        return m is not None and m.queue == queue and m.body_size == len(body) and self.exchange.body_of(m) == body

    def ended(
        self, client_record: ClientRecord, message: Message, value: bytes, has_value: bool, is_rejected: bool
    ) -> None:
        """Remember a request's outcome, within the time and size limits of the settings."""
        rid = message.client_id
        if client_record.open.get(rid, 0) != message.number:
            return
        del client_record.open[rid]
        body = message.body if message.is_loaded else self.exchange.body_of(message)
        digest = digest_of(message.queue, body)
        # In machine words: a product of this size is slow as an int.
        stored_ns: i64 = STALES_STORED * (i64(message.expires_ns) - i64(message.accepted_ns))
        until_ns = self.exchange.now_ns + max(stored_ns, i64(self.stored_ns))
        self.store(client_record, rid, Ended(value, has_value, is_rejected, digest, large(body), until_ns))

    def store(self, client_record: ClientRecord, rid: bytes, ended: Ended) -> None:
        batches = client_record.batches
        batch = batches[-1] if batches else None
        if batch is None or self.is_full(batch):
            batch = OutcomeBatch(client_record, self.exchange.now_ns)
            batches.append(batch)
            self.batches.append(batch)
        batch.ended[rid] = ended
        if ended.until_ns > batch.until_ns:
            batch.until_ns = ended.until_ns
            closes_ns = batch.began_ns + (ended.until_ns - batch.began_ns) // BATCH_TIME_PART
            if closes_ns > batch.closes_ns:
                batch.closes_ns = closes_ns
        size = len(ended.value) + len(ended.body)
        batch.size += size
        self.size += size
        self.count += 1
        while self.count > self.answers_max or self.size > self.size_max:
            self.forget(self.batches.popleft())

    def is_full(self, batch: OutcomeBatch) -> bool:
        count = len(batch.ended)
        return (
            count >= BATCH_MAX
            or count * BATCH_PART >= self.answers_max
            or batch.size * BATCH_PART >= self.size_max
            or self.exchange.now_ns > batch.closes_ns
        )

    def count_out(self, batch: OutcomeBatch, ended: Ended) -> None:
        size = len(ended.value) + len(ended.body)
        batch.size -= size
        self.size -= size
        self.count -= 1

    def forget(self, batch: OutcomeBatch) -> None:
        """Forget a batch. A forgotten request that is sent again runs a second time."""
        self.count -= len(batch.ended)
        self.size -= batch.size
        client_record = batch.client_record
        client_record.batches.remove(batch)
        if not client_record.connections:
            if client_record.address not in self.large_records:
                for rid in batch.ended:
                    self.unorphan(rid, client_record)
            self.emptied.append(client_record)

    def sweep(self, now_ns: int) -> None:
        if now_ns >= self.next_look_ns:
            self.next_look_ns = now_ns + LOOK_NS
            self.forget_old(now_ns)
        if self.emptied:
            emptied = self.emptied
            self.emptied = []
            for client_record in emptied:
                # Remove a client without a connection and without requests.
                if (
                    not client_record.connections
                    and client_record.is_empty()
                    and self.client_records.get(client_record.address) is client_record
                ):
                    del self.client_records[client_record.address]
                    self.large_records.pop(client_record.address, None)
                    self.exchange.goodbye(client_record)

    def forget_old(self, now_ns: int) -> None:
        """Forget expired batches anywhere in the queue: one that is stored for days must not keep those after it."""
        old = [batch for batch in self.batches if batch.until_ns <= now_ns]
        if old:
            self.batches = deque([batch for batch in self.batches if batch.until_ns > now_ns])
            for batch in old:
                self.forget(batch)


def recipient_of(m: Message, client_record: ClientRecord, client: Peer) -> Peer:
    """The peer that receives a request's outcome: the connection, if the message has its address; a message taken over from another client has
    that client's address, so it gets the record, which forwards to a connection or stores the outcome."""
    return client if m.address == client.address else client_record


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
