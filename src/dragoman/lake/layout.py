"""File paths in a lake and what their names mean. Pure: names in, ranges out; standard library only.

    <root>/facts/incoming/date=2026-01-31/<broker>-<first lsn>-<last lsn>.parquet
    <root>/facts/history/date=2026-01-31/<broker>-<first lsn>-<last lsn>.parquet

A file is dense: it holds every fact of its broker from its first lsn to its last, so that its name gives its row count. All of them
have its date (UTC). Files in `history` are made from files in `incoming`, which stay for a while; where both hold a fact the
one in `history` counts. Files with any other name are left alone and never read.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby, pairwise
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
_HEX: Final = frozenset("0123456789abcdef")
_DIGITS: Final = frozenset("0123456789")
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

    @property
    def rows(self) -> int:
        return self.last_lsn - self.first_lsn + 1


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
    steps = path.rsplit("/", 2)
    if len(steps) < 2 or not steps[-2].startswith(DATE_KEY) or not steps[-1].endswith(SUFFIX):
        return None
    words = steps[-1].removesuffix(SUFFIX).split("-")
    if len(words) != 3 or [len(word) for word in words] != [_BROKER_DIGITS, _LSN_DIGITS, _LSN_DIGITS]:
        return None
    broker, first, last = words
    if not _HEX.issuperset(broker) or not _DIGITS.issuperset(first + last):
        return None
    try:
        date = datetime.date.fromisoformat(steps[-2].removeprefix(DATE_KEY))
    except ValueError:
        return None
    part = Part(broker, int(first), int(last), date)
    return part if 1 <= part.first_lsn <= part.last_lsn and f"{DATE_KEY}{date.isoformat()}" == steps[-2] else None


def cover(incoming: Iterable[Part], history: Iterable[Part]) -> list[Share]:
    """The ranges to read so that every fact comes once: history first, then what only incoming parts hold. In lsn order, broker by broker."""
    taken: dict[str, list[tuple[int, int]]] = {}
    shares: list[Share] = []
    tiers: tuple[tuple[Tier, Iterable[Part]], ...] = ((HISTORY, history), (INCOMING, incoming))
    for tier, parts in tiers:
        # Of parts that begin together the longest goes first: the others are then covered and omitted entirely.
        for part in sorted(set(parts), key=lambda part: (part.broker, part.first_lsn, -part.last_lsn)):
            ranges = taken.setdefault(part.broker, [])
            free = uncovered(part.first_lsn, part.last_lsn, ranges)
            shares += [Share(part, tier, first, last) for first, last in free]
            taken[part.broker] = merged(ranges + free) if free else ranges
    return sorted(shares, key=lambda share: (share.part.broker, share.first_lsn))


def gaps(parts: Iterable[Part]) -> list[Gap]:
    """Missing ranges between the parts, broker by broker. Facts before a broker's first part do not count: a lake may begin late."""
    found: list[Gap] = []
    for broker, group in groupby(sorted(parts), key=lambda part: part.broker):
        ranges = merged([(part.first_lsn, part.last_lsn) for part in group])
        for (_, before), (after, _) in pairwise(ranges):
            found.append(Gap(broker, before + 1, after - 1))
    return found


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
    for taken_first, taken_last in ranges:
        if taken_last < first:
            continue
        if taken_first > last:
            break
        if taken_first > first:
            free.append((first, taken_first - 1))
        first = taken_last + 1
    if first <= last:
        free.append((first, last))
    return free
