"""The page of crossings and the declarations behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.dialects import crossing, features
from dragoman.dialects.crossing import DIALECTS
from dragoman.dialects.description import DialectDescription
from dragoman.dialects.features import BETWEEN, CROSSING, FEATURES
from dragoman.dialects.registry import DESCRIPTIONS
from dragoman.model.enums import EBUS, EMQP, RQ, SCALE0
from tests.docs.reference_pages import render

PAGE = Path(__file__).parents[2] / "docs/reference/crossings.md"


def test_the_page_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == render("crossings.md", page), "run `make docs`"


def test_every_feature_has_its_number_and_stands_in_one_list() -> None:
    assert list(range(len(FEATURES))) == sorted(CROSSING + BETWEEN)


@pytest.mark.parametrize("described", DESCRIPTIONS, ids=lambda described: described.name)
def test_a_dialect_declares_nothing_twice(described: DialectDescription) -> None:
    for words in (described.client_words, described.worker_words):
        declared = [feature for feature, _ in words]
        assert declared
        assert len(declared) == len(set(declared))
        assert all(text for _, text in words)


def test_workers_declare_only_what_crosses() -> None:
    assert {feature for described in DESCRIPTIONS for feature, _ in described.worker_words} <= set(CROSSING)


@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("worker", DIALECTS)
def test_a_feature_survives_or_is_dropped_never_both(client: int, worker: int) -> None:
    survives, dropped = set(crossing.surviving(client, worker)), set(crossing.dropped(client, worker))
    assert features.REPLY in survives
    assert not survives & dropped
    for feature in CROSSING:
        assert (crossing.wording(client, worker, feature) != "") == (feature in survives)


@pytest.mark.parametrize(
    ("feature", "dialects"),
    [
        (features.SCHEDULE, [EMQP]),
        (features.KEPT, [RQ, EMQP]),
        (features.QUEUES, [RQ, EBUS, EMQP, SCALE0]),
    ],
)
def test_those_who_have_a_feature_are_named_the_last_one_first(feature: int, dialects: list[int]) -> None:
    assert crossing.having(feature) == dialects


def test_every_feature_is_had_by_some_dialect() -> None:
    assert [feature.name for number, feature in enumerate(FEATURES) if not crossing.having(number)] == []
