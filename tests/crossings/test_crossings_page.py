"""The page of crossings and the declarations behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.cli.crossings_page import render
from dragoman.dialects import crossing
from dragoman.dialects.crossing import BETWEEN, CLIENT_WORDS, CROSSING, DIALECTS, FEATURES, WORKER_WORDS
from dragoman.model.words import EBUS, EMQP, RQ, SCALE0

PAGE = Path(__file__).parents[2] / "docs/reference/crossings.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make docs`"


def test_every_feature_has_its_number_and_stands_in_one_list() -> None:
    assert [feature.number for feature in FEATURES] == sorted(CROSSING + BETWEEN)


@pytest.mark.parametrize("words", [CLIENT_WORDS, WORKER_WORDS])
def test_nothing_is_declared_twice_and_only_dialects_declare(words: list[crossing.Word]) -> None:
    keys = [(word.dialect, word.feature) for word in words]
    assert len(keys) == len(set(keys))
    assert {dialect for dialect, _ in keys} == set(DIALECTS)
    assert all(word.text for word in words)


def test_workers_declare_only_what_crosses() -> None:
    assert {word.feature for word in WORKER_WORDS} <= set(CROSSING)


@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("worker", DIALECTS)
def test_a_feature_survives_or_is_dropped_never_both(client: int, worker: int) -> None:
    survives, dropped = set(crossing.surviving(client, worker)), set(crossing.dropped(client, worker))
    assert crossing.REPLY in survives
    assert not survives & dropped
    for feature in CROSSING:
        assert (crossing.wording(client, worker, feature) != "") == (feature in survives)


@pytest.mark.parametrize(
    ("feature", "dialects"),
    [
        (crossing.SCHEDULE, [EMQP]),
        (crossing.KEPT, [RQ, EMQP]),
        (crossing.QUEUES, [RQ, EBUS, SCALE0, EMQP]),
    ],
)
def test_those_who_have_a_feature_are_named_nearest_first(feature: int, dialects: list[int]) -> None:
    assert crossing.having(feature) == dialects


def test_every_feature_is_had_by_some_dialect() -> None:
    assert [feature.name for feature in FEATURES if not crossing.having(feature.number)] == []
