"""python -m tests.fuzz --inputs 1000000 [--seed 1] [--only rq,ebus]

Every fuzzer with as many inputs, each in a process of its own, as many at once as there are processors. A failure names its
fuzzer, seed and round, and the command that shows it again.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

# The wire first; then every dialect with sessions and core behind it.
FUZZERS = ("zmtp", "scale0", "pingpong", "emqp", "ebus", "rq")
TOLD_SIZE = 6000  # of what a failed one has to say


def command(fuzzer: str, inputs: int, seed: int) -> list[str]:
    return ["-m", f"tests.fuzz.{fuzzer}", "--inputs", str(inputs), "--seed", str(seed)]


def run(fuzzer: str, inputs: int, seed: int) -> bool:
    """Whether only documented errors came out."""
    arguments = command(fuzzer, inputs, seed)
    ran = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    if ran.returncode:
        shown = " ".join(["python", *arguments])
        print(f"{fuzzer} FAILED\n{ran.stdout}{ran.stderr[-TOLD_SIZE:]}\nshow it again with: {shown}", flush=True)
    else:
        print(ran.stdout, end="", flush=True)
    return ran.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Random and mutated inputs for the wire and every dialect.")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="for each fuzzer")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--only", default=",".join(FUZZERS), help="some of them, with commas")
    asked = parser.parse_args()
    fuzzers = asked.only.split(",")
    unknown = set(fuzzers) - set(FUZZERS)
    if unknown:
        parser.error(f"there is no fuzzer called {', '.join(sorted(unknown))}; there are {', '.join(FUZZERS)}")
    print(f"seed {asked.seed}: {asked.inputs} inputs each for {', '.join(fuzzers)}", flush=True)
    began_s = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        good = list(pool.map(lambda fuzzer: run(fuzzer, asked.inputs, asked.seed), fuzzers))
    print(f"{sum(good)} of {len(good)} fuzzers found nothing in {time.monotonic() - began_s:.0f} s")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
