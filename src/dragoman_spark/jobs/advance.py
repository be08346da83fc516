"""One batch, from planned facts to a committed state. The same for the first load of a whole history and for a stream's next files.

All data is written first, to folders of this batch's number, and the state last. So a batch that dies is repeated from the
state before, overwrites its own partial output, and no reader has seen any of it.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from dragoman_spark.jobs import state as states
from dragoman_spark.jobs.carry import begins_frame, carry_lives, carry_names, read_queues
from dragoman_spark.jobs.options import SILENT, Progress
from dragoman_spark.jobs.plan import File, Plan
from dragoman_spark.jobs.spark.together import together
from dragoman_spark.jobs.state import Begin, State
from dragoman_spark.jobs.tables.folders import batch_folder
from dragoman_spark.jobs.tables.grow import grow
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.sources.catalog import Catalog, Span
from dragoman_spark.sources.facts import read_facts
from dragoman_spark.tables import EVENTS
from dragoman_spark.transforms.life.kinds import NAMING


class Advance:
    """Advances from the state before a batch to the batch's own."""

    def __init__(self, session: SparkSession, root: TableRoot, catalog: Catalog, before: State, batch: int) -> None:
        self.session, self.root, self.catalog = session, root, catalog
        self.before, self.batch = before, batch
        self.folder = batch_folder(batch)
        self.rows: dict[str, int] = {}
        self.carried = dict(before.carried)

    def take(self, plan: Plan, spans: dict[File, Span], progress: Progress = SILENT) -> State:
        """Write what the planned facts add, and commit."""
        after = replace(self.before, batch=self.batch, done=plan.done, held=tuple(plan.held))
        if plan.take:
            seen_last = [spans[take.file].last_at for take in plan.take]
            after = replace(
                after,
                begins=_begins(self.before.begins, plan, spans),
                now=max(seen_last if after.now is None else [after.now, *seen_last]),
                facts=after.facts + plan.rows,
            )
            self._write(plan, after, progress)
            after = replace(after, rows_by_table=_added(self.before.rows_by_table, self.rows), carried=self.carried)
        states.commit(self.root, after)
        return after

    def _write(self, plan: Plan, after: State, progress: Progress) -> None:
        facts = read_facts(self.session, self.catalog.root, plan.take)

        def queues(events: DataFrame) -> DataFrame:
            if not self.root.values(f"{EVENTS.name}/{self.folder}", "kind").isdisjoint(NAMING):
                self.carried |= carry_names(self.session, self.root, self.before, events, self.batch)
            return read_queues(self.session, self.root, replace(after, carried=self.carried))

        def write_grown() -> None:
            self.rows |= grow(self.session, self.root, self.folder, facts, queues, progress)

        def write_lives() -> None:
            begins = begins_frame(self.session, after.begins)
            self.carried |= self._lives(plan, facts, after, begins)

        together([write_grown, write_lives])

    def _lives(self, plan: Plan, facts: DataFrame, after: State, begins: DataFrame) -> dict[str, str]:
        late = [take for take in plan.take if take.is_late]
        return carry_lives(
            self.session,
            self.root,
            self.before,
            facts,
            self.batch,
            begins,
            read_facts(self.session, self.catalog.root, late) if late else None,
            lambda: read_facts(self.session, self.catalog.root, self.catalog.takes(after.done)),
        )


def _begins(known: dict[str, Begin], plan: Plan, spans: dict[File, Span]) -> dict[str, Begin]:
    begins = dict(known)
    for take in plan.take:
        broker, begin = take.file.part.broker, Begin(take.first_lsn, spans[take.file].first_at)
        if broker not in begins or begin.lsn < begins[broker].lsn:
            begins[broker] = begin
    return begins


def _added(before: dict[str, int], rows: dict[str, int]) -> dict[str, int]:
    return {name: before.get(name, 0) + rows.get(name, 0) for name in sorted({*before, *rows})}
