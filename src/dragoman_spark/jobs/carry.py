"""State carried from batch to batch: incomplete lives, orphans, and the names of queues.

    (open, facts) → (closed, open')

A life that continues is computed from what was open and from the batch's own facts. That fails for two kinds: a life whose facts came late
(after newer ones), and one that seems to be an orphan because the rest of it was settled in an earlier batch. For these
few, all their facts are read from the lake, and their rows are computed from those.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dragoman_spark.jobs import state as states
from dragoman_spark.jobs.state import Begin, State
from dragoman_spark.jobs.tables.folders import write_folder
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.schemas import FACTS
from dragoman_spark.sources.small import small_frame
from dragoman_spark.tables import EVENTS, OPEN, ORPHANS
from dragoman_spark.transforms.events import events
from dragoman_spark.transforms.life.kinds import LIFE, NAMING, QUEUE_NAMED
from dragoman_spark.transforms.life.lives import lives
from dragoman_spark.transforms.life.open_messages import open_messages
from dragoman_spark.transforms.life.orphans import orphans
from dragoman_spark.transforms.queues import queues

KEYS: Final = ["broker_id", "message_no"]
# In a lake that begins in the middle of a broker's history: no fault, and nothing that more facts could explain.
NO_FAULT: Final = "before_lake"
# The carried frames, by their names in the state.
LIVES: Final = "lives"
NAMES: Final = "names"
FOUND: Final = ORPHANS.name
_BEGINS: Final = T.StructType().add("broker_id", "long").add("first_lsn", "long").add("first_at", "timestamp")


def begins_frame(session: SparkSession, begins: dict[str, Begin]) -> DataFrame:
    """Where each broker's facts begin: `broker_id, first_lsn, first_at`."""
    rows = [(int(broker, 16), begin.lsn, begin.at) for broker, begin in begins.items()]
    return small_frame(session, rows, _BEGINS)


def read_queues(session: SparkSession, root: TableRoot, state: State) -> DataFrame:
    """The queues after `state`."""
    return queues(_carried(session, root, state, NAMES, EVENTS.struct()))


def read_open(session: SparkSession, root: TableRoot, state: State) -> DataFrame:
    """The messages that are open after `state`."""
    return open_messages(_carried(session, root, state, LIVES, _lives_struct(session)))


def read_orphans(session: SparkSession, root: TableRoot, state: State) -> DataFrame:
    """The orphans up to `state`."""
    return _carried(session, root, state, FOUND, ORPHANS.struct())


def carry_names(session: SparkSession, root: TableRoot, before: State, events: DataFrame, batch: int) -> dict[str, str]:
    """Write the naming facts that count after this batch, as few as necessary; return their folder."""
    new = events.where(F.col("kind").isin(*NAMING))
    known = _carried(session, root, before, NAMES, EVENTS.struct())
    return {NAMES: _write(root, batch, NAMES, _as_few(known.unionByName(new)))}


def carry_lives(
    session: SparkSession,
    root: TableRoot,
    before: State,
    facts: DataFrame,
    batch: int,
    begins: DataFrame,
    late: DataFrame | None,
    story: Callable[[], DataFrame],
) -> dict[str, str]:
    """Write the lives that are incomplete after this batch, and the orphans if there may be new ones; return their folders. `late`: the
    late ones of the facts. `story`: returns all facts that are done with this batch, called only if needed."""
    lives_folder = _write(root, batch, LIVES, lives(read_open(session, root, before), facts))
    has_known = FOUND in before.carried and root.rows(before.carried[FOUND]) > 0
    if late is None and not has_known and not root.filled(lives_folder, "why"):
        return {LIVES: lives_folder}
    known_lives = _read(session, root, lives_folder, _lives_struct(session))
    known, found = read_orphans(session, root, before), orphans(known_lives, begins)
    asked_folder = _write(root, batch, "asked", _asked(facts, known, found, late))
    asked = _read(session, root, asked_folder, T.StructType(ORPHANS.struct().fields[:2]))
    if not root.rows(asked_folder):
        return {LIVES: lives_folder, FOUND: _write(root, batch, FOUND, added_up(known.unionByName(found)))}
    nothing = small_frame(session, [], OPEN.struct())
    truth_folder = _write(root, batch, "truth", lives(nothing, story().join(F.broadcast(asked), KEYS, "left_semi")))
    truth = _read(session, root, truth_folder, _lives_struct(session))
    rest = added_up(known.unionByName(found)).join(asked, KEYS, "left_anti")
    return {
        LIVES: _write(root, batch, "mended", known_lives.join(asked, KEYS, "left_anti").unionByName(truth)),
        FOUND: _write(root, batch, FOUND, rest.unionByName(orphans(truth, begins))),
    }


def carry_whole(
    session: SparkSession, root: TableRoot, facts: DataFrame, batch: int, begins: DataFrame, name: str
) -> dict[str, str]:
    """Write all carried state anew, from facts that have none before them, under names of its own; return the folders."""
    lives_folder = _write(root, batch, f"{LIVES}-{name}", lives(small_frame(session, [], OPEN.struct()), facts))
    known_lives = _read(session, root, lives_folder, _lives_struct(session))
    naming = events(facts.where(F.col("kind").isin(*NAMING)))
    return {
        LIVES: lives_folder,
        FOUND: _write(root, batch, f"{FOUND}-{name}", orphans(known_lives, begins)),
        NAMES: _write(root, batch, f"{NAMES}-{name}", _as_few(naming)),
    }


def whole_lives(session: SparkSession, facts: DataFrame, begins: DataFrame) -> tuple[DataFrame, DataFrame]:
    """`open` and `orphans` of facts that have none before them."""
    known_lives = lives(small_frame(session, [], OPEN.struct()), facts)
    return open_messages(known_lives), orphans(known_lives, begins)


def added_up(found: DataFrame) -> DataFrame:
    """One row per message number, merged from several batches."""
    return ORPHANS.select(
        found.groupBy(KEYS).agg(
            F.min_by("why", "first_lsn").alias("why"),
            F.sum("facts").alias("facts"),
            F.min("first_lsn").alias("first_lsn"),
            F.max("last_lsn").alias("last_lsn"),
            F.min("first_at").alias("first_at"),
        )
    )


def _asked(facts: DataFrame, known: DataFrame, found: DataFrame, late: DataFrame | None) -> DataFrame:
    """The messages whose facts are all read from the lake: new faults, known ones with new facts, and all that came late."""
    is_fault = F.col("why") != NO_FAULT
    steps = facts.where(F.col("kind").isin(*LIFE))
    asked = found.where(is_fault).select(KEYS)
    asked = asked.unionByName(
        steps.join(F.broadcast(known.where(is_fault).select(KEYS)), KEYS, "left_semi").select(KEYS)
    )
    if late is not None:
        asked = asked.unionByName(late.where(F.col("kind").isin(*LIFE)).select(KEYS))
    return asked.distinct()


def _as_few(naming: DataFrame) -> DataFrame:
    """The first name of each queue and its last pause or resumption: all that `queues` uses."""
    whole, lsn = F.struct(*EVENTS.names), F.col("lsn")
    kept = naming.groupBy("broker_id", "queue_no", (F.col("kind") == QUEUE_NAMED).alias("is_named")).agg(
        F.min_by(whole, lsn).alias("first"), F.max_by(whole, lsn).alias("last")
    )
    row = F.when(F.col("is_named"), F.col("first")).otherwise(F.col("last"))
    return EVENTS.select(kept.select(F.inline(F.array(row))))


@cache
def _lives_struct(session: SparkSession) -> T.StructType:
    """The schema of `lives`. Spark only analyses the plan for it, and runs nothing."""
    return lives(small_frame(session, [], OPEN.struct()), small_frame(session, [], FACTS)).schema


def _write(root: TableRoot, batch: int, name: str, frame: DataFrame) -> str:
    write_folder(frame, root, states.folder(batch), name)
    return f"{states.folder(batch)}/{name}"


def _read(session: SparkSession, root: TableRoot, folder: str, struct: T.StructType) -> DataFrame:
    return session.read.schema(struct).parquet(root.uri(folder))


def _carried(session: SparkSession, root: TableRoot, state: State, name: str, struct: T.StructType) -> DataFrame:
    if name not in state.carried:
        return small_frame(session, [], struct)
    return _read(session, root, state.carried[name], struct)
