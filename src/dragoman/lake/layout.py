"""File paths in a lake and what their names mean. Pure: names in, ranges out; standard library only.

    <root>/facts/incoming/date=2026-01-31/<broker>-<first lsn>-<last lsn>.parquet
    <root>/facts/history/date=2026-01-31/<broker>-<first lsn>-<last lsn>.parquet

A file is dense: it holds every fact of its broker from its first lsn to its last, so that its name gives its row count. All of them
have its date (UTC). Files in `history` are made from files in `incoming`, which stay for a while; where both hold a fact the
one in `history` counts. Files with any other name are left alone and never read.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

Tier = Literal["incoming", "history"]

FACTS: Final = "facts"
INCOMING: Final = "incoming"
HISTORY: Final = "history"
DATE_KEY: Final = "date="
SUFFIX: Final = ".parquet"
# Spark and Arrow ignore files with this prefix.
TEMPORARY: Final = "_tmp-"
_BROKER_DIGITS: Final = 16
_LSN_DIGITS: Final = 20
_PATH: Final = re.compile(
    r"(?:.*/)?date=(\d{4}-\d\d-\d\d)/([0-9a-f]{16})-(\d{20})-(\d{20})\.parquet", re.ASCII | re.DOTALL
)
_LONG_MASK: Final = (1 << 63) - 1


@dataclass(frozen=True, order=True, slots=True)
class Part:
    """One file, described by its name."""

    broker: str
    first_lsn: int
    last_lsn: int
    date: datetime.date

    @property
    def rows(self) -> int:
        return self.last_lsn - self.first_lsn + 1

    @property
    def name(self) -> str:
        lsns = f"{self.first_lsn:0{_LSN_DIGITS}d}-{self.last_lsn:0{_LSN_DIGITS}d}"
        return f"{self.broker}-{lsns}{SUFFIX}"

    def path(self, tier: Tier) -> str:
        """The path relative to the lake's root."""
        return f"{FACTS}/{tier}/{DATE_KEY}{self.date.isoformat()}/{self.name}"


@dataclass(frozen=True, order=True, slots=True)
class Share:
    """The range to read of a part: its facts from `first_lsn` to `last_lsn`, which may be fewer than it holds."""

    part: Part
    tier: Tier
    first_lsn: int
    last_lsn: int

    @property
    def is_whole(self) -> bool:
        return self.first_lsn == self.part.first_lsn and self.last_lsn == self.part.last_lsn


@dataclass(frozen=True, order=True, slots=True)
class Gap:
    """A range of facts that no part holds although there are later ones of their broker."""

    broker: str
    first_lsn: int
    last_lsn: int


def broker_no(broker_id: bytes) -> int:
    """A broker's id as in the column `broker_id`: 63 of its first 64 bits, so that it fits a signed long."""
    return int.from_bytes(broker_id[:8], "big") & _LONG_MASK


def broker_name(broker_id: bytes) -> str:
    """The same as 16 hex digits, for file names."""
    return f"{broker_no(broker_id):0{_BROKER_DIGITS}x}"


def date_of(time_ns: int) -> datetime.date:
    return datetime.datetime.fromtimestamp(time_ns // 1_000_000_000, datetime.UTC).date()


def parse(path: str) -> Part | None:
    """The part named by a path's last two components (`date=…/name`); None if they are no name of a part."""
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    try:
        part = Part(found[2], int(found[3]), int(found[4]), datetime.date.fromisoformat(found[1]))
    except ValueError:
        return None  # there is no such date
    return part if 1 <= part.first_lsn <= part.last_lsn else None


def cover(incoming: Iterable[Part], history: Iterable[Part]) -> list[Share]:
    """The ranges to read so that every fact comes once: history first, then what only incoming parts hold. In lsn order, broker by broker."""
    covered: dict[str, list[tuple[int, int]]] = {}
    shares: list[Share] = []
    tiers: tuple[tuple[Tier, Iterable[Part]], ...] = ((HISTORY, history), (INCOMING, incoming))
    for tier, parts in tiers:
        # Of parts that begin together the longest goes first: the others are then covered and omitted entirely.
        for part in sorted(set(parts), key=lambda part: (part.broker, part.first_lsn, -part.last_lsn)):
            ranges = covered.setdefault(part.broker, [])
            free = uncovered(part.first_lsn, part.last_lsn, ranges)
            shares += [Share(part, tier, first, last) for first, last in free]
            covered[part.broker] = merged(ranges + free) if free else ranges
    return sorted(shares, key=lambda share: (share.part.broker, share.first_lsn))


def merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same numbers as the fewest ranges, sorted; adjacent ranges become one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def uncovered(first: int, last: int, ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts of `first` to `last` that are in none of the ranges, which are sorted and do not overlap."""
    free: list[tuple[int, int]] = []
    for range_first, range_last in ranges:
        if range_last < first:
            continue
        if range_first > last:
            break
        if range_first > first:
            free.append((first, range_first - 1))
        first = range_last + 1
    if first <= last:
        free.append((first, last))
    return free
