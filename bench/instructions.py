"""Instructions per round trip, counted by callgrind: exact where processor time is noisy, so small costs show on a busy machine, too.

    python -m bench.instructions [--only emqp,rq] [--load one] [--against ../other/.venv/bin/python]

A real broker runs under valgrind at durability `os`; the endpoint sends a load to it. Counted is what the broker process executes in user
space, sockets and event loop included; time in the kernel is not. It needs valgrind and a C++ compiler.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import endpoint
from bench.contenders import Running, start_broker
from bench.dialogues import DIALOGUES, ONE, Dialogue
from bench.endpoint import Endpoint, Point

LOADS = ("full", "one")  # the load of the dialect's target; one job at a time, so that each costs ticks of its own
# Round trips, not seconds: every message that is counted then belongs to one of them, however slow the machine is.
TRIPS = {"full": 20_000, "one": 2_000}
WARM_UP_TRIPS = 1_000
PATIENCE_S = 300.0


def point_of(dialogue: Dialogue, load: str) -> Point:
    return ONE if load == "one" else dialogue.bar_point


def per_trip(peer: Endpoint, dialogue: Dialogue, load: str, python: str) -> float:
    """The instructions of one round trip, of a broker that has warmed up."""
    point = point_of(dialogue, load)
    with tempfile.TemporaryDirectory(prefix="dragoman-instructions-") as folder:
        counts = Path(folder, "counts")
        prefix = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={counts}"]
        broker = start_broker("os", Path(folder), dialogue=dialogue, python=python, prefix=prefix)
        try:
            _load(peer, broker, point, WARM_UP_TRIPS)
            _control(broker, "--instr=on")
            trips = _load(peer, broker, point, TRIPS[load])
            _control(broker, "--dump")
        finally:
            broker.stop()
        return sum(map(_total, Path(folder).glob("counts.*"))) / trips


def _load(peer: Endpoint, broker: Running, point: Point, trips: int) -> int:
    sample = peer.run(
        PATIENCE_S,
        mode=broker.mode,
        clients=point.connections,
        workers=point.workers,
        in_flight=point.in_flight,
        slots=point.slots_per_worker,
        trips=trips,
        warmup=0,
        client_addr=broker.client_address,
        worker_addr=broker.worker_address,
    )
    return sample.trips


def _control(broker: Running, action: str) -> None:
    subprocess.run(["callgrind_control", action, str(broker.pid)], check=True, capture_output=True)


def _total(counts: Path) -> int:
    found = re.search(r"^totals: (\d+)", counts.read_text(), re.MULTILINE)
    return int(found[1]) if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(DIALOGUES), help="some dialects, separated by commas")
    parser.add_argument("--load", choices=LOADS, action="append", help="one of them; otherwise both")
    parser.add_argument("--against", metavar="PYTHON", help="also the build installed for that interpreter")
    args = parser.parse_args()
    unknown = [name for name in args.only.split(",") if name not in DIALOGUES]
    if unknown:
        parser.error(f"no dialect {', '.join(unknown)}: there are {', '.join(DIALOGUES)}")
    peer = endpoint.build()
    if shutil.which("valgrind") is None or peer.language != "c++":
        parser.error("valgrind and a C++ compiler are needed")
    console = Console(highlight=False)
    table = Table(title="instructions per round trip at `os`, in thousands")
    for column in ("", "load", *(["the other build"] if args.against else []), "this build", "ratio"):
        table.add_column(column, justify="right")
    for name in args.only.split(","):
        for load in args.load or LOADS:
            dialogue = DIALOGUES[name]
            builds = [args.against, sys.executable] if args.against else [sys.executable]
            counts = [per_trip(peer, dialogue, load, build) for build in builds]
            texts = [f"{count / 1000:.1f}" for count in counts]
            point_name = point_of(dialogue, load).name
            table.add_row(name, point_name, *texts, f"{counts[-1] / counts[0]:.3f}")
            console.print(name, point_name, *texts)
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
