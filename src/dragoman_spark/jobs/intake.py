"""Takes new files of the lake in batches, for `run` and `watch`.

Spark's file source reports new files; which of them are taken is planned by their names and by what is done, so it does
not matter how often, in which order or after which crash it reports them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from dragoman.errors import LakeIncomplete
from dragoman.lake.layout import uncovered
from dragoman_spark.jobs import state as states
from dragoman_spark.jobs.advance import Advance
from dragoman_spark.jobs.judge import judge, keep
from dragoman_spark.jobs.options import Options, Progress
from dragoman_spark.jobs.plan import File, plan
from dragoman_spark.jobs.state import FIRST_LOAD, State
from dragoman_spark.jobs.tables.delta import publish
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.sources.catalog import Catalog

# Facts of a batch at most: while catching up, this spreads the cost of planning over many facts, and the tasks become no larger.
LOT_ROWS: Final = 10_000_000


class Stopped(Exception):
    """The stream was stopped before this batch."""


class Intake:
    """Advances the state, one batch at a time."""

    def __init__(
        self, session: SparkSession, catalog: Catalog, root: TableRoot, options: Options, progress: Progress
    ) -> None:
        self.session, self.catalog, self.root = session, catalog, root
        self.options, self.progress = options, progress
        self.state: State = states.last_state(root) or states.BEFORE_ALL
        self.batches = 0
        self.facts = 0
        self.quality_failures = 0
        self.facts_ahead = 0  # according to the lake's file names at the start
        self.error: BaseException | None = None
        self._one_at_a_time = threading.Lock()
        self._is_stopping = False

    def take_history(self) -> None:
        """Take the facts of the history that are not done: all of it at the first start; later what a long stopped stream missed, whose
        small files are gone."""
        left = self._left(self.catalog.files())
        self.facts_ahead = sum(rows for rows in left.values())
        files = [file for file in self.catalog.history() if file in left]
        if files:
            self.take(files, is_load=True)

    def on_batch(self, batch: DataFrame, number: int) -> None:
        """Spark's callback for each of its batches. Its rows and number are ignored: a batch only signals that there is something, and the
        state decides what is taken."""
        try:
            self.take_pending()
        except BaseException as error:
            self.error = self.error or error
            raise

    def take_pending(self) -> None:
        """Take the pending files, in batches of some million facts."""
        for files in lots(self.pending(), LOT_ROWS):
            self.take(files)

    def take(self, files: Iterable[File], is_load: bool = False) -> None:
        """Advance by these files, as far as they are not done."""
        with self._one_at_a_time:
            if self._is_stopping:
                raise Stopped
            before = self.state
            spans = self.catalog.spans(files)
            chosen = plan(before.done, before.held, list(spans), self.catalog.files, self.options.hold_batches)
            if not chosen.take and tuple(chosen.held) == tuple(before.held):
                return
            spans |= self.catalog.spans({take.file for take in chosen.take} - set(spans))
            gone = [take for take in chosen.take if take.file not in spans]
            if gone:
                # Compacted since it was listed, or while it was held: the history has its facts at the next start.
                raise LakeIncomplete(self.catalog.root, sum(take.rows for take in gone), gone[0].file.part.broker)
            batch = before.batch + 1 if before.batch >= FIRST_LOAD or is_load else FIRST_LOAD + 1
            way = Advance(self.session, self.root, self.catalog, before, batch)
            self.state = way.take(chosen, spans, self.progress)
            publish(self.root)
            self.batches += 1
            self.facts += chosen.rows
            self.progress.step("facts", self.facts, max(self.facts, self.facts_ahead))

    def judge(self) -> None:
        """Check every expectation on the facts since the last check; the result is a batch of its own. It runs beside the other batches,
        because it takes longer than any table and no row waits for it."""
        found = judge(self.session, self.root, self.catalog, self.state)
        if found is None:
            return
        with self._one_at_a_time:
            self.state = keep(self.session, self.root, self.state, found)
        self.quality_failures += found.failures

    def publish(self) -> None:
        """Make the committed data visible to readers of Delta."""
        with self._one_at_a_time:
            publish(self.root)

    def stop(self) -> None:
        """Let the current batch finish and start no other."""
        with self._one_at_a_time:
            self._is_stopping = True

    def pending(self) -> list[File]:
        """Files of `incoming` with facts that are neither done nor held, in lsn order."""
        held = {wait.file for wait in self.state.held}
        return sorted(file for file in self._left(self.catalog.incoming()) if file not in held)

    def _left(self, files: Iterable[File]) -> dict[File, int]:
        """Files with facts that are not done, and how many."""
        left = {}
        for file in files:
            done = self.state.done.get(file.part.broker, [])
            rows = sum(last - first + 1 for first, last in uncovered(file.part.first_lsn, file.part.last_lsn, done))
            if rows:
                left[file] = rows
        return left


def lots(files: Sequence[File], rows_max: int) -> list[list[File]]:
    """The files grouped into batches of about `rows_max` rows."""
    found: list[list[File]] = []
    rows = rows_max
    for file in files:
        if rows >= rows_max:
            found.append([])
            rows = 0
        found[-1].append(file)
        rows += file.part.rows
    return found
