"""What the broker says while rq nodes say anything at all: random operations, mutated bytes, any cut, from one seed.

One broker lives for a thousand inputs of a dozen nodes, which ask, consume, or both. Time passes, nodes come and go, do not read, or
close. Invariant: only documented errors come out; everything a node hears is an operation of rq; a consumer is given the smallest id
that it has not left unanswered, and no more of them than its MAX; a source hears DELIVERED before REPLY, as often as it asked at most,
and never the answer to another's request; the facts tell the same story as the core, and a replay of them gives the same state byte
for byte. And every input, cut anywhere, means what it means whole.

    python -m tests.fuzz.rq --inputs 1000000 --seed 1
"""

from __future__ import annotations

import random
from collections import Counter

from dragoman import errors
from dragoman.dialects.rq.sessions import RqSession
from dragoman.model.units import SECOND_NS
from dragoman.wire.risp.reader import RispReader
from dragoman_lab.sim.checks.recount import recount
from tests.dialects.rq.spelling import next_words
from tests.fuzz.rounds import RecordingBroker, Rounds, operate, some_settings
from tests.fuzz.rq_words import ANSWER, a_consume, an_operation, disowned, spoilt_bytes
from tests.wire.risp.transcript import Transcript

NODES = 12
SIZE_MAX = 5000
STEPS_S = [0.0, 0.0, 0.01, 0.1, 0.3, 1.0, 4.0, 16.0]
FORGET = b"\x01\xe0\0\0\0\x06spoilt"
DOCUMENTED = (errors.PayloadTooLarge, errors.OperationWithoutId, errors.RepeatedTooOften, errors.TooManyConsumers)
SHAPES = {
    "QUEUEID QUEUE CONSUMING",
    "QUEUEID PAYLOAD ID REQUEST",
    "QUEUEID PAYLOAD NOREPLY ID REQUEST",
    "QUEUEID PAYLOAD BROADCAST",
    "ID DELIVERED",
    "ID PAYLOAD REPLY",
    "ID UNDELIVERED",
    "PING",
    "PONG",
    "CLOSING",
}


class FuzzBroker(RecordingBroker):
    """A broker with some settings or others."""

    def __init__(self, chance: random.Random) -> None:
        self.numbers = 0
        super().__init__(some_settings(chance))
        self.outboxes.message_size_max = SIZE_MAX
        settings = self.dialects.rq.settings
        settings.retries = chance.choice([-1, 0, 1, 3])
        settings.consumer_messages_max = chance.choice([1, 3, 10_000])
        settings.librq_safe = chance.random() < 0.1


class FuzzNode:
    """The far end of one connection, and the invariants for what it hears. One that sent spoilt bytes is held to fewer of them."""

    def __init__(self, broker: FuzzBroker, chance: random.Random) -> None:
        self.broker = broker
        broker.numbers += 1
        self.number = broker.numbers
        session = broker.dialects.session("rq")
        assert isinstance(session, RqSession)
        self.session = session
        session.start()
        self.is_wild = False
        self.unanswered: dict[int, tuple[bytes, bool]] = {}  # id → body, and whether DELIVERED is the answer
        self.asked: Counter[int] = Counter()
        self.operations: dict[str, Counter[int]] = {word: Counter() for word in ("DELIVERED", "REPLY", "UNDELIVERED")}
        self.consumed = 0
        if chance.random() < 0.6:
            for _ in range(chance.randrange(1, 3)):
                self.say(a_consume(chance), chance)

    def say(self, data: bytes, chance: random.Random) -> None:
        """One orderly operation, whole or in pieces."""
        self.hear()
        if chance.random() < 0.1:
            cut = chance.randrange(len(data))  # its last byte acts
            self.session.receive(data[:cut])
            data_left = data[cut:]
            self.hear()  # a first piece may wake a node that was idle
        else:
            data_left = data
        self.remember(data)
        self.session.receive(data_left)

    def spoil(self, data: bytes) -> None:
        """Bytes that mean anything; but no orderly answer is left in the accumulator for them to repeat."""
        self.is_wild = True
        self.session.receive(FORGET + data)

    def remember(self, data: bytes) -> None:
        """Follow what an operation of its own means for the invariants."""
        found = next_words(data)
        assert found is not None
        fields = dict(item.partition("=")[::2] for item in found[0])
        number = int(fields.get("ID", "0"))
        if "REQUEST" in fields:
            self.asked[number] += 1
        elif "REPLY" in fields or "UNDELIVERED" in fields:
            self.unanswered.pop(number, None)
        elif "DELIVERED" in fields and self.unanswered.get(number, (b"", False))[1]:
            del self.unanswered[number]

    def hear(self) -> None:
        data = self.session.take_all()
        while data:
            found = next_words(data)
            assert found is not None, f"cut short: {data!r}"
            self.check(found[0])
            data = data[found[1] :]

    def check(self, items: list[str]) -> None:
        fields = dict(item.partition("=")[::2] for item in items)
        assert " ".join(fields) in SHAPES, items
        if "ID" not in fields:
            return
        number = int(fields["ID"])
        if items[-1] == "REQUEST":
            assert self.is_wild or number not in self.unanswered, f"id {number} is given twice"
            assert self.is_wild or number == smallest_free(self.unanswered), f"id {number} is not the smallest"
            self.unanswered[number] = (fields["PAYLOAD"].encode("latin-1"), "NOREPLY" in fields)
            return
        if self.is_wild:
            return
        self.operations[items[-1]][number] += 1
        asked, delivered = self.asked[number], self.operations["DELIVERED"][number]
        ended = self.operations["REPLY"][number] + self.operations["UNDELIVERED"][number]
        assert delivered <= asked, f"{number} was delivered more often than it was asked"
        assert ended <= asked, f"{number} ended more often than it was asked"
        if items[-1] == "REPLY":
            assert self.operations["REPLY"][number] <= delivered, f"{number} was answered before it was delivered"
            body = fields["PAYLOAD"].encode("latin-1")
            mine = b"%s%d/%d/" % (ANSWER, self.number, number)
            assert body.startswith(mine) or not body.startswith(ANSWER), f"{number} got another's answer: {body!r}"

    def leave(self) -> None:
        self.session.ended()


def smallest_free(taken: dict[int, tuple[bytes, bool]]) -> int:
    number = 0
    while number in taken:
        number += 1
    return number


def meanings(data: bytes, cuts: list[int]) -> tuple[list[tuple[object, ...]], str]:
    """What a reader hears in bytes that come in pieces, and the error that ends them."""
    ear = Transcript()
    reader = RispReader(ear, SIZE_MAX)
    try:
        for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True):
            reader.feed(data[start:stop])
    except DOCUMENTED as fault:
        return ear.operations, fault.code
    return ear.operations, ""


def one_round(seed: int, number: int, inputs: int) -> tuple[Counter[str], FuzzBroker]:
    """One broker's day, the same in every run."""
    chance = random.Random(f"{seed}/{number}")
    broker = FuzzBroker(chance)
    nodes = [FuzzNode(broker, chance) for _ in range(NODES)]
    outcomes: Counter[str] = Counter()
    for count in range(1, inputs + 1):
        at = chance.randrange(NODES)
        node = nodes[at]
        data = an_operation(chance, node.number, node.unanswered)
        is_spoilt = chance.random() < 0.02
        if is_spoilt:
            data = spoilt_bytes(chance, data)
        elif node.is_wild:
            data = disowned(data)  # it may have lost count of its ids
        if is_spoilt or count % 10 == 0:
            cuts = sorted(chance.choices(range(len(data) + 1), k=3))
            assert meanings(data, cuts) == meanings(data, []), f"cut at {cuts}: {data!r}"
        try:
            if is_spoilt:
                node.spoil(data)
            else:
                node.say(data, chance)
            outcomes["quiet"] += 1
        except DOCUMENTED as fault:
            outcomes[fault.code] += 1
            node.leave()
            nodes[at] = FuzzNode(broker, chance)
        if count % 10 == 0:
            between(broker, chance, nodes)
    if chance.random() < 0.3:
        broker.dialects.rq.draining()
        broker.dialects.rq.closing()
        for node in nodes:
            node.hear()
    broker.close_books()
    return outcomes, broker


def between(broker: FuzzBroker, chance: random.Random, nodes: list[FuzzNode]) -> None:
    """A tick: the facts are kept, what was held goes out, time passes, and a node may leave for another one."""
    broker.commit()
    for at, node in enumerate(nodes):
        node.hear()
        if node.session.is_finished:
            node.leave()
            nodes[at] = FuzzNode(broker, chance)
    draw = chance.random()
    if draw < 0.08:
        at = chance.randrange(NODES)
        nodes[at].leave()
        nodes[at] = FuzzNode(broker, chance)
    elif draw < 0.15:
        session = chance.choice(nodes).session
        session.set_socket_full(not session.is_blocked)
    elif draw < 0.2:
        operate(broker.core, chance, [b"a", b"b", b"c"])
    broker.now_ns += int(chance.choice(STEPS_S) * SECOND_NS)
    broker.core.set_time(broker.now_ns)
    broker.timers.sweep(broker.now_ns, broker.now_ns)
    broker.dialects.rq.sweep(broker.now_ns)
    if draw > 0.9:
        broker.finish_deferred()
        recount(broker.core)


FUZZER = Rounds("rq", one_round)

if __name__ == "__main__":
    FUZZER.main()
