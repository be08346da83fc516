"""A streaming process that is there to be killed: it takes what the lake has, and says each step before it goes on.

python kill_stream.py LAKE OUT      waits for a line on stdin before it takes anything
"""

from __future__ import annotations

import sys

from dragoman_spark.jobs.intake import Intake
from dragoman_spark.jobs.options import Options
from dragoman_spark.jobs.spark.session import open_session
from dragoman_spark.jobs.stream import take_all
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.sources.catalog import Catalog

SETTINGS = {
    "spark.driver.memory": "600m",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    # Each of these processes lives for one batch of a few facts: to compile its plans would take most of its life.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class Lines:
    """Every step as a line."""

    def step(self, name: str, done: int, of: int) -> None:
        print(name, done, of, flush=True)


def main(lake: str, out: str) -> None:
    with open_session("killed", master="local[2]", conf=SETTINGS) as session:
        print("ready", flush=True)
        sys.stdin.readline()
        take_all(Intake(session, Catalog(lake), TableRoot(out), Options(), Lines()))
        print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
