"""A child for `Child`: does what its arguments say, in their order, then listens until its input ends.

    out:TEXT, err:TEXT      says a line
    long:out:SIZE           says a long one
    exit:CODE               ends
    deaf:                   listens no more
    idle:                   takes idle priority
    made:FILE               makes an empty file
    ended:                  waits until its input ends
    into:FILE               writes what it hears there

Run as `python -m tests.runtime.children.speaker ORDER …`.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

STREAMS = {"out": sys.stdout, "err": sys.stderr}


def main() -> None:
    heard_file = Path("/dev/null")
    for order in sys.argv[1:]:
        word, _, rest = order.partition(":")
        if word == "exit":
            sys.exit(int(rest))
        elif word == "deaf":
            signal.pause()
        elif word == "idle":
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        elif word == "made":
            Path(rest).touch()
        elif word == "ended":
            sys.stdin.read()
        elif word == "into":
            heard_file = Path(rest)
        elif word == "long":
            name, _, size = rest.partition(":")
            print("x" * int(size), file=STREAMS[name], flush=True)
        else:
            print(rest, file=STREAMS[word], flush=True)
    heard_file.write_text(sys.stdin.read())


if __name__ == "__main__":
    main()
