"""Who asked what: so that a rid sent again is the same request, never a second run.

A request is known by its client and its rid. While it is open, the same rid again attaches to it; once it has ended, its outcome is
remembered for a while and said again. A client is its address (identity at a listener, or just its connection). The original's
clients come back under a new identity and send again what was not answered, so what was asked through a connection that has ended
is an *orphan*: whoever sends its rid, service and data unchanged takes it over.

While no connection of a client is there, its `Asker` stands in at its address and hears the outcomes.

Outcomes are remembered in shelves, a few thousand to each, and forgotten a shelf at a time: to forget one by one would touch as
much cold memory as all else that a request costs.
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

# A body up to this size is remembered by its hash: computing it costs less than keeping the body around.
HASHED_SIZE_MAX: Final = 512
# An outcome is remembered for so many times as long as the request was worth anything.
STALES_KEPT: Final = 3
# Clients that are gone and asked under one rid, of whom the newest are looked at when somebody sends it.
ORPHANS_PER_RID_MAX: Final = 32
# Outcomes on one shelf: as many as a dict holds whose index fits into the processor's nearer caches.
SHELF_MAX: Final = 20_000
# No shelf holds more than half of what may be remembered, so that as much is left when one goes.
SHELF_PART: Final = 2
# One that is older than this, or than a part of the time its outcomes are kept, is not added to: they grow stale together, and a client
# that asks all day has a few shelves to look through, however long its answers are kept.
SHELF_NS: Final = SECOND_NS
SHELF_TIME_PART: Final = 16
# How often shelves that are old are looked for.
LOOK_NS: Final = SECOND_NS


@final
class Ended:
    """How a request ended, and what it was: a large body itself, a small one by its hash."""

    def __init__(
        self, value: bytes, has_value: bool, is_rejected: bool, digest: i64, body: bytes, until_ns: int
    ) -> None:
        self.value = value
        self.has_value = has_value
        self.is_rejected = is_rejected
        self.digest = digest
        self.body = body
        self.until_ns = until_ns  # from then on the same rid is another request


@final
class Shelf:
    """Outcomes of one client that are forgotten together."""

    def __init__(self, asker: Asker, began_ns: int) -> None:
        self.asker = asker
        self.began_ns = began_ns
        self.closes_ns: int = began_ns + SHELF_NS  # not added to from then on
        self.until_ns: int = 0
        self.size: int = 0  # bytes of values and bodies
        self.ended: dict[bytes, Ended] = {}


@final
class Asker(Peer):
    """A client as the table knows it, through all its connections."""

    def __init__(self, requests: Requests, address: bytes) -> None:
        super().__init__(EBUS, "ebus.client")
        self.requests = requests
        self.address = address
        self.is_connected = False
        self.open: dict[bytes, int] = {}  # rid → number of its message
        self.shelves: list[Shelf] = []  # the newest last
        self.unsaid: list[bytes] = []  # rids of what ended while nobody was there to be told
        self.connections: list[Peer] = []
        self.envelope: int = (
            1  # empty frames before the signature when it last asked; after a restart, the original's one
        )

    def find(self, rid: bytes) -> Ended | None:
        """How its request of this rid ended; it has a connection."""
        for shelf in self.shelves:
            ended = shelf.ended.get(rid)
            if ended is not None:
                if ended.until_ns > self.requests.exchange.now_ns:
                    return ended
                del shelf.ended[rid]
                self.requests.take_off(shelf, ended)
        return None

    def is_empty(self) -> bool:
        return not self.open and not self.shelves

    def answered(self, message: Message, value: bytes) -> None:
        self.unsaid.append(message.client_id)
        self.requests.ended(self, message, value, True, False)

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        self.unsaid.append(message.client_id)
        value = reject_data(reason, value, self.requests.is_json)
        self.requests.ended(self, message, value, len(value) > 0, True)


@final
class Requests:
    """The table of a broker's ebus clients and what they asked."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.askers: dict[bytes, Asker] = {}
        self.orphans: dict[bytes, list[Asker]] = {}  # rid → clients without a connection that asked under it
        self.shelves: deque[Shelf] = deque()  # of all clients, the oldest first
        self.count: int = 0  # outcomes on them
        self.size: int = 0  # and their bytes
        self.kept_ns: int = 5 * SECOND_NS
        self.answers_max: int = 0
        self.size_max: int = 0
        self.is_json: bool = False
        self.next_look_ns: int = 0
        self.emptied: list[
            Asker
        ] = []  # to be looked at by the next sweep: outcomes are told in the middle of the core's work
        self.is_loaded: bool = False

    def load(self) -> None:
        """What the broker before us had accepted: all of it orphans, until their clients come back."""
        if self.is_loaded:
            return
        self.is_loaded = True
        for m in self.exchange.open_messages(EBUS):
            if m.is_answerable:
                self.asker_of(m.address).open[m.client_id] = m.number
        for asker in self.askers.values():
            self.stand_in(asker)

    def asker_of(self, address: bytes) -> Asker:
        asker = self.askers.get(address)
        if asker is None:
            asker = Asker(self, address)
            self.askers[address] = asker
        return asker

    # -- clients come and go --------------------------------------------------------------------------------------------

    def knows(self, address: bytes) -> bool:
        if not self.is_loaded:
            self.load()
        return address in self.askers

    def arrived(self, client: Peer) -> Asker:
        """A connection of a client; what was asked through an earlier one is its business again."""
        asker = self.asker_of(client.address)
        if asker.is_connected:
            self.stand_down(asker)
            for rid, number in asker.open.items():
                self.readdress(rid, number, client)
        asker.connections.append(client)
        return asker

    def take_unsaid(self, asker: Asker) -> list[bytes]:
        unsaid = asker.unsaid
        asker.unsaid = []
        return unsaid

    def left(self, asker: Asker, client: Peer) -> None:
        """A connection has ended: another one of the same client hears the outcomes, or the asker itself does."""
        asker.connections.remove(client)
        if asker.connections:
            other = asker.connections[-1]
            for number in asker.open.values():
                m = self.exchange.by_number(number)
                if m is not None and m.client is client:
                    self.exchange.readdress(m, other)
        elif asker.is_empty():
            del self.askers[asker.address]
        else:
            self.stand_in(asker)

    def stand_in(self, asker: Asker) -> None:
        asker.is_connected = True
        for rid, number in asker.open.items():
            self.orphan(rid, asker)
            self.readdress(rid, number, asker)
        for shelf in asker.shelves:
            for rid in shelf.ended:
                self.orphan(rid, asker)
        self.exchange.hello(asker)

    def stand_down(self, asker: Asker) -> None:
        self.exchange.goodbye(asker)
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
        """The outcome of a request goes to a connection of its client. A damaged record does not tell its rid; this table does."""
        if m.is_bare:
            m.client_id = rid
        self.exchange.readdress(m, client)

    def orphan(self, rid: bytes, asker: Asker) -> None:
        orphans = self.orphans.get(rid)
        if orphans is None:
            self.orphans[rid] = [asker]
        else:
            orphans.append(asker)
            if len(orphans) > ORPHANS_PER_RID_MAX:
                del orphans[0]  # it is still told, should it come back itself

    def unorphan(self, rid: bytes, asker: Asker) -> None:
        orphans = self.orphans.get(rid)
        if orphans is None or asker not in orphans:
            return
        orphans.remove(asker)
        if not orphans:
            del self.orphans[rid]

    # -- requests -------------------------------------------------------------------------------------------------------

    def adopt(self, asker: Asker, client: Peer, rid: bytes, queue: bytes, body: bytes) -> None:
        """Take over the orphan that is this very request, if there is one."""
        for before in self.orphans.get(rid, []):
            number = before.open.get(rid, 0)
            if number != 0:
                if self.is_open_same(number, queue, body):
                    del before.open[rid]
                    asker.open[rid] = number
                    self.readdress(rid, number, client)
                    self.moved(rid, before)
                    return
                continue
            for shelf in before.shelves:
                ended = shelf.ended.get(rid)
                if ended is not None and ended.until_ns > self.exchange.now_ns and is_ended_same(ended, queue, body):
                    del shelf.ended[rid]
                    self.take_off(shelf, ended)
                    self.keep(asker, rid, ended)
                    self.moved(rid, before)
                    return

    def moved(self, rid: bytes, before: Asker) -> None:
        self.unorphan(rid, before)
        self.emptied.append(before)

    def is_open_same(self, number: int, queue: bytes, body: bytes) -> bool:
        m = self.exchange.fetch(number)
        return m is not None and m.queue == queue and m.body_size == len(body) and self.exchange.body_of(m) == body

    def ended(self, asker: Asker, message: Message, value: bytes, has_value: bool, is_rejected: bool) -> None:
        """Remember how a request ended, for as long and as many as the settings say."""
        rid = message.client_id
        if asker.open.get(rid, 0) != message.number:
            return
        del asker.open[rid]
        body = message.body if message.is_loaded else self.exchange.body_of(message)
        digest = digest_of(message.queue, body)
        kept_ns = STALES_KEPT * (message.expires_ns - message.accepted_ns)
        until_ns = self.exchange.now_ns + (kept_ns if kept_ns > self.kept_ns else self.kept_ns)
        self.keep(asker, rid, Ended(value, has_value, is_rejected, digest, large(body), until_ns))

    def keep(self, asker: Asker, rid: bytes, ended: Ended) -> None:
        shelves = asker.shelves
        shelf = shelves[-1] if shelves else None
        if shelf is None or self.is_full(shelf):
            shelf = Shelf(asker, self.exchange.now_ns)
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

    def is_full(self, shelf: Shelf) -> bool:
        count = len(shelf.ended)
        return (
            count >= SHELF_MAX
            or count * SHELF_PART >= self.answers_max
            or shelf.size * SHELF_PART >= self.size_max
            or self.exchange.now_ns > shelf.closes_ns
        )

    def take_off(self, shelf: Shelf, ended: Ended) -> None:
        size = len(ended.value) + len(ended.body)
        shelf.size -= size
        self.size -= size
        self.count -= 1

    def forget(self, shelf: Shelf) -> None:
        """What is forgotten would run a second time if it were sent again."""
        self.count -= len(shelf.ended)
        self.size -= shelf.size
        asker = shelf.asker
        asker.shelves.remove(shelf)
        if not asker.connections:
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
                # A client without a connection and without a request is nobody.
                if not asker.connections and asker.is_empty() and self.askers.get(asker.address) is asker:
                    del self.askers[asker.address]
                    self.exchange.goodbye(asker)

    def forget_old(self, now_ns: int) -> None:
        """One that is kept for days must not keep those behind it."""
        old = [shelf for shelf in self.shelves if shelf.until_ns <= now_ns]
        if old:
            self.shelves = deque([shelf for shelf in self.shelves if shelf.until_ns > now_ns])
            for shelf in old:
                self.forget(shelf)


def is_ended_same(ended: Ended, queue: bytes, body: bytes) -> bool:
    return ended.digest == digest_of(queue, body) and ended.body == large(body)


def digest_of(queue: bytes, body: bytes) -> i64:
    """Of what was asked. Python's own hash is keyed anew in each process: nobody can make two bodies that share one."""
    digest: i64 = hash(queue)
    if len(body) <= HASHED_SIZE_MAX:
        digest ^= i64(hash(body)) >> 1  # shifted: a body that is the service's name must not undo it
    return digest


def large(body: bytes) -> bytes:
    """The body, if it is one that is kept as it is."""
    return body if len(body) > HASHED_SIZE_MAX else b""
