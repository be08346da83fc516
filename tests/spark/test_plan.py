"""Which facts a batch takes. Pure: no Spark, and it is quick."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date

import pytest

from dragoman.lake.layout import HISTORY, INCOMING, Gap, Part, Tier
from dragoman_spark.jobs.plan import File, Held, Plan, Ranges, Take, plan

ONE, TWO = "0000000000000001", "0000000000000002"


def file(first: int, last: int, broker: str = ONE, tier: Tier = INCOMING) -> File:
    return File(Part(broker, first, last, date(2026, 3, 2)), tier)


class Stream:
    """A stream's memory between batches, and all it has taken."""

    def __init__(self, hold_batches: int = 1) -> None:
        self.done: dict[str, Ranges] = {}
        self.held: list[Held] = []
        self.taken: list[tuple[str, int]] = []
        self.catalog: list[File] = []
        self.asked = 0
        self.hold_batches = hold_batches

    def batch(self, *new: File) -> Plan:
        chosen = plan(self.done, self.held, new, self._files, self.hold_batches)
        self.done, self.held = chosen.done, chosen.held
        self.taken += [(t.file.part.broker, lsn) for t in chosen.take for lsn in range(t.first_lsn, t.last_lsn + 1)]
        return chosen

    def _files(self) -> Sequence[File]:
        self.asked += 1
        return self.catalog


def ranges(chosen: Plan) -> list[tuple[int, int]]:
    return [(take.first_lsn, take.last_lsn) for take in chosen.take]


def test_files_are_taken_in_the_order_of_their_numbers() -> None:
    stream = Stream()
    assert ranges(stream.batch(file(11, 20), file(1, 10))) == [(1, 10), (11, 20)]
    assert stream.done == {ONE: [(1, 20)]}


def test_a_file_that_comes_again_is_not_taken_again() -> None:
    stream = Stream()
    stream.batch(file(1, 10))
    again = stream.batch(file(1, 10))
    assert (again.take, again.held, again.accepted) == ([], [], [])


def test_of_a_file_that_overlaps_only_the_rest_is_taken() -> None:
    stream = Stream()
    stream.batch(file(1, 10))
    assert stream.batch(file(5, 15)).take == [Take(file(5, 15), 11, 15)]


def test_of_two_files_that_begin_together_the_longer_is_taken_whole() -> None:
    chosen = Stream().batch(file(1, 4), file(1, 10))
    assert chosen.take == [Take(file(1, 10), 1, 10)]
    assert chosen.take[0].is_whole


def test_the_same_file_on_both_shelves_is_taken_once() -> None:
    assert Stream().batch(file(1, 10), file(1, 10, tier=HISTORY)).rows == 10


def test_what_lies_behind_a_gap_waits_for_the_late_file() -> None:
    stream = Stream()
    first = stream.batch(file(1, 10), file(21, 30))
    assert ranges(first) == [(1, 10)]
    assert first.held == [Held(file(21, 30), 0)]
    second = stream.batch(file(11, 20))
    assert ranges(second) == [(11, 20), (21, 30)]
    assert not any(take.is_late for take in second.take)
    assert (second.held, second.accepted) == ([], [])


def test_a_gap_is_accepted_after_one_further_batch() -> None:
    stream = Stream()
    stream.batch(file(1, 10))
    assert stream.batch(file(21, 30)).take == []
    second = stream.batch(file(31, 40))
    assert second.accepted == [Gap(ONE, 11, 20)]
    assert ranges(second) == [(21, 30), (31, 40)]
    assert stream.done == {ONE: [(1, 10), (21, 40)]}


@pytest.mark.parametrize("hold_batches", [0, 1, 2, 5])
def test_a_gap_is_held_for_as_many_batches_as_asked(hold_batches: int) -> None:
    stream = Stream(hold_batches)
    stream.batch(file(1, 10))
    batches = 0
    while not stream.batch(file(21 + batches, 21 + batches)).accepted:
        batches += 1
    assert batches == hold_batches


def test_a_gap_that_is_filled_in_part_is_accepted_for_the_rest() -> None:
    stream = Stream()
    stream.batch(file(1, 10), file(31, 40))
    second = stream.batch(file(16, 20))
    assert second.accepted == [Gap(ONE, 11, 15), Gap(ONE, 21, 30)]
    assert ranges(second) == [(16, 20), (31, 40)]


def test_a_file_for_an_accepted_gap_is_taken_and_called_late() -> None:
    stream = Stream(hold_batches=0)
    stream.batch(file(1, 10), file(21, 30))
    late = stream.batch(file(11, 20))
    assert late.take == [Take(file(11, 20), 11, 20, is_late=True)]
    assert stream.done == {ONE: [(1, 30)]}


def test_of_a_late_file_that_reaches_over_its_gap_each_missing_range_is_taken() -> None:
    stream = Stream(hold_batches=0)
    stream.batch(file(1, 5), file(8, 10), file(14, 20))
    late = stream.batch(file(4, 25))
    assert [(take.first_lsn, take.last_lsn, take.is_late) for take in late.take] == [
        (6, 7, True),
        (11, 13, True),
        (21, 25, False),
    ]


def test_a_gap_is_filled_from_the_history_at_once() -> None:
    stream = Stream()
    stream.batch(file(1, 10))
    stream.catalog = [file(1, 18, tier=HISTORY), file(11, 14), file(15, 18), file(19, 20)]
    chosen = stream.batch(file(21, 30))
    assert chosen.take == [
        Take(file(1, 18, tier=HISTORY), 11, 18),
        Take(file(19, 20), 19, 20),
        Take(file(21, 30), 21, 30),
    ]
    assert chosen.held == []


def test_what_the_history_lacks_of_a_gap_is_still_waited_for() -> None:
    stream = Stream()
    stream.batch(file(1, 10))
    stream.catalog = [file(11, 14, tier=HISTORY), file(17, 18, tier=HISTORY)]
    chosen = stream.batch(file(21, 30))
    assert ranges(chosen) == [(11, 14)]
    assert chosen.held == [Held(file(21, 30), 0)]


def test_the_catalog_is_not_listed_while_there_is_no_gap() -> None:
    stream = Stream()
    stream.batch(file(1, 10))
    asked = stream.asked
    stream.batch(file(11, 20), file(1, 10))
    assert stream.asked == asked


def test_a_lake_that_begins_late_is_waited_for_no_longer_than_it_is_there() -> None:
    chosen = Stream().batch(file(501, 510))
    assert ranges(chosen) == [(501, 510)]
    assert chosen.accepted == []


def test_a_broker_never_seen_begins_where_the_lake_has_its_first_fact() -> None:
    stream = Stream()
    stream.catalog = [file(1, 100, tier=HISTORY)]
    assert ranges(stream.batch(file(101, 110))) == [(1, 100), (101, 110)]


def test_a_first_file_that_comes_after_the_second_is_late() -> None:
    stream = Stream()
    stream.batch(file(11, 20))
    assert stream.batch(file(1, 10)).take == [Take(file(1, 10), 1, 10, is_late=True)]
    assert stream.done == {ONE: [(1, 20)]}


def test_brokers_do_not_wait_for_each_other() -> None:
    stream = Stream()
    stream.batch(file(1, 10), file(1, 10, TWO))
    chosen = stream.batch(file(21, 30), file(11, 20, TWO))
    assert [(take.file.part.broker, take.first_lsn) for take in chosen.take] == [(TWO, 11)]
    assert [wait.file.part.broker for wait in chosen.held] == [ONE]


@pytest.mark.parametrize("seed", range(60))
def test_whatever_comes_in_whatever_order_every_fact_is_taken_once(seed: int) -> None:
    print("seed", seed)
    chance = random.Random(seed)
    files: list[File] = []
    for broker in (ONE, TWO):
        cuts = sorted(chance.sample(range(2, 200), 15))
        files += [file(a, b - 1, broker) for a, b in zip([1, *cuts], [*cuts, 201], strict=True)]
        # Overlaps and doubles, as by two sealers at work.
        for _ in range(8):
            first, last = sorted(chance.choices(range(1, 201), k=2))
            files.append(file(first, last, broker, chance.choice([INCOMING, HISTORY])))
    chance.shuffle(files)
    files += chance.choices(files, k=10)
    stream = Stream(hold_batches=chance.choice([0, 1, 3]))
    late = 0
    while files:
        count = chance.randrange(1, 8)
        late += sum(take.is_late for take in stream.batch(*files[:count]).take)
        del files[:count]
    for _ in range(5):
        stream.batch()
    assert sorted(stream.taken) == [(broker, lsn) for broker in (ONE, TWO) for lsn in range(1, 201)]
    assert stream.done == {ONE: [(1, 200)], TWO: [(1, 200)]}
    assert stream.held == []


@pytest.mark.parametrize("seed", range(30))
def test_what_is_not_late_is_taken_in_the_order_of_its_numbers(seed: int) -> None:
    print("seed", seed)
    chance = random.Random(seed)
    files = [file(n * 10 + 1, n * 10 + 10) for n in range(30)]
    # Each at most a few places from where it belongs: what a hold of that many batches must put right.
    shuffled = [one for _, one in sorted((n + chance.random() * 3, one) for n, one in enumerate(files))]
    stream = Stream(hold_batches=4)
    stream.catalog = files[:1]
    for one in shuffled:
        assert not any(take.is_late for take in stream.batch(one).take)
    assert [lsn for _, lsn in stream.taken] == list(range(1, 301))
