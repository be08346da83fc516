"""The lake's files by name: which exist, and which parts make up the facts that are done. No Spark."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from dragoman.errors import LakeIncomplete
from dragoman.lake.layout import HISTORY, INCOMING, Gap, Share, cover, merged, uncovered
from dragoman.lake.store import Lake
from dragoman_spark.jobs.plan import File, Ranges, Take
from dragoman_spark.jobs.tables.root import for_arrow

# Each is a short wait for the store.
FOOTERS_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Span:
    """The instants of a file's earliest and latest fact."""

    first_at: datetime
    last_at: datetime


class Catalog:
    """The files of one lake, listed anew on each call."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._lake = Lake(for_arrow(root))

    def history(self) -> list[File]:
        return [File(part, HISTORY) for part in self._lake.parts(HISTORY)]

    def incoming(self) -> list[File]:
        return [File(part, INCOMING) for part in self._lake.parts(INCOMING)]

    def files(self) -> list[File]:
        return [*self.history(), *self.incoming()]

    def spans(self, files: Iterable[File]) -> dict[File, Span]:
        """The time span of each file's facts. Files compacted meanwhile are left out. Raises LAKE_TOO_NEW or LAKE_DAMAGED if a file has a
        later schema, is torn, or has other than the number of facts in its name."""
        files = list(files)
        with ThreadPoolExecutor(FOOTERS_AT_ONCE) as pool:
            spans = list(pool.map(lambda file: self._lake.span(file.part, file.tier), files))
        return {file: Span(*span) for file, span in zip(files, spans, strict=True) if span is not None}

    def takes(self, done: dict[str, Ranges], day: date | None = None) -> list[Take]:
        """What to read so that every existing fact of these ranges comes once; of one day, or of all."""
        shares = cover(self._lake.parts(INCOMING), self._lake.parts(HISTORY))
        takes = [take for share in shares for take in _within(share, done.get(share.part.broker, []))]
        return takes if day is None else [take for take in takes if take.file.part.date == day]

    def whole(self, done: dict[str, Ranges]) -> list[Take]:
        """The same for all ranges. Raises LAKE_INCOMPLETE if files are gone."""
        takes = self.takes(done)
        lost = lacking(takes, done)
        if lost:
            raise LakeIncomplete(self.root, sum(gap.last_lsn - gap.first_lsn + 1 for gap in lost), lost[0].broker)
        return takes


def lacking(takes: Iterable[Take], done: dict[str, Ranges]) -> list[Gap]:
    """Facts that are done and in none of the takes."""
    held: dict[str, Ranges] = {}
    for take in takes:
        held.setdefault(take.file.part.broker, []).append((take.first_lsn, take.last_lsn))
    return [
        Gap(broker, first, last)
        for broker, ranges in done.items()
        for range_first, range_last in ranges
        for first, last in uncovered(range_first, range_last, merged(held.get(broker, [])))
    ]


def _within(share: Share, done: Ranges) -> list[Take]:
    file = File(share.part, share.tier)
    spans = [(max(first, share.first_lsn), min(last, share.last_lsn)) for first, last in done]
    return [Take(file, first, last) for first, last in spans if first <= last]
