"""What the fuzzers of all dialects share: a broker that keeps its books, rounds of inputs, the sum at the end, the command."""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable

from dragoman.core import operator
from dragoman.core.core import Core
from dragoman.core.settings import CoreSettings
from dragoman.core.storage.replay import Replay
from dragoman.core.storage.snapshot import encode
from dragoman.dialects.emqp.settings import EmqpSettings
from dragoman.model.units import SECOND_NS
from dragoman_lab.sim.checks.facts import Chronicle
from dragoman_lab.sim.checks.recount import agree, check_bounds, recount
from tests.core.harness import FIRST_POSITION, InMemoryBroker

ROUND = 1000  # inputs that one broker sees


def some_settings(chance: random.Random, timeouts_s: tuple[int, ...] = (0, 0, 4)) -> CoreSettings:
    """Small numbers more often than not: what is rare at the defaults happens all the time."""
    core = CoreSettings()
    core.head_max = chance.choice([1, 3, 50, 100_000])
    core.queue_messages_max = chance.choice([0, 0, 20])
    core.quarantine_after = chance.choice([0, 1, 3])
    core.timeout_ns = chance.choice(timeouts_s) * SECOND_NS
    return core


class RecordingBroker(InMemoryBroker):
    """A broker whose facts are kept block by block."""

    def __init__(self, core_settings: CoreSettings, emqp_settings: EmqpSettings | None = None) -> None:
        self.chronicle = Chronicle()
        self.core_settings = core_settings
        super().__init__(core_settings, emqp_settings)

    def commit(self) -> None:
        count = self.core.log.count
        super().commit()
        if count:
            self.chronicle.append(self.blocks[-1][1], count, self.blocks[-1][0])

    def finish_deferred(self) -> None:
        """Do now what a broker does one step a tick: an rq node that has left is released in steps."""
        while self.outboxes.deferred:
            self.outboxes.catch_up()

    def close_books(self) -> None:
        """What the whole round must add up to."""
        self.finish_deferred()
        self.commit()
        recount(self.core)
        check_bounds(self.core)
        agree(self.core, self.chronicle)
        replayed = Core(self.core_settings, self.load)
        replay = Replay(replayed)
        position = FIRST_POSITION
        for time_ns, records in self.blocks:
            replay.block(records, position, time_ns)
            position += len(records)
        assert encode(replayed.state, int) == encode(self.core.state, int), "a replay gives another state"


def operate(core: Core, chance: random.Random, queues: list[bytes]) -> None:
    """The operator's hand."""
    draw = chance.random()
    queue = chance.choice(queues)
    if draw < 0.5:
        operator.set_paused(core, queue, draw < 0.1)
    elif draw < 0.6:
        operator.purge(core, queue, 5)
    elif core.state.quarantine:
        operator.requeue(core, next(iter(core.state.quarantine.values())))


class Rounds:
    """A fuzzer: `one_round(seed, number, inputs)` is one broker's day, the same in every run."""

    def __init__(self, name: str, one_round: Callable[[int, int, int], tuple[Counter[str], RecordingBroker]]) -> None:
        self.name = name
        self.one_round = one_round

    def run(self, inputs: int, seed: int) -> Counter[str]:
        """Feed that many inputs; the count of each outcome (an error's code, or "quiet"). A failure names its round."""
        outcomes: Counter[str] = Counter()
        number = 0
        while inputs > 0:
            try:
                outcomes.update(self.one_round(seed, number, min(inputs, ROUND))[0])
            except Exception as trouble:
                raise AssertionError(f"seed {seed}, round {number}: {trouble!r}") from trouble
            inputs -= ROUND
            number += 1
        return outcomes

    def facts_of(self, seed: int, number: int) -> set[str]:
        """The kinds of facts that one round caused."""
        return {str(fact["fact"]) for fact in self.one_round(seed, number, ROUND)[1].facts()}

    def digest_of(self, seed: int, number: int) -> str:
        return self.one_round(seed, number, ROUND)[1].chronicle.digest()

    def main(self) -> None:
        parser = argparse.ArgumentParser(description=f"Fuzz the {self.name} dialect and the core behind it.")
        parser.add_argument("--inputs", type=int, default=1_000_000)
        parser.add_argument("--seed", type=int, default=1)
        asked = parser.parse_args()
        began_s = time.monotonic()
        outcomes = self.run(asked.inputs, asked.seed)
        took_s = time.monotonic() - began_s
        what = f"{self.name}: {asked.inputs} inputs of seed {asked.seed}"
        print(f"{what} in {took_s:.1f} s ({asked.inputs / took_s:.0f}/s), only documented errors")
        for code, count in outcomes.most_common():
            print(f"  {count:>9}  {code}")
