"""Ids towards a consumer: always the smallest free one, from 0."""

from __future__ import annotations

import heapq
import random

from dragoman.dialects.rq.ids import FreeIds


def test_ids_count_up_from_zero_and_the_table_grows_as_needed() -> None:
    ids = FreeIds()
    assert [ids.take() for _ in range(40_000)] == list(range(40_000))


def test_the_smallest_free_id_is_taken_whatever_was_given_back() -> None:
    for seed in range(20):
        chance = random.Random(seed)
        ids = FreeIds()
        free = list(range(6000))
        taken: list[int] = []
        for _ in range(4000):
            if taken and chance.random() < chance.choice([0.2, 0.5, 0.8]):
                given = taken.pop(chance.randrange(len(taken)))
                ids.give(given)
                heapq.heappush(free, given)
            else:
                got = int(ids.take())
                assert got == heapq.heappop(free), f"seed {seed}"
                taken.append(got)


def test_a_table_of_ids_that_is_exactly_full_grows_and_shrinks_to_the_lowest_again() -> None:
    ids = FreeIds()
    for number in range(512):
        assert ids.take() == number
    assert ids.take() == 512
    ids.give(511)
    ids.give(0)
    assert [ids.take(), ids.take(), ids.take()] == [0, 511, 513]
