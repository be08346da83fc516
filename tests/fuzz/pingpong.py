"""What the broker says while peers of the ping-pong dialogue say anything at all, from one seed.

One broker lives for a thousand messages of a dozen peers: clients and workers of all forms, honest ones and mad ones, REQ sockets,
anonymous ones, twins, and an eMQP worker on the same queue. Time passes, attempts time out, peers come and go. Invariant: only
documented errors come out; every message of the broker has a shape of the dialogue; a worker never holds two jobs; no client hears
more answers than it asked for, and what an honest worker made of an order reaches the client that asked for it, in its place in
the order, or nobody; the facts tell the same story as the core; and a replay of them gives the same state byte for byte.

    python -m tests.fuzz.pingpong --inputs 1000000 --seed 1
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, deque

from dragoman import errors
from dragoman.dialects.pingpong.commands import envelope_of
from dragoman.dialects.pingpong.dialect import size_of
from dragoman.dialects.pingpong.sessions import PingpongClient, PingpongWorker
from dragoman.model.units import SECOND_NS
from dragoman.wire.zmtp.frames import encode_message
from dragoman_lab.sim.checks.recount import recount
from tests.core.harness import End
from tests.fuzz.emqp_messages import mutated, spoilt_bytes
from tests.fuzz.rounds import RecordingBroker, Rounds, some_settings
from tests.fuzz.zmtp import DOCUMENTED

PEERS = 12
ORDER = re.compile(rb"order (\d+) \1\b")
MADE = re.compile(rb"^made of \W*(order (\d+) \2)\b")
STEPS_S = [0.0, 0.0, 0.01, 0.1, 0.3, 1.0, 2.5]
BODIES = [
    b"",
    b"PONG",
    b"EXIT",
    b"READY",
    b"PING",
    b"\xff\x00",
    b'{"a":[1]}',
    b'"text"',
    b"5",
    b"[" * 3000,
    b"\x01" * 20_000,
]
WORDS = [b"READY", b"PING", b"PONG", b"EXIT", b"JOB COMPLETE", b"", b"\xff", b'{"status":"PING"}', b"z" * 300]
STATUSES = [
    b'{"status":"PING"}',
    b'{"status":"READY"}',
    b'{"status":"SUCCESS","token":"0","result":1}',
    b'{"status":"ERROR","msg":"no"}',
    b'{"status":"SUCCESS"}',
    b'{"status":7}',
    b'{"status":"\xff"}',
    b'{"order":[1,2]}',
    b'{"order":"\\ud800"}',
    b"{}",
    b"{" * 2000,
]


class FuzzBroker(RecordingBroker):
    """A broker with some settings or others."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(some_settings(chance, (0, 2, 4)))
        settings = self.dialects.pingpong.settings
        settings.form = chance.choice([0, 0, 0, 1, 2, 3])
        settings.send_exit = chance.random() < 0.5
        settings.worker_expire_ns = chance.choice([SECOND_NS, 3 * SECOND_NS])
        self.orders = 0
        # Orders named in bytes that were spoilt on their way. Results carry no id: a result that was doubled answers the worker's next job.
        self.spoilt_orders: set[bytes] = set()


class FuzzClient:
    """Asks, and holds every answer against its order."""

    def __init__(self, broker: FuzzBroker, chance: random.Random) -> None:
        self.broker = broker
        is_req = chance.random() < 0.2
        self.end = End(broker, "pingpong.client", b"", b"REQ" if is_req else b"DEALER")
        self.is_json = chance.random() < 0.3
        self.is_spoilt = False
        self.asked: deque[bytes] = deque()
        self.is_mad = chance.random() < 0.3

    def speak(self, chance: random.Random) -> bytes:
        if self.is_mad and chance.random() < 0.5:
            frames = [b"", chance.choice(WORDS)] if chance.random() < 0.5 else [chance.choice(STATUSES)]
            self.asked.append(b"?")
            return encode_message(mutated(chance, frames))
        self.broker.orders += 1
        # Twice: a number spoilt on its way must not be taken for another's.
        body = (
            b"order %d %d" % (self.broker.orders, self.broker.orders)
            if chance.random() < 0.8
            else chance.choice(BODIES)
        )
        self.asked.append(body)
        if self.is_json:
            return encode_message([b'{"order":%s}' % json.dumps(body.decode("latin-1")).encode()])
        return encode_message([b"", body])

    def spoil(self) -> None:
        """What it says from now on may be anything, or several things."""
        self.is_spoilt = True

    def hear(self) -> None:
        data = self.end.session.take_all()
        for frames in self.end.zmtp.receive(data) if data and not self.is_spoilt else []:
            assert self.asked, "more answers than orders"
            body = self.asked.popleft()
            rest = frames[envelope_of(frames) :]
            assert 1 <= len(rest) <= 3, frames
            text = rest[0]
            if text.startswith(b'{"msg":'):
                found = json.loads(text)["msg"]
                text = found.encode("latin-1", "replace") if isinstance(found, str) else b""
            made = MADE.search(text)
            if made is not None:
                assert body in (b"?", made[1]) or made[1] in self.broker.spoilt_orders, (body, text)


class FuzzWorker:
    """An honest one answers what it was given, in its order, with what it made of it. A mad one says anything."""

    def __init__(self, broker: FuzzBroker, chance: random.Random) -> None:
        self.end = End(broker, "pingpong.worker", chance.choice([b"", b"", b"twin", b"i" * 255]))
        self.is_mad = chance.random() < 0.3
        self.form = chance.choice(["plain", "plain", "package", "json"])
        fixed = broker.dialects.pingpong.settings.form
        if fixed and not self.is_mad:
            self.form = ["plain", "plain", "package", "json"][fixed]
        self.jobs: deque[tuple[bytes, bytes]] = deque()  # (mark, body)

    def speak(self, chance: random.Random) -> bytes:
        self.hear()  # a job does not travel for seconds: a READY said without knowing of it would be a lie
        draw = chance.random()
        if self.is_mad and draw < 0.6:
            frames = [b"", chance.choice(WORDS)] if draw < 0.4 else [chance.choice(STATUSES)]
            return encode_message(mutated(chance, frames) if draw < 0.3 else frames)
        if self.jobs and draw < 0.7:
            mark, body = self.jobs.popleft()
            return encode_message(self.result(mark, b"made of " + body))
        word = b"READY" if not self.jobs and draw < 0.8 else b"PING"
        return encode_message([b'{"status":"%s"}' % word] if self.form == "json" else [b"", word])

    def spoil(self) -> None:
        self.is_mad = True
        self.jobs.clear()

    def result(self, mark: bytes, value: bytes) -> list[bytes]:
        if self.form == "json":
            text = json.dumps(value.decode("latin-1")).encode()
            return [b'{"status":"SUCCESS","token":"%s","result":%s}' % (mark, text)]
        if self.form == "package":
            return [b"", b"JOB COMPLETE", mark, b"", value]
        return [b"", value]

    def hear(self) -> None:
        data = self.end.session.take_all()
        for frames in self.end.zmtp.receive(data) if data else []:
            if frames[-1] in (b"PONG", b'{"status":"PONG"}') or (frames[-1] == b"EXIT" and len(frames) < 4):
                continue
            if self.is_mad:
                continue
            if self.form == "json":
                if len(frames) == 1:
                    work = json.loads(frames[0])
                    assert set(work) == {"status", "token", "job"}
                    job = work["job"] if isinstance(work["job"], str) else "?"
                    self.jobs.append((work["token"].encode(), job.encode("utf-8")))
            elif self.form == "package":
                if len(frames) == 5:
                    self.jobs.append((frames[2], frames[1]))
            elif len(frames) == 2:
                assert frames[0] == b""
                self.jobs.append((b"", frames[1]))
        session = self.end.session
        assert isinstance(session, PingpongWorker)
        assert len(session.work.leases) + session.work.slots <= 1, "a worker never has two jobs"
        if not self.is_mad:
            assert len(self.jobs) <= 1 or session.is_owing or not session.is_connected, self.jobs


Player = FuzzClient | FuzzWorker


def a_player(broker: FuzzBroker, chance: random.Random) -> Player:
    return FuzzWorker(broker, chance) if chance.random() < 0.5 else FuzzClient(broker, chance)


def one_round(seed: int, number: int, inputs: int) -> tuple[Counter[str], FuzzBroker]:
    """One broker's day, the same in every run."""
    chance = random.Random(f"{seed}/{number}")
    broker = FuzzBroker(chance)
    players = [a_player(broker, chance) for _ in range(PEERS)]
    outcomes: Counter[str] = Counter()
    for count in range(1, inputs + 1):
        at = chance.randrange(PEERS)
        player = players[at]
        data = player.speak(chance)
        if chance.random() < 0.005:
            broker.spoilt_orders.update(found[0] for found in ORDER.finditer(data))
            data = spoilt_bytes(chance, data)
            player.spoil()
        try:
            player.end.session.receive(data)
            outcomes["quiet"] += 1
        except errors.PeerError as fault:
            if type(fault) not in DOCUMENTED:
                raise
            outcomes[fault.code] += 1
            player.end.session.ended()
            players[at] = a_player(broker, chance)
        if count % 7 == 0:
            between(broker, chance, players)
    broker.close_books()
    return outcomes, broker


def between(broker: FuzzBroker, chance: random.Random, players: list[Player]) -> None:
    """A tick: the facts are kept, what was held goes out, time passes, and a peer may leave for another one."""
    broker.commit()
    for player in players:
        player.hear()
    draw = chance.random()
    if draw < 0.08:
        at = chance.randrange(PEERS)
        players[at].end.session.ended()
        players[at] = a_player(broker, chance)
    elif draw < 0.12:
        session = chance.choice(players).end.session
        session.set_socket_full(not session.is_blocked)
    broker.now_ns += int(chance.choice(STEPS_S) * SECOND_NS)
    broker.core.set_time(broker.now_ns)
    broker.timers.sweep(broker.now_ns, broker.now_ns)
    for dialect in broker.dialects.all:
        dialect.sweep(broker.now_ns)
    if draw > 0.9:
        recount(broker.core)
        early = sum(
            size_of(order)
            for session in [player.end.session for player in players]
            if isinstance(session, PingpongClient)
            for order in session.orders
        )
        assert early == broker.dialects.pingpong.early_size, "answers that wait are counted"


FUZZER = Rounds("pingpong", one_round)

if __name__ == "__main__":
    FUZZER.main()
