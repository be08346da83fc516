"""What the broker says while peers say anything at all: random and mutated eMQP messages, from one seed.

One broker lives for a thousand messages of a dozen peers: clients, workers,
schedulers, admins, publishers, subscribers, REQ sockets, anonymous ones, twins. Time passes, peers come and go, the operator
acts. Invariant: only documented errors come out; every message of the broker has a shape of eMQP; a REQ peer never gets two
answers; a worker like the original gets only what it can take; the facts tell the same story as the core; and a replay of
them gives the same state byte for byte.

    python -m tests.fuzz.emqp --inputs 1000000 --seed 1
"""

from __future__ import annotations

import json
import random
import zlib
from collections import Counter

from dragoman import errors
from dragoman.core.settings import CoreSettings
from dragoman.dialects.emqp.sessions import ORIGINAL, EmqpSession
from dragoman.dialects.emqp.settings import EmqpSettings
from dragoman.model.units import SECOND_NS
from dragoman.wire.zmtp.frames import encode_message
from dragoman_lab.sim.checks.recount import recount
from tests.core.harness import End
from tests.fuzz.emqp_messages import a_message, an_arrival, spoilt_bytes
from tests.fuzz.rounds import RecordingBroker, Rounds, operate
from tests.fuzz.zmtp import DOCUMENTED

PEERS = 12
# Messages to peers by their number of frames without the envelope.
SHAPES = {
    b"ACK": {4},
    b"HEARTBEAT": {4},
    b"REPLY": {4, 5},
    b"REQUEST": {6},
    b"SCHEDULE": {8},
    b"UNSCHEDULE": {8},
    b"KBYE": {3},
    b"DISCONNECT": {3},
}


class FuzzBroker(RecordingBroker):
    """A broker with some settings or others."""

    def __init__(self, chance: random.Random) -> None:
        core, emqp = CoreSettings(), EmqpSettings()
        core.head_max = chance.choice([1, 3, 50, 100_000])
        core.queue_messages_max = chance.choice([0, 0, 20])
        core.starve_turns = chance.choice([1, 3, 10])
        core.dedupe_keys_max = chance.choice([2, 100_000])
        core.quarantine_after = chance.choice([0, 1, 3])
        core.timeout_ns = chance.choice([0, 0, 4 * SECOND_NS])
        emqp.external_scheduler = chance.random() < 0.2
        emqp.json_only = chance.random() < 0.8
        super().__init__(core, emqp)


class FuzzPeer:
    """The far end of one connection, and the invariants for what it hears."""

    def __init__(self, broker: FuzzBroker, chance: random.Random) -> None:
        self.listener, socket_type = chance.choice(SEATS)
        # A REQ peer is anonymous: under a known identity it would get the answers to what an earlier connection asked.
        identity = b"" if socket_type == b"REQ" else chance.choice(IDENTITIES)
        self.is_req = socket_type == b"REQ"
        self.end = End(broker, self.listener, identity, socket_type)
        self.is_steady = True  # it has not informed since the last look, so its shape is known
        self.is_plain_client = True  # it has never informed
        self.said = 0
        self.heard = 0
        self.jobs: list[bytes] = []  # ids of requests it was given lately
        if self.listener == "emqp.worker":
            for frames in an_arrival(chance):
                self.give(encode_message(frames), frames[2])

    def give(self, data: bytes, command: bytes) -> None:
        self.said += 1
        if command.upper() not in CLIENT_WORDS:
            self.is_steady = False
            self.is_plain_client = False
        self.end.session.receive(data)

    def hear(self, ids: list[bytes]) -> None:
        """Take what the broker has said, see that it is lawful, and remember the ids in it."""
        end = self.end
        data = end.session.take_all()
        if not data:
            self.is_steady = True
            return
        messages = end.zmtp.receive(data)
        self.heard += len(messages)
        if self.is_req and self.is_plain_client:
            assert self.heard <= self.said, f"a REQ peer got {self.heard} answers to {self.said} messages"
        session = end.session
        if not isinstance(session, EmqpSession):
            assert all(len(frames) == 2 for frames in messages)
            return
        is_original = self.is_steady and session.body_constraint != 0 and session.informed == ORIGINAL
        for frames in messages:
            at = 0 if frames[0] else 1 if frames[1] else 2
            assert frames[at] == b"eMQP/1.0"
            command = frames[at + 1]
            assert len(frames) - at in SHAPES[command], frames
            if command == b"REQUEST":
                ids[zlib.crc32(frames[at + 2]) % len(ids)] = frames[at + 2]
                self.jobs.append(frames[at + 2])
                if is_original:
                    check_original(frames[at + 2 :])
        del self.jobs[:-8]
        self.is_steady = True


CLIENT_WORDS = {b"REQUEST", b"REPLY", b"STATE", b"CANCEL", b"SCHEDULE", b"UNSCHEDULE", b"PUBLISH", b"STATUS"}
SEATS = [
    *[("emqp.client", b"DEALER")] * 4,
    ("emqp.client", b"REQ"),
    ("emqp.client", b"ROUTER"),
    *[("emqp.worker", b"DEALER")] * 5,
    ("emqp.admin", b"DEALER"),
    ("emqp.publish", b"DEALER"),
    ("emqp.subscribe", b"SUB"),
]
IDENTITIES = [b"", b"", b"twin", b"twin", b"\xff\x00", b"i" * 255, *[b"peer-%d" % n for n in range(10)]]


def check_original(frames: list[bytes]) -> None:
    """What the original's job manager can take without resetting itself."""
    message_id, queue, headers, body = frames
    message_id.decode()
    queue.decode()
    job = json.loads(body.decode())
    assert isinstance(job, list)
    assert len(job) >= 2
    for item in headers.decode().split(","):
        if "timeout:" in item:
            assert int(item.split(":")[1]) >= 0


def one_round(seed: int, number: int, inputs: int) -> tuple[Counter[str], FuzzBroker]:
    """One broker's day, the same in every run."""
    chance = random.Random(f"{seed}/{number}")
    broker = FuzzBroker(chance)
    peers = [FuzzPeer(broker, chance) for _ in range(PEERS)]
    ids = [b"id-%d" % n for n in range(40)]
    outcomes: Counter[str] = Counter()
    quiet = 0
    for count in range(1, inputs + 1):
        draw = chance.random()
        at = int(draw * PEERS)
        peer = peers[at]
        frames = a_message(chance, peer.listener, ids, peer.jobs)
        data = encode_message(frames)
        command = frames[2] if len(frames) > 2 else b""
        if draw * PEERS - at < 0.01:
            data, command = spoilt_bytes(chance, data), b""
        try:
            peer.give(data, command)
            quiet += 1
        except errors.PeerError as fault:
            if type(fault) not in DOCUMENTED:
                raise
            outcomes[fault.code] += 1
            peer.end.session.ended()
            peers[at] = FuzzPeer(broker, chance)
        if count % 10 == 0:
            between(broker, chance, peers, ids)
    outcomes["quiet"] += quiet
    broker.close_books()
    return outcomes, broker


def between(broker: FuzzBroker, chance: random.Random, peers: list[FuzzPeer], ids: list[bytes]) -> None:
    """A tick: the facts are kept, what was held goes out, time passes, and a peer may leave for another one."""
    broker.commit()
    for peer in peers:
        peer.hear(ids)
    draw = chance.random()
    if draw < 0.06:
        at = chance.randrange(PEERS)
        peers[at].end.session.ended()
        peers[at] = FuzzPeer(broker, chance)
    elif draw < 0.15:
        session = chance.choice(peers).end.session
        session.is_blocked = not session.is_blocked
        if not session.is_blocked:
            broker.core.unblock(session)
    elif draw < 0.2:
        operate(broker.core, chance, [b"mail", b"low", b"default"])
    broker.now_ns += int(chance.choice(STEPS_S) * SECOND_NS)
    broker.core.set_time(broker.now_ns)
    broker.timers.sweep(broker.now_ns, broker.now_ns)
    broker.emqp.sweep(broker.now_ns)
    if draw > 0.9:
        recount(broker.core)


STEPS_S = [0.0, 0.0, 0.01, 0.1, 0.3, 1.0, 2.5]


FUZZER = Rounds("emqp", one_round)

if __name__ == "__main__":
    FUZZER.main()
