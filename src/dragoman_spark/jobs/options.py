"""What the jobs are told and what they answer: `run`, `watch`, `backfill`, `check`, `report` and `compact` share these. No Spark here.

A lake's root and the tables' place are texts throughout: a directory, or an address that Spark and pyarrow both understand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, Protocol

Format = Literal["parquet", "delta"]

# The sealer writes every 5 s; a look at the lake every 2 s leaves time for the batch itself within 10 s from message to row.
TRIGGER_S: Final = 2.0
# Batches that what lies behind a gap waits for a late file, before the gap is accepted and reported.
HOLD_BATCHES: Final = 1


@dataclass(frozen=True, slots=True)
class Options:
    """How a job works; where it works is told beside it."""

    format: Format = "parquet"
    # Objectives of the `slo` table, a TOML file; None: those that come with the pipeline.
    objectives_file: Path | None = None
    # Of `watch`: seconds from the beginning of one batch to that of the next.
    trigger_s: float = TRIGGER_S
    hold_batches: int = HOLD_BATCHES
    # The instant that answers are given for; None: the latest fact of the lake, so that they can be had again.
    now: datetime | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """What a job did."""

    batches: int = 0
    facts: int = 0
    rows_by_table: dict[str, int] = field(default_factory=dict)
    # Rows of `quality` that say no: the exit code is 1 when there is one.
    quality_failures: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Differences:
    """Where the streamed tables differ from those made anew from the lake."""

    # Every table that was compared, also those that agree.
    rows_by_table: dict[str, int] = field(default_factory=dict)
    # A few rows of each table that differs, as people read them.
    examples_by_table: dict[str, list[str]] = field(default_factory=dict)
    facts: int = 0
    seconds: float = 0.0

    @property
    def rows(self) -> int:
        return sum(self.rows_by_table.values())


class Progress(Protocol):
    """Told how far a job is: `name` is a table, a batch or a stage; the same name again moves its bar on.

    It may be called from any thread and must not raise.
    """

    def step(self, name: str, done: int, of: int) -> None: ...


class Silent:
    """Nobody watches."""

    def step(self, name: str, done: int, of: int) -> None:
        return


SILENT: Final = Silent()
