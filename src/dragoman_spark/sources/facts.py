"""Facts as frames: by the files a plan names, or as a stream of the files that arrive.

Files are read by their names and never by a pattern, and without the `date` of their folder: a fact's own instant says it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from dragoman.errors import LakeDamaged
from dragoman.lake.layout import FACTS as FOLDER
from dragoman.lake.layout import HISTORY, INCOMING, parse
from dragoman_spark.jobs.place import for_spark
from dragoman_spark.jobs.plan import File, Take
from dragoman_spark.schemas import FACTS
from dragoman_spark.transforms.kinds import PAUSED, QUEUE_NAMED, RESUMED

_FILE: Final = "_file"
_UNREADABLE: Final = re.compile(r"\[FAILED_READ_FILE\.(?:NO_HINT|CANNOT_READ_FILE_FOOTER)\][^\n]*?(\S+\.parquet)")
# Bytes of files that make a batch: about two million facts. Spark bounds a batch by whole files.
BATCH_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True)
class Measure:
    """What one look at a file tells: its rows, the span of its instants, and whether it names or pauses queues."""

    rows: int
    first_at: datetime
    last_at: datetime
    names: int


def read_facts(session: SparkSession, root: str, takes: Iterable[Take]) -> DataFrame:
    """Exactly the facts that were planned."""
    takes = list(takes)
    whole = [take for take in takes if take.is_whole]
    cut = [take for take in takes if not take.is_whole]
    frames = []
    if whole:
        frames.append(_read(session, root, [take.file for take in whole]))
    if cut:
        # Tied to the file: two files may both hold a fact, and only one of them is to give it.
        is_wanted = reduce(Column.__or__, [_is_of(take) for take in cut])
        frames.append(_read(session, root, sorted({take.file for take in cut})).where(is_wanted))
    if not frames:
        return session.createDataFrame([], FACTS)
    return reduce(DataFrame.unionByName, frames)


def stream_files(session: SparkSession, root: str) -> DataFrame:
    """The files of `incoming` as they come, with as much of their rows as `measure` looks at: Spark hands a streamed batch over
    with every column it was asked for, needed or not, so the facts themselves are read by name once they are planned.
    A file that is gone by the time it is read is no fault: its numbers are missing then, and the plan finds them in the history.
    """
    reader = session.readStream.schema(FACTS).option("recursiveFileLookup", "true")
    reader = reader.option("maxBytesPerTrigger", str(BATCH_BYTES)).option("ignoreMissingFiles", "true")
    frame = reader.parquet(f"{for_spark(root)}/{FOLDER}/{INCOMING}")
    return _measurable(frame)


def measure(batch: DataFrame) -> dict[File, Measure]:
    """Look once at every file of a batch of `stream_files`. LAKE_DAMAGED where one does not hold exactly the facts that its name
    says."""
    is_naming = F.col("kind").isin(QUEUE_NAMED, PAUSED, RESUMED)
    seen = batch.groupBy(_FILE).agg(
        F.count(F.lit(1)).alias("rows"),
        F.unix_micros(F.min("at")).alias("first_us"),
        F.unix_micros(F.max("at")).alias("last_us"),
        F.count_if(is_naming).alias("names"),
    )
    found = {}
    for row in _collected(seen):
        part = parse(row[_FILE])
        if part is None:
            continue  # nobody's file: its name is of another form
        if row["rows"] != part.rows:
            raise LakeDamaged(row[_FILE], f"it has {row['rows']} rows, its name says {part.rows}")
        file = File(part, INCOMING if f"/{FOLDER}/{INCOMING}/" in row[_FILE] else HISTORY)
        found[file] = Measure(row["rows"], _instant(row["first_us"]), _instant(row["last_us"]), row["names"])
    return found


def measure_files(session: SparkSession, root: str, files: Iterable[File]) -> dict[File, Measure]:
    """The same for files that a plan found in the lake's catalog."""
    files = sorted(set(files))
    if not files:
        return {}
    return measure(_measurable(_read(session, root, files)))


def _measurable(facts: DataFrame) -> DataFrame:
    return facts.select("at", "kind", F.col("_metadata.file_path").alias(_FILE))


def _collected(seen: DataFrame) -> list[Row]:
    try:
        return seen.collect()
    except Exception as error:
        # What Spark raises for this has many classes, one for each way to it; its words are the same.
        named = _UNREADABLE.search(str(error))
        if named is None:
            raise
        raise LakeDamaged(named[1], "it is no whole Parquet file") from error


def _read(session: SparkSession, root: str, files: list[File]) -> DataFrame:
    base = for_spark(root)
    return session.read.schema(FACTS).parquet(*[f"{base}/{file.path}" for file in files])


def _is_of(take: Take) -> Column:
    is_file = F.col("_metadata.file_name") == take.file.part.name
    return is_file & F.col("lsn").between(take.first_lsn, take.last_lsn)


def _instant(micros: int) -> datetime:
    return datetime.fromtimestamp(micros // 1_000_000, UTC).replace(microsecond=micros % 1_000_000)
