"""The options and results of the jobs `run`, `watch`, `backfill`, `check`, `report` and `compact`. No Spark here.

A lake's root and the tables' root are strings throughout: a directory, or an address that Spark and pyarrow both understand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, Protocol

Format = Literal["parquet", "delta"]

# The sealer writes every 5 s; checking the lake every 2 s leaves time for the batch itself within 10 s from message to row.
TRIGGER_S: Final = 2.0
# Batches that files after a gap wait for a late file, before the gap is accepted and reported.
HOLD_BATCHES: Final = 1


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a job; its input and output are passed separately."""

    format: Format = "parquet"
    # Objectives of the `slo` table, a TOML file; None: the pipeline's defaults.
    objectives_file: Path | None = None
    # Of `watch`: seconds from the start of one batch to that of the next.
    trigger_s: float = TRIGGER_S
    hold_batches: int = HOLD_BATCHES
    # The instant that the stated tables are computed for; None: the latest fact of the lake, so that they are reproducible.
    now: datetime | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """What a job did."""

    batches: int = 0
    facts: int = 0
    rows_by_table: dict[str, int] = field(default_factory=dict)
    # Rows of `quality` that failed: if there is one, the exit code is 1.
    quality_failures: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Differences:
    """The differences between the streamed tables and those rebuilt from the lake."""

    # Every compared table, also those that agree.
    rows_by_table: dict[str, int] = field(default_factory=dict)
    # A few differing rows of each table, as text.
    examples_by_table: dict[str, list[str]] = field(default_factory=dict)
    facts: int = 0
    seconds: float = 0.0

    @property
    def rows(self) -> int:
        return sum(self.rows_by_table.values())


class Progress(Protocol):
    """Receives the progress of a job: `name` is a table, a batch or a stage; the same name again advances its bar.

    It may be called from any thread and must not raise.
    """

    def step(self, name: str, done: int, of: int) -> None: ...


class Silent:
    """Ignores progress."""

    def step(self, name: str, done: int, of: int) -> None:
        return


SILENT: Final = Silent()
