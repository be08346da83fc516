"""The stream's pace: a lake of small incoming files, as a sealer writes them, taken batch by batch into the tables that grow.

    python -m bench.pipeline.streaming LAKE OUT TIMES

prints a line of JSON after each time. Tables that are stated whole and the quality gates come after the batches, in `watch` once a
minute; they are not part of a batch's pace, and are measured with everything else in the race.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

from bench.pipeline.in_spark import session
from dragoman_spark.jobs.intake import Intake
from dragoman_spark.jobs.options import SILENT, Options
from dragoman_spark.jobs.stream import take_all
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.sources.catalog import Catalog


def main(lake: str, out: Path, times: int) -> None:
    with session() as opened:
        for _ in range(times):
            shutil.rmtree(out, ignore_errors=True)
            root = TableRoot(str(out))
            began = time.monotonic()
            with root.writing():
                intake = Intake(opened, Catalog(lake), root, Options(), SILENT)
                take_all(intake)
            seconds = time.monotonic() - began
            print(json.dumps({"facts": intake.facts, "batches": intake.batches, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
