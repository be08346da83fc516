"""Facts as frames: from the files in a plan, or as a stream of arriving files.

Files are read by their names and never by a pattern, and without the `date` of their folder: a fact has its own instant.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dragoman.lake.layout import FACTS as FOLDER
from dragoman.lake.layout import INCOMING
from dragoman_spark.jobs.plan import File, Take
from dragoman_spark.jobs.tables.root import for_spark
from dragoman_spark.schemas import FACTS
from dragoman_spark.sources.small import small_frame


def read_facts(session: SparkSession, root: str, takes: Iterable[Take]) -> DataFrame:
    """Exactly the planned facts."""
    takes = list(takes)
    whole = [take for take in takes if take.is_whole]
    cut = [take for take in takes if not take.is_whole]
    frames = []
    if whole:
        frames.append(_read(session, root, [take.file for take in whole]))
    if cut:
        # By file: two files may both hold a fact, and only one of them is to provide it.
        is_wanted = reduce(Column.__or__, [_is_of(take) for take in cut])
        frames.append(_read(session, root, sorted({take.file for take in cut})).where(is_wanted))
    if not frames:
        return small_frame(session, [], FACTS)
    return reduce(DataFrame.unionByName, frames)


def stream_files(session: SparkSession, root: str) -> DataFrame:
    """The files of `incoming` as they arrive. They only signal that there is something to take; what is taken is read by name."""
    reader = session.readStream.schema(FACTS).option("recursiveFileLookup", "true")
    return reader.parquet(f"{for_spark(root)}/{FOLDER}/{INCOMING}").select("lsn")


def _read(session: SparkSession, root: str, files: list[File]) -> DataFrame:
    base = for_spark(root)
    return session.read.schema(FACTS).parquet(*[f"{base}/{file.path}" for file in files])


def _is_of(take: Take) -> Column:
    is_file = F.col("_metadata.file_name") == take.file.part.name
    return is_file & F.col("lsn").between(take.first_lsn, take.last_lsn)
