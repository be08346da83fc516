"""Writes generated facts into a lake as a sealer would: large files in `history`, or small ones in `incoming`; or as
the journal of a broker that has just stopped, to test searches or a start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from dragoman.errors import JournalMisplaced, LakeTaken
from dragoman.journal.journal import Journal
from dragoman.journal.settings import JournalSettings
from dragoman.lake.layout import HISTORY, Tier, broker_name
from dragoman.lake.store import Lake
from dragoman.lake.writer import LakeWriter
from dragoman_lab.generate.broker import DAY_NS, Plan
from dragoman_lab.generate.world import World

# A new day begins a new file; below this its rows are written together with the next day's.
HISTORY_ROWS_MIN: Final = 250_000
HISTORY_ROWS_MAX: Final = 1_000_000
INCOMING_ROWS: Final = 50_000
REPORT_EVERY: Final = 20_000  # facts

Progress = Callable[[int, int], object]


@dataclass(slots=True)
class Filled:
    """Counts of what was written."""

    facts: int = 0
    messages: int = 0
    open: int = 0
    files: int = 0
    size: int = 0
    last_ns: int = 0


class Filler:
    """Writes one broker's blocks as files."""

    def __init__(
        self, lake: Lake, plan: Plan, tier: Tier, rows_max: int, filled: Filled, report: Callable[[int], object]
    ) -> None:
        self._writer = LakeWriter(lake, plan.broker_id)
        self._store = tier
        self._filled = filled
        self._report = report
        self._rows_max = rows_max
        self._rows = 0
        self._day = 0

    def take(self, records: bytes, first_lsn: int, count: int, time_ns: int) -> None:
        """Add one block; the end of a day ends a file."""
        day = time_ns // DAY_NS
        if self._rows >= self._rows_max or (day != self._day and self._rows >= HISTORY_ROWS_MIN):
            self.flush()
        self._day = day
        self._writer.add(records, first_lsn, count, time_ns)
        self._rows += count
        self._filled.facts += count
        self._filled.last_ns = time_ns
        if self._filled.facts % REPORT_EVERY < count:
            self._report(self._filled.facts)

    def flush(self) -> None:
        for written in self._writer.flush(self._store):
            self._filled.files += 1
            self._filled.size += written.size
        self._rows = 0


def fill(root: str, plans: list[Plan], tier: Tier, progress: Progress, rows_max: int = 0) -> Filled:
    """Generate the planned facts, one broker after the other; a file has `rows_max` rows (0: the tier's default), give or take a block.

    Raises LakeTaken if the lake already has facts of one of these brokers.
    """
    lake = Lake(root)
    for plan in plans:
        if lake.last_lsn(broker_name(plan.broker_id)) > 0:
            raise LakeTaken(root, plan.seed)
    filled = Filled()
    rows_max = rows_max or (HISTORY_ROWS_MAX if tier == HISTORY else INCOMING_ROWS)
    total = sum(plan.facts for plan in plans)
    for plan in plans:
        world = World(plan)
        filler = Filler(lake, plan, tier, rows_max, filled, lambda done: progress(done, total))
        world.run(filler.take)
        filler.flush()
        filled.messages += world.broker.core.state.accepted
        filled.open += world.broker.core.state.accepted - world.broker.core.state.settled
    progress(total, total)
    return filled


def plans_of(plan: Plan, brokers: int) -> list[Plan]:
    """The same plan for several brokers, which share its facts."""
    return [replace(plan, facts=max(plan.facts // brokers, 1), broker=i) for i in range(brokers)]


def write_journal(directory: str, plan: Plan, progress: Progress) -> Journal:
    """Generate the planned facts into a new journal and return it closed."""
    if Path(directory).exists() and any(Path(directory).iterdir()):
        raise JournalMisplaced(f"{directory} is not empty")
    settings = JournalSettings(directory, "os", size_max=1 << 62, zero_fill=False)
    journal = Journal.open(settings, now_ns=plan.start_ns, new_broker_id=plan.broker_id)

    def take(records: bytes, first_lsn: int, count: int, time_ns: int) -> None:
        if journal.wants_roll(len(records)):
            journal.roll()
            journal.upkeep(time_ns)
        journal.append([records], count, time_ns)
        if first_lsn % REPORT_EVERY < count:
            progress(first_lsn, plan.facts)

    World(plan).run(take)
    journal.close()
    progress(plan.facts, plan.facts)
    return journal
