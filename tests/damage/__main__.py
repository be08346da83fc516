"""python -m tests.damage --trials 20000"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.damage.run import run, trials_of
from tests.damage.specimens import load_specimens, make_specimens, save_specimens

SHOWN_MAX = 20


def main() -> int:
    parser = argparse.ArgumentParser(description="Damage journals in every way; nothing forged, nothing lost silently.")
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=random.randrange(1 << 30), help="the seed of the first trial")
    parser.add_argument("--journals", help="a directory of journals that an earlier run kept, instead of new ones")
    asked = parser.parse_args()
    began_s = time.monotonic()
    if asked.journals:
        journals = load_specimens(Path(asked.journals))
    else:
        with tempfile.TemporaryDirectory(prefix="dragoman-damage-") as directory:
            journals = make_specimens(Path(directory), asked.first)
    print(f"trials {asked.first} to {asked.first + asked.trials - 1}", flush=True)
    outcomes, wrong = run(trials_of(journals), range(asked.first, asked.first + asked.trials))
    if wrong:
        kept = asked.journals or save_specimens(journals, Path(tempfile.mkdtemp(prefix="dragoman-damaged-")))
    for verdict in wrong[:SHOWN_MAX]:
        print(verdict)
        print(f"    again with: python -m tests.damage --journals {kept} --first {verdict.seed} --trials 1")
    told = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    print(f"{asked.trials} damages in {time.monotonic() - began_s:.0f} s: {told}; {len(wrong)} WRONG")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
