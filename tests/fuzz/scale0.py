"""What the broker says while Scale0's peers say anything at all: random and mutated messages, from one seed.

One broker lives for a thousand messages of a dozen peers: clients and workers, REQ sockets, anonymous ones, twins, legacy ones,
listeners of the broadcast. Time passes, peers come and go, the configuration changes, sometimes the broker drains. Invariant: only
documented errors come out; every message of the broker has a shape of Scale0; a REQ peer never gets two answers to one message; a
client hears at most one end of each task, under an id it used; the facts tell the same story as the core; and a replay of them gives
the same state byte for byte.

    python -m tests.fuzz.scale0 --inputs 1000000 --seed 1
"""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

from dragoman import errors
from dragoman.core import operator
from dragoman.dialects.scale0.configuration.notations import parse
from dragoman.dialects.scale0.sessions import Scale0Session
from dragoman.model.enums import DRAINING
from dragoman.model.units import SECOND_NS
from dragoman.wire.zmtp.frames import encode_message
from dragoman_lab.sim.checks.recount import recount
from tests.core.harness import End
from tests.fuzz.emqp_messages import mutated, spoilt_bytes
from tests.fuzz.rounds import RecordingBroker, Rounds, some_settings
from tests.fuzz.scale0_messages import a_message
from tests.fuzz.zmtp import DOCUMENTED

PEERS = 12
STEPS_S = [0.0, 0.0, 0.01, 0.1, 0.3, 1.0, 2.5]
# Messages to peers: how many frames, and what their header has at least.
SHAPES: dict[str, tuple[int, set[str]]] = {
    "PONG": (2, {"time", "config_version"}),
    "CONFIG": (3, {"config_type", "config_version"}),
    "CHANGEBROKER": (2, {"broker", "reason"}),
    "TASK": (3, {"id", "service", "time", "config_version"}),
    "TASKREPLY": (3, {"id", "time", "config_version"}),
    "ERROR": (2, {"code", "reason"}),
    "FORCENEGOTIATE": (2, set()),
}
CODES = {301, 426, 444, 501, 503}
LEGACY = {b"PONG", b"OK", b"HEARTBEAT", b"PING"}
SEATS = [
    *[("scale0.client", b"DEALER")] * 4,
    *[("scale0.client", b"REQ")] * 2,
    ("scale0.client", b"ROUTER"),
    *[("scale0.worker", b"DEALER")] * 5,
    *[("scale0.worker", b"REQ")] * 2,
    ("scale0.publish", b"SUB"),
]
IDENTITIES = [b"", b"", b"twin", b"twin", b"w1", b"\xff\x00", b"i" * 255, *[b"peer-%d" % n for n in range(10)]]
TREES = [
    b"",
    b"broker\n    identity = main\n    default_heartbeat_interval = 1\n",
    b"worker\n    identity = w1\n    services = mail, low\n    family_config = f\nfamily = f\n    a = b\n",
    b"broker\n    address = tcp://h1:1\n    peers\n        broker = tcp://h2:1\n            load = 0.1\n",
    b"broker\n    state = refusing\n",
]


class FuzzBroker(RecordingBroker):
    """A broker with some settings or others."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(some_settings(chance))
        self.scale0 = self.dialects.scale0
        self.scale0.settings.offences_max = chance.choice([3, 10, 1000])
        self.scale0.settings.ban_ns = chance.choice([SECOND_NS, 60 * SECOND_NS])
        self.versions = [self.scale0.documents.version, "old"]

    def reconfigure(self, chance: random.Random) -> None:
        self.scale0.settings.tree = parse(b"ZFL", chance.choice(TREES))
        self.scale0.reconfigured()
        self.versions = [self.scale0.documents.version] * 3 + ["old"]


class FuzzPeer:
    """The far end of one connection, and the invariants for what it hears."""

    def __init__(self, broker: FuzzBroker, chance: random.Random) -> None:
        self.broker = broker
        self.listener, socket_type = chance.choice(SEATS)
        self.is_req = socket_type == b"REQ"
        self.is_worker = self.listener == "scale0.worker"
        # Under a known identity it would get the answers to what an earlier connection asked.
        self.identity = b"" if self.is_req else chance.choice(IDENTITIES)
        self.end = End(broker, self.listener, self.identity, socket_type)
        self.jobs: list[str] = []
        self.said = 0
        self.heard = 0
        self.asked: Counter[str] = Counter()  # ids, as JSON
        self.is_exact = True  # it has said only whole messages

    def speak(self, chance: random.Random) -> bytes:
        if self.listener == "scale0.publish":
            return encode_message(
                [chance.choice([b"\x01PING", b"\x01", b"\x00PING", b"\x01w1", b"x", b"\x01" + b"t" * 300])]
            )
        frames = a_message(chance, self.is_worker, self.broker.now_ns / 1e9, self.broker.versions, self.jobs)
        if chance.random() < 0.03:
            frames = mutated(chance, frames) or [b""]
            self.is_exact = False
        if frames[0] == b"TASK" and len(frames) > 1:
            self.remember(frames[1])
        if self.is_req or chance.random() < 0.05:
            frames = [b"", *frames]
        self.said += 1
        return encode_message(frames)

    def remember(self, header: bytes) -> None:
        try:
            self.asked[json.dumps(json.loads(header).get("id"))] += 1
        except (ValueError, AttributeError, RecursionError):
            self.is_exact = False

    def spoil(self) -> None:
        self.is_exact = False

    def hear(self) -> None:
        data = self.end.session.take_all()
        messages = self.end.zmtp.receive(data) if data else []
        self.heard += len(messages)
        if self.is_req and self.is_exact:
            assert self.heard <= self.said, f"a REQ peer got {self.heard} answers to {self.said} messages"
        session = self.end.session
        for frames in messages:
            if isinstance(session, Scale0Session):
                self.check(frames if frames[0] else frames[1:])
            else:
                assert frames[0] == b"PING" or frames[1] in LEGACY, frames
        del self.jobs[:-8]

    def check(self, frames: list[bytes]) -> None:
        if len(frames) == 2 and frames[0] in LEGACY and not frames[1].startswith(b"{"):
            return
        count, members = SHAPES[frames[0].decode()]
        header: dict[str, Any] = json.loads(frames[1].decode())
        assert len(frames) == count, frames
        assert members <= set(header), frames
        if frames[0] == b"TASK":
            assert self.is_worker
            self.jobs.append(header["id"])
        elif frames[0] == b"ERROR":
            assert header["code"] in CODES
        elif frames[0] == b"CONFIG":
            parse(header["config_type"].encode(), frames[2])
        if (frames[0] == b"TASKREPLY" or (frames[0] == b"ERROR" and "id" in header)) and not self.is_worker:
            self.check_end(json.dumps(header["id"]))

    def check_end(self, asked: str) -> None:
        if self.identity or not self.is_exact:
            return
        assert self.asked[asked] > 0, f"{asked} ended once too often"
        self.asked[asked] -= 1


def one_round(seed: int, number: int, inputs: int) -> tuple[Counter[str], FuzzBroker]:
    """One broker's day, the same in every run."""
    chance = random.Random(f"scale0/{seed}/{number}")
    broker = FuzzBroker(chance)
    peers = [FuzzPeer(broker, chance) for _ in range(PEERS)]
    outcomes: Counter[str] = Counter()
    for count in range(1, inputs + 1):
        at = chance.randrange(PEERS)
        peer = peers[at]
        data = peer.speak(chance)
        if chance.random() < 0.01:
            peer.spoil()
            data = spoilt_bytes(chance, data)
        try:
            peer.end.session.receive(data)
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
    return outcomes, broker


def between(broker: FuzzBroker, chance: random.Random, peers: list[FuzzPeer]) -> None:
    """A tick: the facts are kept, what was held goes out, time passes, and a peer may leave for another one."""
    broker.commit()
    for at, peer in enumerate(peers):
        peer.hear()
        if peer.end.session.is_finished:
            peer.end.session.ended()
            peers[at] = FuzzPeer(broker, chance)
    draw = chance.random()
    if draw < 0.06:
        at = chance.randrange(PEERS)
        peers[at].end.session.ended()
        peers[at] = FuzzPeer(broker, chance)
    elif draw < 0.13:
        session = chance.choice(peers).end.session
        session.set_socket_full(not session.is_blocked)
    elif draw < 0.16:
        broker.reconfigure(chance)
    elif draw < 0.17:
        operator.purge(broker.core, b"mail", 5)
    elif draw < 0.172:
        broker.core.refusing = DRAINING
        broker.core.dispatch.is_stopped = True
        broker.scale0.draining()
    broker.now_ns += int(chance.choice(STEPS_S) * SECOND_NS)
    broker.core.set_time(broker.now_ns)
    broker.timers.sweep(broker.now_ns, broker.now_ns)
    broker.scale0.sweep(broker.now_ns)
    if draw > 0.9:
        recount(broker.core)


FUZZER = Rounds("scale0", one_round)

if __name__ == "__main__":
    FUZZER.main()
