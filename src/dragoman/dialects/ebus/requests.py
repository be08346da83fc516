"""Who asked what: so that a rid sent again is the same request, never a second run.

A request is known by its client and its rid. While it runs, the same rid again attaches to it; once it has ended, its outcome is
remembered for a while and said again. A client is its address (identity at a listener, or just its connection). The original's
clients come back under a new identity and send again what was not answered, so what was asked through a connection that has ended
is an *orphan*: whoever sends its rid, service and data unchanged takes it over.

While no connection of a client is there, its `Asker` stands in at its address and hears the outcomes.
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


@final
class Asked:
    """One request of one client: open, or ended and remembered."""

    def __init__(self, rid: bytes, number: int, asker: Asker) -> None:
        self.rid = rid
        self.number = number  # of its message; 0 once it has ended
        self.asker = asker
        # Once it has ended: what was asked, to know it again. A large body itself, a small one by its hash: half the memory, and most
        # of what is remembered is never looked at again.
        self.digest: i64 = 0
        self.body: bytes = b""
        self.value: bytes = b""
        self.has_value: bool = False
        self.is_rejected: bool = False
        self.is_said: bool = True
        self.until_ns: int = 0


@final
class Asker(Peer):
    """A client as the table knows it, through all its connections."""

    def __init__(self, requests: Requests, address: bytes) -> None:
        super().__init__(EBUS, "ebus.client")
        self.requests = requests
        self.address = address
        self.is_connected = False
        self.asked: dict[bytes, Asked] = {}
        self.connections: list[Peer] = []

    def answered(self, message: Message, value: bytes) -> None:
        self.requests.ended(self, message, value, True, False, False)

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        value = reject_data(reason, value, self.requests.is_json)
        self.requests.ended(self, message, value, len(value) > 0, True, False)


@final
class Requests:
    """The table of a broker's ebus clients and what they asked."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.askers: dict[bytes, Asker] = {}
        self.orphans: dict[bytes, list[Asked]] = {}
        self.line: deque[Asked] = deque()  # ended, the oldest first
        self.size: int = 0  # bytes that the ended ones hold
        self.kept_ns: int = 5 * SECOND_NS
        self.answers_max: int = 0
        self.size_max: int = 0
        self.is_json: bool = False
        self.emptied: list[
            Asker
        ] = []  # to be looked at by the next sweep: outcomes are told in the middle of the core's work
        self.is_loaded: bool = False

    def load(self) -> None:
        """What the broker before us had accepted: all of it orphans, until their clients come back."""
        if self.is_loaded:
            return
        self.is_loaded = True
        fresh: list[Asker] = []
        for m in self.exchange.open_messages(EBUS):
            if not m.is_answerable:
                continue
            asker = self.askers.get(m.address)
            if asker is None:
                asker = Asker(self, m.address)
                self.askers[m.address] = asker
                fresh.append(asker)
            asker.asked[m.client_id] = Asked(m.client_id, m.number, asker)
        for asker in fresh:
            self.stand_in(asker)

    # -- clients come and go --------------------------------------------------------------------------------------------

    def arrived(self, client: Peer) -> Asker:
        """A connection of a client; what was asked through an earlier one is its business again."""
        asker = self.askers.get(client.address)
        if asker is None:
            asker = Asker(self, client.address)
            self.askers[client.address] = asker
        elif not asker.connections:
            self.stand_down(asker)
            for asked in asker.asked.values():
                self.readdress(asked, client)
        asker.connections.append(client)
        return asker

    def known(self, address: bytes) -> bool:
        if not self.is_loaded:
            self.load()
        return address in self.askers

    def unsaid(self, asker: Asker) -> list[Asked]:
        """What has ended while nobody was there to be told."""
        found = [asked for asked in asker.asked.values() if not asked.is_said]
        for asked in found:
            asked.is_said = True
        return found

    def left(self, asker: Asker, client: Peer) -> None:
        """A connection has ended: another one of the same client hears the outcomes, or the asker itself does."""
        asker.connections.remove(client)
        if not asker.connections:
            if asker.asked:
                self.stand_in(asker)
            else:
                del self.askers[asker.address]
            return
        other = asker.connections[-1]
        for asked in asker.asked.values():
            if asked.number != 0:
                m = self.exchange.by_number(asked.number)
                if m is not None and m.client is client:
                    self.exchange.readdress(m, other)

    def stand_in(self, asker: Asker) -> None:
        asker.is_connected = True
        for asked in asker.asked.values():
            orphans = self.orphans.get(asked.rid)
            if orphans is None:
                self.orphans[asked.rid] = [asked]
            else:
                orphans.append(asked)
            self.readdress(asked, asker)
        self.exchange.hello(asker)

    def stand_down(self, asker: Asker) -> None:
        self.exchange.goodbye(asker)
        for asked in asker.asked.values():
            self.unorphan(asked)

    def readdress(self, asked: Asked, client: Peer) -> None:
        """Within one address; what is on disk only finds its client by that."""
        if asked.number != 0:
            m = self.exchange.by_number(asked.number)
            if m is not None:
                self.exchange.readdress(m, client)

    def unorphan(self, asked: Asked) -> None:
        orphans = self.orphans.get(asked.rid)
        if orphans is not None and asked in orphans:
            orphans.remove(asked)
            if not orphans:
                del self.orphans[asked.rid]

    # -- requests -------------------------------------------------------------------------------------------------------

    def adopt(self, asker: Asker, client: Peer, rid: bytes, queue: bytes, body: bytes) -> Asked | None:
        """Take over the orphan that is this very request, if there is one."""
        for asked in self.orphans.get(rid, []):
            if not self.is_same(asked, queue, body):
                continue
            before = asked.asker
            self.unorphan(asked)
            del before.asked[rid]
            self.emptied.append(before)
            asked.asker = asker
            asker.asked[rid] = asked
            self.readdress(asked, client)
            return asked
        return None

    def is_same(self, asked: Asked, queue: bytes, body: bytes) -> bool:
        if asked.number == 0:
            return asked.digest == digest_of(queue, body) and asked.body == kept_body(body)
        m = self.exchange.fetch(asked.number)
        if m is None or m.queue != queue:
            return False
        return m.body_size == len(body) and self.exchange.body_of(m) == body

    def ended(
        self, asker: Asker, message: Message, value: bytes, has_value: bool, is_rejected: bool, is_said: bool
    ) -> None:
        """Remember how a request ended, for as long and as many as the settings say."""
        asked = asker.asked.get(message.client_id)
        if asked is None or asked.number != message.number:
            return
        asked.number = 0
        body = self.exchange.body_of(message)
        asked.digest = digest_of(message.queue, body)
        if len(body) > HASHED_SIZE_MAX:
            asked.body = body
            self.size += len(body)
        asked.value = value
        asked.has_value = has_value
        asked.is_rejected = is_rejected
        asked.is_said = is_said
        kept_ns = STALES_KEPT * (message.expires_ns - message.accepted_ns)
        asked.until_ns = self.exchange.now_ns + (kept_ns if kept_ns > self.kept_ns else self.kept_ns)
        line = self.line
        line.append(asked)
        self.size += len(value)
        if len(line) > self.answers_max or self.size > self.size_max:
            self.forget_oldest()

    def forget_oldest(self) -> None:
        """Make room. What is forgotten would run a second time if it were sent again."""
        while self.line and (len(self.line) > self.answers_max or self.size > self.size_max):
            self.forget(self.line.popleft())

    def sweep(self, now_ns: int) -> None:
        line = self.line
        while line and line[0].until_ns <= now_ns:
            self.forget(line.popleft())
        emptied = self.emptied
        if emptied:
            self.emptied = []
            for asker in emptied:
                # A client without a connection and without a request is nobody.
                if not asker.connections and not asker.asked and self.askers.get(asker.address) is asker:
                    del self.askers[asker.address]
                    self.exchange.goodbye(asker)

    def forget(self, asked: Asked) -> None:
        self.size -= len(asked.value) + len(asked.body)
        asker = asked.asker
        del asker.asked[asked.rid]
        if not asker.connections:
            self.unorphan(asked)
            self.emptied.append(asker)


def digest_of(queue: bytes, body: bytes) -> i64:
    """Of what was asked. Python's own hash is keyed anew in each process: nobody can make two bodies that share one."""
    digest: i64 = hash(queue)
    if len(body) <= HASHED_SIZE_MAX:
        digest ^= i64(hash(body)) >> 1  # not its own inverse, should the body be the queue's name
    return digest


def kept_body(body: bytes) -> bytes:
    return b"" if len(body) <= HASHED_SIZE_MAX else body
