"""The short run of the chaos program; `make chaos` kills thirty times."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.run import Outcome, run
from tests.chaos.tally import Tally

KILLS = 3
SEED = 11


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("durability", ["os", "disk"])
def test_nothing_acknowledged_is_lost_when_the_broker_is_killed(tmp_path: Path, durability: str) -> None:
    outcome = run(tmp_path / "data", durability, KILLS, SEED)
    assert outcome.kills == KILLS
    assert outcome.acknowledged > 0
    assert (outcome.lost, outcome.unexpected) == (0, []), str(outcome)
    assert set(outcome.answered_by_dialect) == {"scale0", "pingpong", "emqp", "ebus", "rq"}
    assert all(outcome.answered_by_dialect.values()), str(outcome)


def test_a_promise_without_work_counts_as_lost() -> None:
    tally = Tally(acknowledged={b"a", b"b"})
    tally.executed[b"a"] += 2
    assert tally.lost == {b"b"}
    assert tally.duplicated == 1


def test_an_answer_is_a_promise_too() -> None:
    tally = Tally()
    tally.answered[b"c"] += 1
    assert tally.lost == {b"c"}


def test_a_lost_request_or_an_unexpected_answer_is_no_good_outcome() -> None:
    assert Outcome("os", 1, 9, 9, 9, 0, 4, [], 1.0).is_good
    assert not Outcome("os", 1, 9, 9, 9, 1, 0, [], 1.0).is_good
    assert not Outcome("os", 1, 9, 9, 9, 0, 0, ["x was answered twice"], 1.0).is_good
    assert not Outcome("os", 1, 0, 0, 0, 0, 0, [], 1.0).is_good
