"""Numbers for Prometheus before they are written: which queues have a name, what the rest adds up to, how durations become buckets."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dragoman.model.buckets import BUCKETS, bucket_of
from dragoman.web.metrics.exposition import COARSE, FINE, Family, cumulative, sum_s, wants_openmetrics, write
from dragoman.web.metrics.metric_labels import LabelledQueues

MILLISECOND_NS = 1_000_000


def queue(number: int, accepted: int, wait: list[list[int]] | None = None) -> dict[str, Any]:
    zeros = dict.fromkeys(("waiting", "delayed", "leased", "quarantined", "done", "failed", "released"), 0)
    return zeros | {
        "queue": f"q{number}",
        "queue_no": number,
        "accepted": accepted,
        "wait": wait or [],
        "total_time": [],
    }


def tallies(accepted: int, queues: int, boot_no: int = 1, wait: list[list[int]] | None = None) -> dict[str, Any]:
    whole = queue(0, accepted, wait)
    return whole | {"queues": queues, "boot_no": boot_no, "total": []}


def test_a_chosen_queue_stays_when_another_becomes_busier() -> None:
    labelled = LabelledQueues(1)
    assert [view["queue_no"] for view in labelled.choose([queue(1, 5), queue(2, 9)])] == [2]
    assert [view["queue_no"] for view in labelled.choose([queue(1, 500), queue(2, 9)])] == [2]


def test_room_that_is_left_goes_to_new_queues() -> None:
    labelled = LabelledQueues(2)
    labelled.choose([queue(1, 5)])
    assert [view["queue_no"] for view in labelled.choose([queue(1, 5), queue(2, 0), queue(3, 1)])] == [1, 3]


def test_a_chosen_queue_that_is_not_among_the_deepest_is_asked_for_by_its_name() -> None:
    labelled = LabelledQueues(2)
    labelled.choose([queue(1, 5), queue(2, 9)])
    assert labelled.missing([queue(3, 50), queue(2, 9)]) == ["q1"]
    assert labelled.missing([queue(2, 9), queue(1, 5)]) == []
    shown = labelled.choose([queue(3, 50), queue(2, 9), queue(1, 5)])
    assert [view["queue_no"] for view in shown] == [1, 2], "whatever order they come in"


def test_the_sum_of_the_rest_never_falls_when_a_queue_gets_a_name() -> None:
    labelled = LabelledQueues(1)
    assert labelled.rest(tallies(10, 2), []).counts["accepted"] == 10
    shown = labelled.choose([queue(1, 8), queue(2, 3)])
    assert labelled.rest(tallies(11, 2), shown).counts["accepted"] == 10
    assert labelled.rest(tallies(19, 2), [queue(1, 8)]).counts["accepted"] == 11


def test_the_sum_of_the_rest_begins_anew_with_the_broker() -> None:
    labelled = LabelledQueues(0)
    assert labelled.rest(tallies(10, 2, boot_no=1, wait=[[3, 4]]), []).wait == {3: 4}
    assert labelled.rest(tallies(2, 2, boot_no=2, wait=[[3, 1]]), []).wait == {3: 1}


def test_parts_that_are_ahead_of_the_whole_make_no_negative_rest() -> None:
    rest = LabelledQueues(1).rest(tallies(3, 2, wait=[[7, 1]]), [queue(1, 4, [[7, 2]])])
    assert (rest.counts["accepted"], rest.wait[7]) == (0, 0)


@pytest.mark.parametrize("octaves", [FINE, COARSE])
def test_a_duration_is_below_every_bound_that_is_longer(octaves: range) -> None:
    for duration_ns in (100, 10_000, MILLISECOND_NS, 300 * MILLISECOND_NS, 90_000 * MILLISECOND_NS, 10**17):
        counts = {int(bucket_of(duration_ns)): 1}
        found = list(cumulative(counts, octaves))
        assert found[-1] == (math.inf, 1)
        for bound_s, count in found[:-1]:
            assert count == (1 if duration_ns < bound_s * 1e9 else 0), (duration_ns, bound_s)


def test_the_sum_is_near_the_truth_and_the_endless_bucket_counts_as_its_beginning() -> None:
    durations_ns = [1_500, 40_000, 7 * MILLISECOND_NS, 3_333 * MILLISECOND_NS]
    for duration_ns in durations_ns:
        assert sum_s({int(bucket_of(duration_ns)): 10}) == pytest.approx(10 * duration_ns / 1e9, rel=1 / 16)
    assert math.isfinite(sum_s({BUCKETS - 1: 1}))


def test_a_family_without_series_is_not_announced() -> None:
    assert write([Family("dragoman_x", "gauge", "x")], is_openmetrics=True) == "# EOF\n"


@pytest.mark.parametrize(
    ("accept", "is_wanted"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.9", False),
        ("text/plain;version=0.0.4;q=0.3, application/openmetrics-text; version=1.0.0; q=0.8", True),
        ("application/openmetrics-text;q=much", False),
        ("application/openmetrics-text;q=²", False),
    ],
)
def test_the_format_is_the_one_that_is_liked_better(accept: str, is_wanted: bool) -> None:
    assert wants_openmetrics(accept) is is_wanted


def test_a_queue_that_was_forgotten_gives_its_place_and_its_name_back() -> None:
    labelled = LabelledQueues(1)
    assert [view["queue_no"] for view in labelled.choose([queue(1, 5)])] == [1]
    assert labelled.missing([queue(2, 9)]) == ["q1"]
    again = queue(7, 1) | {"queue": "q1"}
    assert [view["queue_no"] for view in labelled.choose([again])] == [7], "the same name, made anew"
