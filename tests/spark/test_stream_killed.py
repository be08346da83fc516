"""A streaming process killed again and again in the middle of a batch: not a row is lost or doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import deque
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dragoman_spark.jobs.check import check
from dragoman_spark.jobs.intake import Intake
from dragoman_spark.jobs.options import SILENT, Options
from dragoman_spark.jobs.stream import take_all
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.jobs.tables.table_store import TableStore
from dragoman_spark.sources.catalog import Catalog
from tests.spark.lives_by_chance import Fact, facts_by_chance
from tests.spark.small_lakes import cut, lay

ROOT = Path(__file__).parents[2]
# After which step of a batch each kill comes: it says one for each of its seven tables, then that it is committed. Then Spark still
# has to note that the batch is done.
STEPS = [1, 2, 3, 4, 5, 6, 7, 8, 8, 8]
TWO_STEPS = [4, 8]  # between two tables, and before Spark notes that the batch is done
FACTS_PER_KILL = 90


class Child:
    """One streaming process, of its own group: Python and Java die together."""

    def __init__(self, lake: Path, out: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("kill_stream.py")), str(lake), str(out)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )

    def go(self) -> None:
        self.line("ready")
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def line(self, wanted: str = "") -> str:
        """The next line; the next that is `wanted`, where that is said. Empty when the process has ended."""
        assert self.process.stdout is not None
        for said in self.process.stdout:
            if not wanted or said.strip() == wanted:
                return said
        return ""

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kills", [TWO_STEPS, pytest.param(STEPS, marks=pytest.mark.soak)], ids=["two", "ten"])
def test_kills_in_the_middle_of_a_batch_leave_not_one_wrong_row(
    spark: SparkSession, tmp_path: Path, kills: list[int]
) -> None:
    seed = 7
    print("seed", seed)
    chance = random.Random(seed)
    lake, out = tmp_path / "lake", tmp_path / "out"
    facts = facts_by_chance(seed, FACTS_PER_KILL * len(kills))
    steps = chance.sample(kills, len(kills))
    lots = _shuffled_a_little(cut(facts, 5 * len(steps)), chance)
    spares = deque([Child(lake, out)])
    try:
        while steps:
            for _ in range(3):
                lay(lake, lots.popleft())
            if len(steps) > 1 or not spares:
                spares.append(Child(lake, out))  # it starts while the other one works
            child = spares.popleft()
            child.go()
            said = [child.line() for _ in range(steps[-1])]
            child.kill()
            # One that had nothing to take but what lies behind a gap is done before it can be killed; it does not count.
            if "done\n" not in said:
                assert "" not in said, "it died by itself"
                steps.pop()
    finally:
        for child in spares:
            child.kill()
    for lot in lots:
        lay(lake, lot)
    intake = Intake(spark, Catalog(str(lake)), TableRoot(str(out)), Options(), SILENT)
    assert intake.state.facts < len(facts), "nothing was left to do: the kills came too late"
    take_all(intake)
    assert intake.state.facts == len(facts)
    found = check(spark, str(lake), str(out), Options(), SILENT)
    assert found.examples_by_table == {}
    assert found.rows_by_table["messages"] == 0
    assert TableStore(TableRoot(str(out))).read(spark, "messages").count() == sum(fact["kind"] == 9 for fact in facts)


def _shuffled_a_little(lots: list[list[Fact]], chance: random.Random) -> deque[list[Fact]]:
    """Some come a few files later than they should, and some twice."""
    late = sorted(enumerate(lots), key=lambda one: one[0] + chance.choice([0, 0, 0, 2, 5]))
    mixed = [lot for _, lot in late]
    for _ in range(4):
        mixed.insert(chance.randrange(len(mixed)), chance.choice(mixed))
    return deque(mixed)
