"""The bench's arithmetic: ratios are taken within a round, noise repeats a round, bars read the right way."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from bench import __main__ as command
from bench import rounds
from bench.bars import Bar, wire_bars
from bench.contenders import Running
from bench.dialogues import DIALOGUES, EMQP, PINGPONG, RQ, names_of
from bench.endpoint import Endpoint, Point, Sample
from bench.rounds import Figures, Plan, Round

MANY = Point(1000, 1)


def sample(trips_per_s: float, p50_us: float = 100.0, others_share: float = 0.0) -> Sample:
    return Sample(int(trips_per_s), 1.0, trips_per_s, p50_us, 2 * p50_us, 5.0, 1.0, others_share, 0)


def test_the_figure_is_the_median_of_ratios_within_rounds() -> None:
    # Within the rounds 3, 1 and 1.1 times; the medians over rounds would say 300 ÷ 200.
    pairs = [(100, 300), (200, 200), (300, 330)]
    figures = Figures(
        [Round(n, MANY, {"zmq.proxy": sample(p), "os": sample(o)}, 1.0, 0) for n, (p, o) in enumerate(pairs)]
    )
    assert figures.ratio(MANY, "os", "zmq.proxy") == 1.1


def test_a_contender_that_did_not_run_has_no_figure() -> None:
    figures = Figures([Round(1, MANY, {"zmq.proxy": sample(100)}, 1.0, 0)])
    assert figures.ratio(MANY, "os", "zmq.proxy") is None
    assert figures.middle(MANY, "os", "trips_per_s") is None
    assert {bar.verdict for bar in wire_bars(EMQP, figures)} == {"not measured"}


def test_each_dialect_has_its_own_bar_at_its_own_load() -> None:
    point = PINGPONG.bar_point
    figures = Figures([Round(1, point, {"zmq.proxy": sample(100), "os": sample(120)}, 1.0, 0)])
    (bar,) = wire_bars(PINGPONG, figures)
    assert (point.in_flight, point.workers, bar.value, bar.verdict) == (20, 20, 1.2, "met")
    assert [(name, one.bar) for name, one in DIALOGUES.items()] == [
        ("emqp", 1.0),
        ("rq", 2.5),
        ("ebus", 1.0),
        ("scale0", 1.0),
        ("pingpong", 1.0),
    ]


def test_a_load_may_have_more_workers_than_clients() -> None:
    assert (Point(20, 1, 20).workers, Point(20, 1, 20).slots_per_worker) == (20, 1)
    assert (Point(1000, 50).workers, Point(1000, 50).slots_per_worker) == (50, 20)


def test_parts_are_named_one_by_one_or_all_dialects_at_once() -> None:
    assert command.parts_of("rq,sdk") == ["rq", "sdk"]
    assert command.parts_of("wire") == list(DIALOGUES)
    with pytest.raises(argparse.ArgumentTypeError, match="no part 'mqtt'"):
        command.parts_of("rq,mqtt")


def test_only_contenders_that_speak_the_dialect_are_measured() -> None:
    assert names_of(RQ, None) == ("zmq.proxy", "memory", "os", "disk")
    assert names_of(RQ, ["pyzmq loop", "os"]) == ("os",)
    assert names_of(EMQP, ["pyzmq loop", "os"]) == ("pyzmq loop", "os")


@pytest.mark.parametrize(
    ("value", "limit", "is_floor", "verdict"),
    [
        (1.2, 1.0, True, "met"),
        (1.0, 1.0, True, "met"),
        (0.9, 1.0, True, "missed"),
        (1.2, 1.3, False, "met"),
        (1.3, 1.3, False, "met"),
        (1.4, 1.3, False, "missed"),
        (None, 1.0, True, "not measured"),
    ],
)
def test_a_bar_is_met_on_its_own_side(value: float | None, limit: float, is_floor: bool, verdict: str) -> None:
    assert Bar("a bar", value, limit, is_floor).verdict == verdict


class Scripted(Endpoint):
    """An endpoint that answers from a list."""

    def __init__(self, samples: list[Sample]) -> None:
        super().__init__((), "c++")
        object.__setattr__(self, "samples", samples)

    def run(self, timeout_s: float = 120, **flags: str | int | float) -> Sample:
        given: list[Sample] = self.__dict__["samples"]
        return given.pop(0)


def measured(tmp_path: Path, samples: list[Sample]) -> Round:
    contender = Running("zmq.proxy", "proxy", None, 0, "tcp://127.0.0.1:1", "tcp://127.0.0.1:2")  # type: ignore[arg-type]
    return rounds.measure(Plan(Scripted(samples), tmp_path), 1, MANY, [contender], pytest.fail)


def test_a_quiet_round_is_measured_once(tmp_path: Path) -> None:
    taken = measured(tmp_path, [sample(1, others_share=0.15)])
    assert (taken.repeats, taken.is_quiet) == (0, True)


def test_a_noisy_round_is_repeated_until_it_is_quiet(tmp_path: Path) -> None:
    taken = measured(tmp_path, [sample(1, others_share=0.5), sample(2, others_share=0.3), sample(3, others_share=0.1)])
    assert (taken.repeats, taken.samples["zmq.proxy"].trips_per_s) == (2, 3)


def test_on_a_busy_machine_the_quietest_try_counts_and_is_called_noisy(tmp_path: Path) -> None:
    shares = [0.5, 0.2, 0.4, 0.3]
    taken = measured(tmp_path, [sample(n, others_share=share) for n, share in enumerate(shares)])
    assert (taken.repeats, taken.samples["zmq.proxy"].trips_per_s, taken.is_quiet) == (rounds.REPEATS_MAX, 1, False)
