"""Writes generated facts as the journal of a broker that has just stopped, to test searches or a start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from dragoman.errors import JournalMisplaced
from dragoman.journal import Journal, JournalSettings
from dragoman_lab.generate.plan import Plan
from dragoman_lab.generate.world import World

TOLD_EVERY: Final = 20_000  # facts

Progress = Callable[[int, int], object]


def write_journal(directory: str, plan: Plan, progress: Progress) -> Journal:
    """Generate the planned facts into a new journal and return it closed."""
    if Path(directory).exists() and any(Path(directory).iterdir()):
        raise JournalMisplaced(f"{directory} is not empty")
    settings = JournalSettings(directory, "os", size_max=1 << 62, zero_fill=False)
    journal = Journal.open(settings, now_ns=plan.start_ns, new_broker_id=plan.broker_id)
    next_told = 0

    def take(records: bytes, first_lsn: int, count: int, time_ns: int) -> None:
        nonlocal next_told
        if journal.wants_roll(len(records)):
            journal.roll()
            journal.upkeep(time_ns)
        journal.append([records], count, time_ns)
        if first_lsn >= next_told:
            next_told = first_lsn + TOLD_EVERY
            progress(first_lsn, plan.facts)

    World(plan).run(take)
    journal.close()
    progress(plan.facts, plan.facts)
    return journal
