"""One contender's process: makes all tables again and again, and says after each time how long it took, as a line of JSON.

    python -m bench.pipeline.contender duckdb LAKE OUT TIMES

The first time is cold: imports, Java and its compiler are part of it, and whoever started the process has the watch. The tables of
the last time stay, in OUT/tables.
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
import time
from contextlib import ExitStack
from pathlib import Path


def main(name: str, lake: Path, out: Path, times: int) -> None:
    with ExitStack() as stack:
        part = importlib.import_module(f"bench.pipeline.in_{name}")
        if hasattr(part, "session"):
            stack.enter_context(part.session())
        for _ in range(times):
            tables = out / "tables"
            shutil.rmtree(tables, ignore_errors=True)
            began = time.monotonic()
            part.run(lake, tables)
            print(json.dumps({"seconds": time.monotonic() - began}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
