"""`make bench`: each dialect against libzmq's proxy, the SDK against NATS, the broker's footprint, and what it costs to be looked at."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from bench import against, endpoint, footprint, indexed, plots, report, rounds, sdk_vs_nats, watched
from bench.bars import Bar, wire_bars
from bench.dialogues import DIALOGUES, EMQP, NAMES, names_of
from bench.rounds import Figures, Plan

PARTS = (*DIALOGUES, "sdk", "footprint", "watched", "indexed")
WIRE = "wire"  # all dialects
WIDTH_MIN = 120  # columns: a log file has no width of its own, and a wrapped table cannot be read


def parts_of(text: str) -> list[str]:
    """The parts a comma-separated list names."""
    found: list[str] = []
    for name in text.split(","):
        if name != WIRE and name not in PARTS:
            raise argparse.ArgumentTypeError(f"no part {name!r}: there are {', '.join((WIRE, *PARTS))}")
        found += DIALOGUES if name == WIRE else [name]
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds (7)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one measurement (1)")
    parser.add_argument("--quick", action="store_true", help="two rounds of half a second: does it run, not how fast")
    parts_help = f"run only these of {', '.join(PARTS)}, or {WIRE} for all dialects; may be repeated"
    parser.add_argument("--only", action="extend", type=parts_of, metavar="PART,PART", help=parts_help)
    parser.add_argument("--contender", action="append", choices=NAMES, help="measure only these on the wire")
    parser.add_argument("--processes", type=int, choices=(1, 2), default=1, help="2: workers in a process of their own")
    parser.add_argument("--messages", type=int, default=1_000_000, help="waiting messages of the footprint (1000000)")
    parser.add_argument("--huge", action="store_true", help="footprint: ten million waiting messages as well")
    parser.add_argument(
        "--against", metavar="PYTHON", help="only this: beside the build installed for that interpreter, in turn"
    )
    parser.add_argument("--out", type=Path, default=endpoint.OUT, help="where results and brokers' data go")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bar is missed")
    given = parser.parse_args()
    if given.quick:
        given.rounds, given.seconds, given.messages = 2, 0.5, min(given.messages, 100_000)
    return given


def main() -> int:
    given = arguments()
    console = Console(highlight=False)
    console.width = max(console.width, WIDTH_MIN)
    parts = given.only or PARTS
    given.out.mkdir(parents=True, exist_ok=True)
    data_root = given.out / "data"  # beside the results, because a temporary directory is often not a disk
    result: dict[str, Any] = {"at_unix_s": int(time.time()), "machine": report.machine()}
    bars: list[Bar] = []
    faults: list[str] = []

    def failed(text: str) -> None:
        faults.append(text)
        console.print(text, style="red", markup=False)

    peer = endpoint.build()
    if given.against:
        with console.status("starting") as status:
            drained = min(given.messages, 300_000)
            compared = against.run(peer, data_root, given.against, given.rounds, drained, status.update, failed)
        against.show(console, compared, given.against)
        result["against"] = [one.to_json() for one in compared]
        return report.conclude(console, given.out / "bench.json", result, bars, faults, given.strict)
    with console.status("starting") as status:
        measured: list[tuple[Plan, Figures]] = []
        for dialogue in (DIALOGUES[name] for name in DIALOGUES if name in parts):
            if peer.language != "c++" and dialogue is not EMQP:
                console.print(f"[yellow]{dialogue.name}: not measured, its endpoint needs a C++ compiler[/yellow]")
                continue
            names = names_of(dialogue, given.contender)
            plan = Plan(peer, data_root, dialogue, names, given.rounds, given.seconds, processes=given.processes)
            figures = rounds.run(plan, status.update, failed)
            measured.append((plan, figures))
            report.show_wire(console, figures, plan)
            bars += wire_bars(dialogue, figures)
            if dialogue is EMQP and plots.draw_emqp(given.out / "bench.png", figures, plan):
                console.print(f"plot: {given.out / 'bench.png'}")
        result["wire"] = {plan.dialogue.name: report.wire_json(figures, plan) for plan, figures in measured}
        if len(measured) > 1 and plots.draw_dialects(given.out / "dialects.png", measured):
            console.print(f"plot: {given.out / 'dialects.png'}")
        if "sdk" in parts:
            compared = sdk_vs_nats.run(given.rounds, given.seconds, data_root, status.update, failed)
            sdk_vs_nats.show(console, compared)
            result["sdk"] = compared.to_json()
            bars += sdk_vs_nats.bars(compared)
        if "footprint" in parts:
            prints = footprint.run(peer, data_root, given.messages, given.huge, status.update, failed)
            footprint.show(console, prints)
            result["footprint"] = [one.to_json() for one in prints]
            bars += footprint.bars(prints)
        if "watched" in parts:
            looked_at = watched.run(peer, data_root, given.rounds, status.update, failed)
            watched.show(console, looked_at)
            result["watched"] = looked_at.to_json()
            bars += watched.bars(looked_at)
        if "indexed" in parts:
            known = indexed.run(peer, data_root, given.rounds, status.update, failed)
            indexed.show(console, known)
            result["indexed"] = known.to_json()
    return report.conclude(console, given.out / "bench.json", result, bars, faults, given.strict)


if __name__ == "__main__":
    sys.exit(main())
