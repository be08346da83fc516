"""What the broker says while peers say anything at all: random and mutated ebus messages, from one seed.

One broker lives for a thousand messages of a dozen peers: clients, workers, publishers, subscribers, anonymous ones, twins. Time
passes, peers come and go and come back under their old name or a new one, the operator acts. Invariant: only documented errors come
out; every message of the broker has a shape of ebus; a client hears only of rids it asked about, and an answer only to data it
sent; the table of requests agrees with the core, as do each worker's slots; the facts tell the same story; and a replay of them
gives the same state byte for byte.

    python -m tests.fuzz.ebus --inputs 1000000 --seed 1
"""

from __future__ import annotations

import random
from collections import Counter

from dragoman import errors
from dragoman.core.core import Core
from dragoman.dialects.ebus.dialect import EbusDialect
from dragoman.dialects.ebus.requests import Requests
from dragoman.dialects.ebus.sessions import EbusSession
from dragoman.model.enums import EBUS
from dragoman.model.units import SECOND_NS
from dragoman.wire.zmtp.frames import encode_message
from dragoman_lab.sim.checks.recount import recount
from tests.core.harness import End
from tests.fuzz.ebus_messages import a_message, an_arrival
from tests.fuzz.emqp_messages import spoilt_bytes
from tests.fuzz.rounds import RecordingBroker, Rounds, operate, some_settings
from tests.fuzz.zmtp import DOCUMENTED

PEERS = 12
# Frames behind the signature, by word: to clients, and to workers.
TO_CLIENTS = {
    b"REPLY": {3},
    b"REJECT": {2, 3},
    b"HEARTBEAT": {1},
    b"SERVICES": {3},
    b"WORKERS": {3},
    b"DISCONNECT": {2},
}
TO_WORKERS = {b"REQ": {4}, b"CANCEL": {2}, b"HEARTBEAT": {1}, b"PING": {1}, b"DISCONNECT": {2}}
SEATS = [
    *[("ebus.client", b"DEALER")] * 5,
    ("ebus.client", b"REQ"),
    *[("ebus.worker", b"DEALER")] * 5,
    ("ebus.worker", b"ROUTER"),
    ("ebus.publish", b"PUB"),
    ("ebus.subscribe", b"SUB"),
]
IDENTITIES = [b"", b"", b"twin", b"twin", b"\xff\x00", b"i" * 255, *[b"peer-%d" % n for n in range(4)]]
STEPS_S = [0.0, 0.0, 0.01, 0.1, 0.3, 1.0, 2.5]
# What one whose bytes were spoilt has asked, only those bytes know.
ANYTHING = (b"anything", b"anything")
RIDS = [*[b"rid-%d" % n for n in range(20)], b"", b"\xff", b"r" * 255, b"r" * 256]


class FuzzBroker(RecordingBroker):
    """A broker with some settings or others."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(some_settings(chance))
        settings = self.ebus.settings
        settings.worker_requests_max = chance.choice([1, 3, 1005])
        settings.answers_max = chance.choice([0, 2, 100_000])
        settings.answers_size_max = chance.choice([1000, 10**9])
        settings.is_json = chance.random() < 0.3
        self.ebus.reconfigured()
        self.ebus.listening()
        self.sent: dict[bytes, set[tuple[bytes, bytes]]] = {}  # identity at a listener → (rid, data) it asked with

    @property
    def ebus(self) -> EbusDialect:
        return self.dialects.ebus


class FuzzPeer:
    """The far end of one connection, and the invariants for what it hears."""

    def __init__(self, broker: FuzzBroker, chance: random.Random) -> None:
        self.listener, socket_type = chance.choice(SEATS)
        identity = b"" if socket_type == b"REQ" else chance.choice(IDENTITIES)
        self.end = End(broker, self.listener, identity, socket_type)
        self.jobs: list[tuple[bytes, bytes]] = []  # (rid, data) of requests it was given lately
        name = self.listener.encode() + identity
        self.sent: set[tuple[bytes, bytes]] = broker.sent.setdefault(name, set()) if identity else set()
        if self.listener == "ebus.worker" and chance.random() < 0.9:
            self.give(encode_message(an_arrival(chance)), [])

    def give(self, data: bytes, frames: list[bytes]) -> None:
        """`frames` are remembered as asked, wherever a request may have been read from them."""
        for at, frame in enumerate(frames):
            if frame in (b"REQ", b"REQUEST"):
                asked = frames[at + 1 :]
                self.sent.add((asked[1] if len(asked) > 1 else b"", asked[2] if len(asked) > 2 else b"null"))
        self.end.session.receive(data)

    def hear(self) -> None:
        """Take what the broker has said and see that it is lawful."""
        end = self.end
        data = end.session.take_all()
        if not data:
            return
        for frames in end.zmtp.receive(data):
            if isinstance(end.session, EbusSession):
                self.check(frames)
            else:
                assert self.listener != "ebus.subscribe" or len(frames) == 2
        del self.jobs[:-8]

    def check(self, frames: list[bytes]) -> None:
        at = 0
        while not frames[at]:
            at += 1
        word, count = frames[at + 1], len(frames) - at - 1
        assert at <= 2
        if frames[at] == b"EBC01":
            assert count in TO_WORKERS[word], frames
            if word == b"REQ":
                assert frames[at + 4].isdigit()
                self.jobs.append((frames[at + 2], frames[at + 3]))
            return
        assert frames[at] == b"EBW01", frames
        assert count in TO_CLIENTS[word], frames
        if word in (b"REPLY", b"REJECT") and ANYTHING not in self.sent:
            rid = frames[at + 2]
            assert any(rid == asked for asked, _ in self.sent), f"told of {rid!r}, which it never asked about"
            value = frames[at + 3] if count > 2 else b""
            assert value != b"forged", "an answer came through under a rid that no worker was given"
            if word == b"REPLY" and value.startswith(b"for "):
                assert (rid, value[4:]) in self.sent, f"an answer under {rid!r} to data that this client never sent"


def one_round(seed: int, number: int, inputs: int) -> tuple[Counter[str], FuzzBroker]:
    """One broker's day, the same in every run."""
    chance = random.Random(f"{seed}/{number}")
    broker = FuzzBroker(chance)
    peers = [FuzzPeer(broker, chance) for _ in range(PEERS)]
    outcomes: Counter[str] = Counter()
    for count in range(1, inputs + 1):
        draw = chance.random()
        at = int(draw * PEERS)
        peer = peers[at]
        frames = a_message(chance, peer.listener, RIDS, peer.jobs)
        data = encode_message(frames)
        if draw * PEERS - at < 0.01:
            if frames[-1].startswith(b"for "):
                frames[-1] = b"spoilt"  # else its client would seem to be answered wrongly
            data = spoilt_bytes(chance, encode_message(frames))
            peer.sent.add(ANYTHING)
        try:
            peer.give(data, frames)
            outcomes["quiet"] += 1
        except errors.PeerError as fault:
            if type(fault) not in DOCUMENTED:
                raise
            outcomes[fault.code] += 1
            peer.end.session.ended()
            peers[at] = FuzzPeer(broker, chance)
        if count % 10 == 0:
            between(broker, chance, peers)
    broker.close_books()
    check_table(broker)
    check_slots(broker)
    return outcomes, broker


def between(broker: FuzzBroker, chance: random.Random, peers: list[FuzzPeer]) -> None:
    """A tick: the facts are kept, what was held goes out, time passes, and a peer may leave for another one."""
    broker.commit()
    for at, peer in enumerate(peers):
        peer.hear()
        if peer.end.session in broker.outboxes.finished:
            peer.end.session.ended()
            peers[at] = FuzzPeer(broker, chance)
    broker.outboxes.finished.clear()
    draw = chance.random()
    if draw < 0.06:
        at = chance.randrange(PEERS)
        peers[at].end.session.ended()
        peers[at] = FuzzPeer(broker, chance)
    elif draw < 0.15:
        session = chance.choice(peers).end.session
        session.set_socket_full(not session.is_blocked)
    elif draw < 0.2:
        operate(broker.core, chance, [b"hello", b"mail"])
    broker.now_ns += int(chance.choice(STEPS_S) * SECOND_NS)
    broker.core.set_time(broker.now_ns)
    broker.timers.sweep(broker.now_ns, broker.now_ns)
    broker.ebus.sweep(broker.now_ns)
    if draw > 0.9:
        recount(broker.core)
        check_table(broker)
        check_slots(broker)


def check_table(broker: FuzzBroker) -> None:
    """Every open request is known once, by its client and rid; every orphan is one; the sizes add up."""
    requests = broker.ebus.requests
    known: dict[int, bytes] = {}
    orphans: Counter[bytes] = Counter()
    for address, client_record in requests.client_records.items():
        assert client_record.address == address
        assert all(client.is_connected for client in client_record.connections)
        assert client_record.is_away == (not client_record.connections), "just one of them is in the routes"
        assert client_record.is_connected, "what it took over from others finds its client through it"
        rids = [*client_record.open, *(rid for batch in client_record.batches for rid in batch.ended)]
        assert len(set(rids)) == len(rids), "a rid is open or has ended, once"
        assert address not in requests.large_records or client_record.is_away
        if not client_record.connections and address not in requests.large_records:
            orphans.update(rids)
            assert all(client_record in requests.orphans[rid] for rid in rids)
        for rid, number in client_record.open.items():
            assert number not in known, "two clients would be told of one message"
            known[number] = rid
    assert {rid: len(client_records) for rid, client_records in requests.orphans.items()} == orphans
    for m in broker.core.open_messages(EBUS):
        if m.is_answerable:
            assert known.pop(m.number, None) == m.client_id, "an open request that nobody would be told of"
    assert all(is_on_disk(broker.core, number) for number in known), "the table knows what is not open"
    check_batches(requests)


def check_batches(requests: Requests) -> None:
    batched = [ended for batch in requests.batches for ended in batch.ended.values()]
    assert requests.size == sum(len(ended.value) + len(ended.body) for ended in batched)
    assert requests.count == len(batched)
    assert requests.count <= requests.answers_max
    assert sorted(map(id, requests.batches)) == sorted(
        id(batch) for client_record in requests.client_records.values() for batch in client_record.batches
    )


def is_on_disk(core: Core, number: int) -> bool:
    lines = [line for queue in core.state.queues.values() for lane in queue.lanes for line in lane.lines.values()]
    return any(line.tail.live > 0 and line.tail.find(number) >= 0 for line in lines)


def check_slots(broker: FuzzBroker) -> None:
    """What a worker does not hold it has room for."""
    for session in broker.ebus.sessions.values():
        assert isinstance(session, EbusSession)
        if session.is_worker and not session.work.is_leaving:
            taken = len(session.work.leases) + session.slots_owed
            assert session.work.slots == max(session.requests_max - taken, 0)


FUZZER = Rounds("ebus", one_round)

if __name__ == "__main__":
    FUZZER.main()
