"""Objectives: what a file may say, and what is refused with file and key named."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.errors import BadObjectives
from dragoman_spark.transforms.checks.objectives import MEAN_WAIT, Objective, mean_waits_ms, read, shares

READY = Path(__file__).parents[2] / "contrib" / "objectives.toml"
GOOD = """
[[objective]]
name = "prompt"
queue = "mail"
measure = "wait"
threshold_ms = 250
target = 0.95
"""


def refused(tmp_path: Path, text: str) -> BadObjectives:
    path = tmp_path / "objectives.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadObjectives) as caught:
        read(path)
    assert caught.value.file == str(path)
    assert str(caught.value).startswith(str(path))
    return caught.value


def test_without_a_file_there_is_an_objective_of_each_kind() -> None:
    objectives = read(None)
    assert Objective("done within a minute", "*", "total", 60_000.0, 0.99) in objectives
    assert Objective("success", "*", "success", None, 0.999) in objectives
    assert mean_waits_ms(objectives) == {"*": 1000.0}


def test_a_file_says_objectives_and_mean_waits(tmp_path: Path) -> None:
    path = tmp_path / "objectives.toml"
    path.write_text(GOOD + "[capacity]\nwait_ms = 500\n[capacity.queue_wait_ms]\n'a b' = 20\n", encoding="utf-8")
    objectives = read(path)
    assert shares(objectives) == [Objective("prompt", "mail", "wait", 250.0, 0.95)]
    assert mean_waits_ms(objectives) == {"*": 500.0, "a b": 20.0}


def test_what_a_file_leaves_out_comes_from_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "objectives.toml"
    path.write_text("[capacity]\nwait_ms = 5\n", encoding="utf-8")
    assert shares(read(path)) == shares(read(None))
    path.write_text(GOOD, encoding="utf-8")
    assert mean_waits_ms(read(path)) == {"*": 1000.0}


def test_the_mean_wait_is_no_share() -> None:
    assert [objective.measure for objective in read(None) if objective not in shares(read(None))] == [MEAN_WAIT]


@pytest.mark.parametrize(
    ("text", "key", "problem"),
    [
        ("objective = 3", "objective", "[[objective]]"),
        ("[[objectives]]\nname = 'x'", "objectives", "known are capacity, objective"),
        ("[[objective]]\nmeasure = 'total'", "objective 1: name", "is missing"),
        ("[[objective]]\nname = ' '", "objective 1: name", "must be a text"),
        (GOOD.replace("wait", "latency"), "objective 1 (prompt): measure", "wait, work, total, success"),
        (GOOD.replace("threshold_ms = 250", ""), "objective 1 (prompt): threshold_ms", "is missing"),
        (GOOD.replace("250", "-1"), "objective 1 (prompt): threshold_ms", "above 0"),
        (GOOD.replace("250", "nan"), "objective 1 (prompt): threshold_ms", "above 0"),
        (GOOD.replace("250", "true"), "objective 1 (prompt): threshold_ms", "above 0"),
        (GOOD.replace("wait", "success"), "objective 1 (prompt): threshold_ms", "success has no threshold"),
        (GOOD.replace("0.95", "1"), "objective 1 (prompt): target", "below 1"),
        (GOOD.replace("0.95", "'95 %'"), "objective 1 (prompt): target", "a number above 0"),
        (GOOD.replace("'mail'", "7").replace('"mail"', "7"), "objective 1 (prompt): queue", "must be a text"),
        (GOOD + "treshold_ms = 1", "objective 1: treshold_ms", "not known here"),
        (GOOD + GOOD, "objective 2 (prompt): name", "has one of this name already"),
        ("capacity = 1", "capacity", "[capacity]"),
        ("[capacity]\nwait = 1", "capacity: wait", "not known here"),
        ("[capacity]\nwait_ms = 0", "capacity: wait_ms", "above 0"),
        ("[capacity]\nqueue_wait_ms = 5", "capacity: queue_wait_ms", "[capacity.queue_wait_ms]"),
        ("[capacity.queue_wait_ms]\nmail = 0", "capacity: queue_wait_ms: mail", "above 0"),
    ],
)
def test_a_wrong_word_is_refused_by_its_key(tmp_path: Path, text: str, key: str, problem: str) -> None:
    error = refused(tmp_path, text)
    assert error.key == key
    assert problem in error.problem


def test_a_file_that_is_no_toml_is_refused_with_the_line(tmp_path: Path) -> None:
    assert "line 2" in refused(tmp_path, "[capacity]\nwait_ms ==").problem


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadObjectives, match=r"nowhere\.toml: cannot be read"):
        read(tmp_path / "nowhere.toml")


def test_two_queues_may_have_objectives_of_the_same_name(tmp_path: Path) -> None:
    path = tmp_path / "objectives.toml"
    path.write_text(GOOD + GOOD.replace("mail", "images"), encoding="utf-8")
    assert [objective.queue for objective in shares(read(path))] == ["mail", "images"]


def test_the_ready_file_can_be_read_and_says_something() -> None:
    objectives = read(READY)
    assert {objective.measure for objective in objectives} == {"wait", "work", "total", "success", MEAN_WAIT}
    assert len(mean_waits_ms(objectives)) > 1
