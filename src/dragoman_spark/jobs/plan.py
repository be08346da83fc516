"""Decides which facts a batch takes, from the names of files alone. Pure: no Spark, no disk.

Facts of one broker are numbered without gaps, and a file's name says which of them it holds. So nothing has to be compared row
by row: what is done is a short list of ranges, and a file's part in a batch is its own range minus those.

- Facts are taken in lsn order. Duplicates and overlaps are removed by arithmetic.
- Files after a gap are held (only their names) until the gap is filled: by a late file, or by one in the lake's catalog.
- A gap that nothing fills is held for `hold_batches` further batches; then it is accepted and reported, and the batch continues.
- A file that comes for an accepted gap is still taken. Its facts are *late*: newer ones were taken before them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from dragoman.lake.layout import Gap, Part, Tier, merged, uncovered

# The lsns that are done, of one broker: sorted, both ends included, no range touching the next.
Ranges = list[tuple[int, int]]


@dataclass(frozen=True, order=True, slots=True)
class File:
    """One file of the lake: a part on one of its tiers."""

    part: Part
    tier: Tier

    @property
    def path(self) -> str:
        """The path relative to the lake's root."""
        return self.part.path(self.tier)


@dataclass(frozen=True, slots=True)
class Held:
    """A file after a gap, and how many further batches it has waited."""

    file: File
    batches: int


@dataclass(frozen=True, slots=True)
class Take:
    """A file's part in a batch. `is_late`: it belongs before facts that were taken already."""

    file: File
    first_lsn: int
    last_lsn: int
    is_late: bool = False

    @property
    def is_whole(self) -> bool:
        return (self.first_lsn, self.last_lsn) == (self.file.part.first_lsn, self.file.part.last_lsn)

    @property
    def rows(self) -> int:
        return self.last_lsn - self.first_lsn + 1


@dataclass(frozen=True, slots=True)
class Plan:
    """What a batch takes, what it holds, the gaps that it accepts, and what is done after it."""

    take: list[Take]
    held: list[Held]
    accepted: list[Gap]
    done: dict[str, Ranges]

    @property
    def rows(self) -> int:
        return sum(take.rows for take in self.take)


Catalog = Callable[[], Sequence[File]]


def plan(
    done: dict[str, Ranges], held: Sequence[Held], new: Sequence[File], catalog: Catalog, hold_batches: int
) -> Plan:
    """Plan one batch. `catalog` lists the whole lake; it is called only if there is a gap or a new broker."""
    listed = cache(catalog)

    def known(broker: str) -> list[File]:
        return [file for file in listed() if file.part.broker == broker]

    after = Plan([], [], [], dict(done))
    for broker in sorted({file.part.broker for file in new} | {wait.file.part.broker for wait in held}):
        waits = {wait.file: wait.batches + 1 for wait in held if wait.file.part.broker == broker}
        files = {file for file in new if file.part.broker == broker} | set(waits)
        walk = _Walk(broker, done.get(broker, []), waits, partial(known, broker), hold_batches)
        walk.over(sorted(files, key=_order))
        after.take.extend(walk.take)
        after.held.extend(walk.held)
        after.accepted.extend(walk.accepted)
        after.done[broker] = walk.done
    return after


class _Walk:
    """Iterates over one broker's files in lsn order."""

    def __init__(self, broker: str, done: Ranges, waits: dict[File, int], catalog: Catalog, hold_batches: int) -> None:
        self.broker, self.done, self.waits = broker, done, waits
        self.catalog, self.hold_batches = catalog, hold_batches
        self.frontier = 0  # all lsns up to it are done, or in an accepted gap
        self.take: list[Take] = []
        self.held: list[Held] = []
        self.accepted: list[Gap] = []

    def over(self, files: list[File]) -> None:
        self.frontier = self.done[-1][1] if self.done else self._before_the_lake(files)
        for n, file in enumerate(files):
            self._take_late(file)
            before = file.part.first_lsn - 1
            if before > self.frontier:
                self._fill(before)
            if before > self.frontier:
                if not self._has_waited(files[n:]):
                    self.held = [Held(one, self.waits.get(one, 0)) for one in files[n:]]
                    return
                self.accepted.append(Gap(self.broker, self.frontier + 1, before))
                self.frontier = before
            self._take_next(file, file.part.last_lsn)

    def _before_the_lake(self, files: list[File]) -> int:
        """The lsn before a broker's first fact in the lake: facts before that are not waited for."""
        return min(file.part.first_lsn for file in [*files, *self.catalog()]) - 1

    def _has_waited(self, behind: list[File]) -> bool:
        return max(self.waits.get(file, 0) for file in behind) >= self.hold_batches

    def _take_late(self, file: File) -> None:
        last = min(file.part.last_lsn, self.frontier)
        for first_lsn, last_lsn in uncovered(file.part.first_lsn, last, self.done):
            self._take(Take(file, first_lsn, last_lsn, is_late=True))

    def _take_next(self, file: File, last_lsn: int) -> None:
        last_lsn = min(file.part.last_lsn, last_lsn)
        if last_lsn > self.frontier:
            self._take(Take(file, max(file.part.first_lsn, self.frontier + 1), last_lsn))
            self.frontier = last_lsn

    def _take(self, take: Take) -> None:
        self.take.append(take)
        self.done = merged([*self.done, (take.first_lsn, take.last_lsn)])

    def _fill(self, last_lsn: int) -> None:
        """Take the lake's facts of the gap that ends at `last_lsn`, up to the first hole."""
        files, n = sorted(self.catalog(), key=_order), 0
        while self.frontier < last_lsn:
            # The one that reaches furthest: a file of the history before the small ones it was made from.
            furthest: File | None = None
            while n < len(files) and files[n].part.first_lsn <= self.frontier + 1:
                if furthest is None or files[n].part.last_lsn > furthest.part.last_lsn:
                    furthest = files[n]
                n += 1
            if furthest is None or furthest.part.last_lsn <= self.frontier:
                return
            self._take_next(furthest, last_lsn)


def _order(file: File) -> tuple[int, int, Tier]:
    return file.part.first_lsn, -file.part.last_lsn, file.tier
