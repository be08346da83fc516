"""Names of files and which of them to read."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.lake.layout import Part, broker_name, broker_no, cover, date_of, parse

DATE = datetime.date(2026, 1, 31)
BROKER, OTHER = "00000000000000aa", "00000000000000bb"


def part(first: int, last: int, broker: str = BROKER) -> Part:
    return Part(broker, first, last, DATE)


def read(incoming: list[Part], history: list[Part]) -> list[tuple[str, int, int]]:
    return [(share.tier, share.first_lsn, share.last_lsn) for share in cover(incoming, history)]


def test_a_path_says_what_its_part_is() -> None:
    path = "facts/incoming/date=2026-01-31/00000000000000aa-00000000000000000005-00000000000000000009.parquet"
    assert part(5, 9).path("incoming") == path
    assert parse(path) == part(5, 9)
    assert parse(f"/any/root/{path}") == part(5, 9)
    assert part(5, 9).rows == 5


@pytest.mark.parametrize(
    "path",
    [
        "date=2026-01-31/_tmp-00000000000000aa-00000000000000000005-00000000000000000009.parquet",
        "date=2026-01-31/00000000000000aa-00000000000000000009-00000000000000000005.parquet",  # ends before it begins
        "date=2026-01-31/00000000000000aa-00000000000000000000-00000000000000000005.parquet",  # lsns begin at 1
        "date=2026-01-31/00000000000000AA-00000000000000000005-00000000000000000009.parquet",
        "date=2026-01-31/00000000000000aa-5-9.parquet",
        "date=2026-01-31/00000000000000aa-00000000000000000005-٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٩.parquet",
        "date=2026-01-31/00000000000000aa-00000000000000000005-00000000000000000009.csv",
        "date=20260131/00000000000000aa-00000000000000000005-00000000000000000009.parquet",
        "date=2026-02-30/00000000000000aa-00000000000000000005-00000000000000000009.parquet",
        "2026-01-31/00000000000000aa-00000000000000000005-00000000000000000009.parquet",
        "00000000000000aa-00000000000000000005-00000000000000000009.parquet",
        "date=2026-01-31/*.parquet",
        "",
    ],
)
def test_any_other_name_is_nobodys(path: str) -> None:
    assert parse(path) is None


def test_a_brokers_number_is_a_positive_long() -> None:
    assert broker_no(b"\xff" * 16) == 2**63 - 1
    assert broker_name(b"\xff" * 16) == "7fffffffffffffff"
    assert broker_name(bytes(16)) == "0" * 16


def test_a_day_begins_at_midnight_utc() -> None:
    midnight_ns = 1_769_817_600_000_000_000  # 2026-01-31 00:00 UTC
    assert date_of(midnight_ns) == DATE
    assert date_of(midnight_ns - 1) == DATE - datetime.timedelta(days=1)


def test_history_counts_where_both_hold_a_fact() -> None:
    assert read([part(1, 5), part(6, 9)], [part(1, 9)]) == [("history", 1, 9)]


def test_what_only_incoming_holds_is_read_there() -> None:
    assert read([part(1, 5), part(6, 9), part(10, 12)], [part(1, 9)]) == [("history", 1, 9), ("incoming", 10, 12)]


def test_a_part_that_history_holds_partly_is_read_partly() -> None:
    assert read([part(1, 10)], [part(3, 5)]) == [("incoming", 1, 2), ("history", 3, 5), ("incoming", 6, 10)]


def test_overlapping_parts_of_one_shelf_give_each_fact_once() -> None:
    assert read([part(1, 10), part(5, 15), part(1, 3)], []) == [("incoming", 1, 10), ("incoming", 11, 15)]


def test_brokers_do_not_cover_each_other() -> None:
    assert read([part(1, 5), part(1, 5, OTHER)], [part(1, 5)]) == [("history", 1, 5), ("incoming", 1, 5)]


def test_a_whole_share_knows_that_it_is() -> None:
    assert [share.is_whole for share in cover([part(1, 10)], [part(10, 12)])] == [False, True]


ranges = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 10)), max_size=8)


@given(incoming=ranges, history=ranges)
def test_every_fact_that_is_there_is_read_exactly_once(
    incoming: list[tuple[int, int]], history: list[tuple[int, int]]
) -> None:
    tiers = {
        "incoming": [part(first, first + more) for first, more in incoming],
        "history": [part(first, first + more) for first, more in history],
    }
    held = {name: {lsn for p in parts for lsn in range(p.first_lsn, p.last_lsn + 1)} for name, parts in tiers.items()}
    got: list[int] = []
    for share in cover(tiers["incoming"], tiers["history"]):
        lsns = range(share.first_lsn, share.last_lsn + 1)
        assert share.part.first_lsn <= share.first_lsn
        assert share.last_lsn <= share.part.last_lsn
        assert share.tier == "history" or held["history"].isdisjoint(lsns)
        got += lsns
    assert got == sorted(held["incoming"] | held["history"])
