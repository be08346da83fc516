"""python -m tests.siege --minutes 5"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.siege.run import MB, run

RSS_BESIDE = 100 * MB  # beside the budget: the interpreter, code, what the allocator keeps
RATIO_MAX = 3.0


def main() -> int:
    parser = argparse.ArgumentParser(
        description="All floods at once against a real broker; its good peers must not suffer."
    )
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--memory-max", type=int, default=256, help="MB")
    parser.add_argument("--durability", default="os")
    asked = parser.parse_args()
    memory_max = asked.memory_max * MB
    with tempfile.TemporaryDirectory(prefix="dragoman-siege-") as directory:
        outcome = run(Path(directory), asked.minutes * 60, memory_max, asked.durability)
    print(outcome)
    misses = []
    if outcome.rss_max > memory_max + RSS_BESIDE:
        misses.append("memory")
    if outcome.ratio > RATIO_MAX:
        misses.append("p99")
    if outcome.lost or not outcome.is_alive:
        misses.append("lost or failed")
    if outcome.probes_failed:
        misses.append("probes")
    print("MISSED: " + ", ".join(misses) if misses else "held")
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
