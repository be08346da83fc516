"""Batches of late, doubled, overlapping, lost and torn files, against one batch of everything."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from dragoman.errors import LakeDamaged
from dragoman_spark.jobs.check import check
from dragoman_spark.jobs.intake import Intake
from dragoman_spark.jobs.options import SILENT, Differences, Options
from dragoman_spark.jobs.plan import File
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.jobs.tables.table_store import TableStore
from dragoman_spark.sources.catalog import Catalog
from tests.spark.lives_by_chance import facts_by_chance, to_arrow
from tests.spark.small_lakes import cut, lay, lay_all, lay_as


class Pipeline:
    """Batches of the files that a test names, in its order."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.lake, self.out = spark, folder / "lake", folder / "out"
        self.begin()

    def begin(self) -> None:
        """As after a start: all that is known is on disk."""
        self.intake = Intake(self.spark, Catalog(str(self.lake)), TableRoot(str(self.out)), Options(), SILENT)

    def batch(self, *files: File) -> None:
        self.intake.take(files)

    def check(self) -> Differences:
        return check(self.spark, str(self.lake), str(self.out), Options(), SILENT)

    def read(self, name: str) -> DataFrame:
        return TableStore(TableRoot(str(self.out))).read(self.spark, name)


@pytest.fixture
def pipeline(spark: SparkSession, tmp_path: Path) -> Pipeline:
    return Pipeline(spark, tmp_path)


def test_late_doubled_and_overlapping_files_give_what_one_batch_gives(pipeline: Pipeline) -> None:
    seed = 41
    print("seed", seed)
    chance = random.Random(seed)
    facts = facts_by_chance(seed, 500)
    others = facts_by_chance(seed + 1, 300, broker_id=8)
    files = [*lay_all(pipeline.lake, cut(facts, 9)), *lay_all(pipeline.lake, cut(others, 5))]
    # Not listed while the stream looks for them: these are late, the first by one batch, the other by all.
    for late in (files[2], files[4]):
        (pipeline.lake / late.path).rename(pipeline.lake / late.part.name)
    overlap = lay(pipeline.lake, [fact for fact in facts[150:170] if fact["at"].date() == facts[150]["at"].date()])
    order = [file for file in files if file not in (files[2], files[4])]
    pipeline.batch(order[0], order[0], overlap)
    (pipeline.lake / files[2].part.name).rename(pipeline.lake / files[2].path)
    pipeline.batch(files[2], *order[1:4], order[0])
    rest = order[4:]
    chance.shuffle(rest)
    pipeline.begin()
    pipeline.batch(*rest, overlap)
    (pipeline.lake / files[4].part.name).rename(pipeline.lake / files[4].path)
    pipeline.batch(files[4])
    assert pipeline.intake.state.facts == len(facts) + len(others)
    assert pipeline.check().examples_by_table == {}
    assert pipeline.read("orphans").count() == 0


def test_a_lost_file_is_waited_for_then_reported_and_a_crash_on_the_way_changes_nothing(pipeline: Pipeline) -> None:
    facts = facts_by_chance(43, 400)
    first, lost, third, fourth = cut(facts, 4)
    files = lay_all(pipeline.lake, [first, third, fourth])
    crashed = Intake(pipeline.spark, pipeline.intake.catalog, Dying(str(pipeline.out)), Options(), SILENT)
    with pytest.raises(PowerCut):
        crashed.take(files[:1])
    assert (pipeline.out / "messages/batch=0").exists(), "the crash came before the batch was written"
    pipeline.begin()
    pipeline.batch(files[0])
    pipeline.batch(files[1])
    assert pipeline.intake.state.facts == len(first), "what lies behind the gap is held"
    pipeline.begin()
    pipeline.batch(files[2])
    pipeline.intake.judge()
    assert pipeline.intake.state.facts == len(first) + len(third) + len(fourth)
    quality = {row["expectation"]: row["rows"] for row in pipeline.read("quality").collect()}
    assert quality["gap"] == len(lost)
    assert quality["orphan"] == pipeline.read("orphans").count() > 0
    assert pipeline.intake.quality_failures >= 2
    assert pipeline.check().examples_by_table == {}


def test_a_torn_file_stops_the_batch_and_nothing_is_lost(pipeline: Pipeline) -> None:
    whole = facts_by_chance(44, 60)
    part = lay(pipeline.lake, whole).part
    torn = lay_as(pipeline.lake, part, to_arrow(whole[:-1]))
    with pytest.raises(LakeDamaged, match=f"its name says {len(whole)}"):
        pipeline.batch(torn)
    path = pipeline.lake / torn.path
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(LakeDamaged, match="Parquet magic bytes not found"):
        pipeline.batch(torn)
    assert not (pipeline.out / "messages").exists()
    lay(pipeline.lake, whole)
    pipeline.batch(torn)
    assert pipeline.intake.state.facts == len(whole)


class PowerCut(Exception):
    """The machine is gone."""


class Dying(TableRoot):
    """A root at which everything can be written but the state: the batch dies with its last step."""

    def write(self, name: str, data: bytes) -> None:
        if name.endswith("state.json"):
            raise PowerCut
        super().write(name, data)
