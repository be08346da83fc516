"""python -m dragoman_lab.sim --seeds 2000 [--first 1]     or     --seed 17 --verbose"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from dragoman.version import version_line
from dragoman_lab.sim.world import run_seed


def main() -> int:
    parser = argparse.ArgumentParser(description="Simulate a broker and its peers, once per seed.")
    parser.add_argument("--seeds", type=int, default=2000, help="how many seeds")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--seed", type=int, help="just this one")
    parser.add_argument("--verbose", action="store_true", help="print what happens")
    parser.add_argument("--tally", action="store_true", help="count the facts of all seeds by name and reason")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first failure")
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.seeds) if args.seed is None else range(args.seed, args.seed + 1)
    print(f"{version_line()}: seeds {seeds[0]} to {seeds[-1]}")
    began_s = time.monotonic()
    failed, facts, requests, boots, done = 0, 0, 0, 0, 0
    tally: Counter[str] = Counter()
    for seed in seeds:
        verdict = run_seed(seed, verbose=args.verbose)
        done += 1
        tally += verdict.tally
        facts, requests, boots = facts + verdict.facts, requests + verdict.requests, boots + verdict.boots
        if verdict.failure:
            failed += 1
            print(f"\nseed {seed} FAILED\n{verdict.failure}\nshow it again with: {verdict.replay}", flush=True)
            if not args.keep_going:
                break
        elif done % 100 == 0:
            print(f"{done} seeds, {done / (time.monotonic() - began_s):.1f} a second", flush=True)
    took_s = time.monotonic() - began_s
    print(
        f"{done} seeds in {took_s:.1f} s ({done / took_s:.1f} a second): {boots} boots, {requests} requests, {facts} facts, "
        f"{failed} failed"
    )
    if args.tally:
        for name, count in sorted(tally.items()):
            print(f"  {count:>9}  {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
