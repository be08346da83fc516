"""python -m tests.chaos --kills 30 --durability os,disk"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.chaos.run import run


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Kill a loaded broker again and again; nothing acknowledged may be lost."
    )
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--durability", default="os,disk", help="os, disk, or both with a comma")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="when the kills come")
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    is_good = True
    for durability in asked.durability.split(","):
        with tempfile.TemporaryDirectory() as directory:
            outcome = run(Path(directory, "data"), durability, asked.kills, asked.seed)
            if not outcome.is_good:
                print((Path(directory) / "data.log").read_text()[-3000:])
        print(outcome, flush=True)
        is_good = is_good and outcome.is_good
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
