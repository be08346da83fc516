"""What the broker says while rq nodes say anything at all: random operations, mutated bytes, any cut, from one seed.

One broker lives for a thousand inputs of a dozen nodes, which ask, consume, or both. Time passes, nodes come and go, do not read, or
close. The law: only documented errors come out; everything a node hears is an operation of rq; a consumer is given the smallest id
that it has not left unanswered, and no more of them than its MAX; a source hears DELIVERED before REPLY, as often as it asked at most,
and never the answer to another's request; the facts tell the same story as the core, and a replay of them gives the same state byte
for byte. And every input, cut anywhere, means what it means whole.

    python -m tests.fuzz.rq --inputs 1000000 --seed 1
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter

from dragoman import errors
from dragoman.core import operator
from dragoman.core.checkpoint import encode
from dragoman.core.core import Core
from dragoman.core.replay import Replay
from dragoman.core.settings import CoreSettings
from dragoman.dialects.rq.session import RqSession
from dragoman.model.units import SECOND_NS
from dragoman.testing.sim.facts import Chronicle
from dragoman.testing.sim.recount import agree, check_bounds, recount
from dragoman.wire.risp.reader import RispReader
from dragoman.wire.risp.transcript import Transcript
from tests.core.harness import FIRST_PLACE, House
from tests.fuzz.rq_words import ANSWER, a_consume, an_operation, disowned, spoilt_bytes
from tests.rq.spelling import next_words

ROUND = 1000  # inputs that one broker sees
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


class Floor(House):
    """A broker whose facts are kept block by block."""

    def __init__(self, chance: random.Random) -> None:
        self.chronicle = Chronicle()
        core = CoreSettings()
        core.head_max = chance.choice([1, 3, 50, 100_000])
        core.queue_messages_max = chance.choice([0, 0, 20])
        core.quarantine_after = chance.choice([0, 1, 3])
        core.timeout_ns = chance.choice([0, 0, 4 * SECOND_NS])
        self.core_settings = core
        self.numbers = 0
        super().__init__(core)
        self.hub.message_size_max = SIZE_MAX
        settings = self.dialects.rq.settings
        settings.retries = chance.choice([-1, 0, 1, 3])
        settings.consumer_messages_max = chance.choice([1, 3, 10_000])
        settings.librq_safe = chance.random() < 0.1

    def commit(self) -> None:
        count = self.core.log.count
        super().commit()
        if count:
            self.chronicle.append(self.blocks[-1][1], count, self.blocks[-1][0])


class FuzzNode:
    """The far end of one connection, and the laws for what it hears. One that sent spoilt bytes is held to fewer of them."""

    def __init__(self, floor: Floor, chance: random.Random) -> None:
        self.floor = floor
        floor.numbers += 1
        self.number = floor.numbers
        session = floor.dialects.session("rq")
        assert isinstance(session, RqSession)
        self.session = session
        session.start()
        self.is_wild = False
        self.unanswered: dict[int, tuple[bytes, bool]] = {}  # id → body, and whether DELIVERED is the answer
        self.asked: Counter[int] = Counter()
        self.heard: dict[str, Counter[int]] = {word: Counter() for word in ("DELIVERED", "REPLY", "UNDELIVERED")}
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
        """Follow what an operation of its own means for the laws."""
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
        self.heard[items[-1]][number] += 1
        asked, delivered = self.asked[number], self.heard["DELIVERED"][number]
        ended = self.heard["REPLY"][number] + self.heard["UNDELIVERED"][number]
        assert delivered <= asked, f"{number} was delivered more often than it was asked"
        assert ended <= asked, f"{number} ended more often than it was asked"
        if items[-1] == "REPLY":
            assert self.heard["REPLY"][number] <= delivered, f"{number} was answered before it was delivered"
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
        return ear.heard, fault.code
    return ear.heard, ""


def run(inputs: int, seed: int) -> Counter[str]:
    """Feed that many inputs; the count of each outcome (an error's code, or "quiet"). A failure names its round."""
    outcomes: Counter[str] = Counter()
    number = 0
    while inputs > 0:
        try:
            outcomes.update(one_round(seed, number, min(inputs, ROUND))[0])
        except Exception as trouble:
            raise AssertionError(f"seed {seed}, round {number}: {trouble!r}") from trouble
        inputs -= ROUND
        number += 1
    return outcomes


def facts_of(seed: int, number: int) -> set[str]:
    """The kinds of facts that one round caused."""
    return {str(fact["fact"]) for fact in one_round(seed, number, ROUND)[1].facts()}


def digest_of(seed: int, number: int) -> str:
    return one_round(seed, number, ROUND)[1].chronicle.digest()


def one_round(seed: int, number: int, inputs: int) -> tuple[Counter[str], Floor]:
    """One broker's day, the same in every run."""
    chance = random.Random(f"{seed}/{number}")
    floor = Floor(chance)
    nodes = [FuzzNode(floor, chance) for _ in range(NODES)]
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
            nodes[at] = FuzzNode(floor, chance)
        if count % 10 == 0:
            between(floor, chance, nodes)
    if chance.random() < 0.3:
        floor.dialects.rq.draining()
        floor.dialects.rq.closing()
        for node in nodes:
            node.hear()
    check(floor)
    return outcomes, floor


def between(floor: Floor, chance: random.Random, nodes: list[FuzzNode]) -> None:
    """A tick: the facts are kept, what was held goes out, time passes, and a node may leave for another one."""
    floor.commit()
    for at, node in enumerate(nodes):
        node.hear()
        if node.session.is_finished:
            node.leave()
            nodes[at] = FuzzNode(floor, chance)
    draw = chance.random()
    if draw < 0.08:
        at = chance.randrange(NODES)
        nodes[at].leave()
        nodes[at] = FuzzNode(floor, chance)
    elif draw < 0.15:
        session = chance.choice(nodes).session
        session.set_blocked(not session.is_blocked)
    elif draw < 0.2:
        operate(floor.core, chance)
    floor.now_ns += int(chance.choice(STEPS_S) * SECOND_NS)
    floor.core.set_time(floor.now_ns)
    floor.timers.sweep(floor.now_ns, floor.now_ns)
    floor.dialects.rq.sweep(floor.now_ns)
    if draw > 0.9:
        recount(floor.core)


def operate(core: Core, chance: random.Random) -> None:
    """The operator's hand."""
    draw = chance.random()
    queue = chance.choice([b"a", b"b", b"c"])
    if draw < 0.5:
        operator.set_paused(core, queue, draw < 0.1)
    elif draw < 0.6:
        operator.purge(core, queue, 5)
    elif core.state.quarantine:
        operator.requeue(core, next(iter(core.state.quarantine.values())))


def check(floor: Floor) -> None:
    """What the whole round must add up to."""
    floor.commit()
    recount(floor.core)
    check_bounds(floor.core)
    agree(floor.core, floor.chronicle)
    replayed = Core(floor.core_settings, floor.load)
    replay = Replay(replayed)
    place = FIRST_PLACE
    for time_ns, records in floor.blocks:
        replay.block(records, place, time_ns)
        place += len(records)
    assert encode(replayed.state, int) == encode(floor.core.state, int), "a replay gives another state"


def main() -> None:
    parser = argparse.ArgumentParser(description="Fuzz the rq dialect and the core behind it.")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began = time.monotonic()
    outcomes = run(asked.inputs, asked.seed)
    took_s = time.monotonic() - began
    rate = asked.inputs / took_s
    print(f"rq: {asked.inputs} inputs of seed {asked.seed} in {took_s:.1f} s ({rate:.0f}/s), only documented errors")
    for code, count in outcomes.most_common():
        print(f"  {count:>9}  {code}")


if __name__ == "__main__":
    main()
