"""What the bench says: tables on the terminal, one JSON file, one plot."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import contenders
from bench.bars import Bar
from bench.dialogues import LOOP, PROXY
from bench.rounds import Figures, Plan


def machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "dragoman": contenders.broker_flavour(),
    }


def conclude(
    console: Console, file: Path, result: dict[str, Any], bars: list[Bar], faults: list[str], is_strict: bool
) -> int:
    """Show the bars, write the figures down; the exit code."""
    if bars:
        show_bars(console, bars)
    result["bars"], result["faults"] = [bar.to_json() for bar in bars], faults
    write_json(file, result)
    console.print(f"figures: {file}")
    missed = any(bar.verdict == "missed" for bar in bars)
    return 1 if faults or (is_strict and missed) else 0


def show_wire(console: Console, figures: Figures, plan: Plan) -> None:
    table = Table(title=f"{plan.dialogue.name}: round trips over the wire, medians over rounds", title_justify="left")
    table.add_column("contender", no_wrap=True)
    loop = ("÷ loop",) if LOOP in plan.names else ()
    for title in ("trips/s", "÷ proxy", *loop, "CPU µs", "messages", "p50 µs", "p99 µs", "p50 ÷ proxy"):
        table.add_column(title, justify="right", no_wrap=True)
    for point in plan.dialogue.points:
        table.add_row(f"[bold]{point.name}[/bold]")
        for name in plan.names:
            trips = figures.middle(point, name, "trips_per_s")
            if trips is None:
                table.add_row(f"  {name}", "did not run")
                continue
            table.add_row(
                f"  {name}",
                f"{trips:,.0f}",
                number(figures.ratio(point, name, PROXY), 2),
                *(number(figures.ratio(point, name, LOOP), 1) for _ in loop),
                number(figures.middle(point, name, "broker_cpu_us"), 2),
                number(figures.middle(point, name, "messages_per_trip"), 2),
                number(figures.middle(point, name, "p50_us"), 0),
                number(figures.middle(point, name, "p99_us"), 0),
                number(figures.ratio(point, name, PROXY, "p50_us"), 2),
            )
        table.add_section()
    console.print(table)
    console.print(f"fdatasync p50 beside `disk`: {number(figures.fdatasync_us(), 0)} µs")
    repeats = sum(round_.repeats for round_ in figures.rounds)
    noisy = [round_ for round_ in figures.rounds if round_.samples and not round_.is_quiet]
    console.print(
        f"{repeats} measurements repeated because other processes used the machine; {len(noisy)} stayed noisy"
    )
    duplicates = sum(sample.duplicates for round_ in figures.rounds for sample in round_.samples.values())
    if duplicates:
        console.print(f"[red]{duplicates} duplicate results[/red]")
    if plan.endpoint.language != "c++":
        console.print("[yellow]no C++ compiler: the endpoint is Python and is itself the bottleneck[/yellow]")


def number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def show_bars(console: Console, bars: list[Bar]) -> None:
    table = Table(title="bars", title_justify="left")
    for title in ("bar", "wanted", "measured", "verdict"):
        table.add_column(title, justify="left" if title in ("bar", "verdict") else "right")
    colour = {"met": "green", "missed": "red", "not measured": "yellow"}
    for bar in bars:
        verdict = f"[{colour[bar.verdict]}]{bar.verdict}[/]"
        table.add_row(bar.text, bar.wanted, number(bar.value, 2), verdict)
    console.print(table)


def wire_json(figures: Figures, plan: Plan) -> dict[str, Any]:
    return {
        "endpoint": plan.endpoint.language,
        "endpoint_processes": plan.processes,
        "seconds": plan.seconds,
        "fdatasync_p50_us": figures.fdatasync_us(),
        "points": [
            {
                "in_flight": point.in_flight,
                "connections": point.connections,
                "workers": point.workers,
                "contenders": {
                    name: {
                        "trips_per_s": figures.middle(point, name, "trips_per_s"),
                        "ratio_to_proxy": figures.ratio(point, name, PROXY),
                        "ratio_to_loop": figures.ratio(point, name, LOOP),
                        "broker_cpu_us": figures.middle(point, name, "broker_cpu_us"),
                        "messages_per_trip": figures.middle(point, name, "messages_per_trip"),
                        "p50_us": figures.middle(point, name, "p50_us"),
                        "p99_us": figures.middle(point, name, "p99_us"),
                        "p50_ratio_to_proxy": figures.ratio(point, name, PROXY, "p50_us"),
                    }
                    for name in plan.names
                },
            }
            for point in plan.dialogue.points
        ],
        "rounds": [
            {
                "round": round_.number,
                "in_flight": round_.point.in_flight,
                "connections": round_.point.connections,
                "workers": round_.point.workers,
                "fdatasync_p50_us": round_.fdatasync_us,
                "repeats": round_.repeats,
                "samples": {name: sample.to_json() for name, sample in round_.samples.items()},
            }
            for round_ in figures.rounds
        ],
    }


def write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
