"""The buckets of durations: exact at every border, none left out, the last one open."""

from __future__ import annotations

import random

import pytest

from dragoman.model.buckets import (
    BUCKETS,
    between,
    bucket_begin_ns,
    bucket_middle_ns,
    bucket_of,
    counts_of,
    quantile_ns,
)


@pytest.mark.parametrize("bucket", range(BUCKETS))
def test_a_bucket_begins_exactly_where_it_says_and_the_one_before_ends_there(bucket: int) -> None:
    begin_ns = bucket_begin_ns(bucket)
    assert bucket_of(begin_ns) == bucket
    assert bucket_of(begin_ns - 1) == max(bucket - 1, 0)


@pytest.mark.parametrize("duration_ns", [-(10**18), -1, 0, 1, 999, 1000, 1124])
def test_what_took_no_time_or_less_is_in_the_first_bucket(duration_ns: int) -> None:
    assert bucket_of(duration_ns) == 0


def test_what_took_longer_than_the_last_octave_is_in_the_last_bucket() -> None:
    end_ns = 1000 << 40
    assert bucket_of(end_ns - 1) == BUCKETS - 1
    assert bucket_of(end_ns) == BUCKETS - 1
    assert bucket_of((1 << 62) - 1) == BUCKETS - 1


def test_a_bucket_is_never_wider_than_an_eighth_of_its_beginning() -> None:
    chance = random.Random(1)
    for _ in range(2000):
        duration_ns = int(1000 * 2 ** chance.uniform(0, 39.9))
        bucket = bucket_of(duration_ns)
        begin_ns, end_ns = bucket_begin_ns(bucket), bucket_begin_ns(bucket + 1)
        assert begin_ns <= duration_ns < end_ns
        assert (end_ns - begin_ns) * 8 <= begin_ns


def test_a_quantile_is_the_middle_of_the_bucket_in_which_it_lies() -> None:
    counts = counts_of([[80, 98], [160, 1], [BUCKETS - 1, 1]])
    assert quantile_ns(counts, 100, 0.5) == bucket_middle_ns(80) == (bucket_begin_ns(80) + bucket_begin_ns(81)) // 2
    assert quantile_ns(counts, 100, 0.98) == bucket_middle_ns(80)
    assert quantile_ns(counts, 100, 0.99) == bucket_middle_ns(160)
    assert quantile_ns(counts, 100, 1.0) == bucket_begin_ns(BUCKETS - 1), "it has no end"


def test_what_came_between_two_looks_is_the_difference_unless_another_broker_began() -> None:
    assert between({3: 1, 7: 2}, {3: 1, 7: 5, 9: 1}) == {7: 3, 9: 1}
    assert between({3: 4}, {3: 1}) == {3: 1}
