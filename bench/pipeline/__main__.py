"""`make bench-pipeline`: the pipeline against DuckDB and Polars, its stream, the lake, and what sealing costs the broker."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import endpoint, report
from bench.bars import Bar
from bench.contenders import ContenderFailed as BrokerFailed
from bench.endpoint import EndpointFailed
from bench.pipeline import bars as promised
from bench.pipeline import freshness, lakes, pace, race, sealing
from bench.report import number

PARTS = ("race", "stream", "sealing", "freshness")
WIDTH_MIN = 120


def sizes_of(text: str) -> list[int]:
    """1e6,10e6 → one and ten million."""
    sizes = [int(float(part.replace("_", ""))) for part in text.split(",")]
    if any(size < 1000 for size in sizes):
        raise argparse.ArgumentTypeError("a lake has at least 1000 facts")
    return sizes


def parts_of(text: str) -> list[str]:
    found = text.split(",")
    for name in found:
        if name not in PARTS:
            raise argparse.ArgumentTypeError(f"no part {name!r}: there are {', '.join(PARTS)}")
    return found


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline", description=__doc__)
    parser.add_argument("--facts", type=sizes_of, default=[1_000_000, 10_000_000], help="sizes of lakes (1e6,10e6)")
    parser.add_argument(
        "--stream-facts", type=lambda text: int(float(text)), default=10_000_000, help="of the stream's lake (10e6)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="of the race: each contender once a round (3)")
    parser.add_argument("--only", type=parts_of, default=list(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--contender", action="append", choices=race.NAMES, help="race only these")
    parser.add_argument("--data", type=Path, default=lakes.default_root(), help="where the generated lakes are kept")
    parser.add_argument("--out", type=Path, default=endpoint.OUT, help="where results and tables go")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bar is missed")
    return parser.parse_args(given)


def show_race(console: Console, one: race.Race) -> None:
    table = Table(title=f"all tables of {one.facts:,} facts, medians over rounds", title_justify="left")
    table.add_column("contender")
    for title in ("cold s", "warm s", "facts/s warm", "peak MB", "Spark ÷ it, cold", "Spark ÷ it, warm", "memory"):
        table.add_column(title, justify="right")
    for name in race.NAMES:
        warm_s = one.middle(name, "warm_s")
        if warm_s is None:
            table.add_row(name, "did not run")
            continue
        ratios = [one.ratio("spark", name, what) for what in ("cold_s", "warm_s", "peak_mb")]
        table.add_row(
            name,
            number(one.middle(name, "cold_s"), 1),
            number(warm_s, 1),
            f"{one.facts / warm_s:,.0f}",
            number(one.middle(name, "peak_mb"), 0),
            *[number(ratio, 2) for ratio in ratios],
        )
    console.print(table)


def main(given: list[str] | None = None) -> int:
    options = arguments(given)
    console = Console(highlight=False)
    console.width = max(console.width, WIDTH_MIN)
    options.out.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {"at_unix_s": int(time.time()), "machine": report.machine()}
    found: list[Bar] = []
    faults: list[str] = []

    def failed(text: str) -> None:
        faults.append(text)
        console.print(text, style="red", markup=False)

    with console.status("starting") as status:
        said = status.update
        if "race" in options.only:
            races = []
            for facts in options.facts:
                lake = lakes.lake(options.data, facts, False, said)
                names = tuple(name for name in race.NAMES if name in (options.contender or race.NAMES))
                races.append(race.run(lake, facts, options.out / "race", options.rounds, names, said, failed))
                show_race(console, races[-1])
            result["race"] = [one.to_json() for one in races]
            result["bytes_per_fact"] = lakes.bytes_per_fact(lake, facts)
            found += promised.race_bars(races) + promised.lake_bars(result["bytes_per_fact"])
        if "stream" in options.only:
            lake = lakes.lake(options.data, options.stream_facts, True, said)
            said(f"streaming {options.stream_facts:,} facts")
            try:
                measured = pace.measure(lake, options.out / "stream")
            except race.ContenderFailed as error:
                failed(f"stream: {error}")
            else:
                console.print(
                    f"streaming {measured.facts:,} facts in {measured.batches} batches: cold {measured.cold_per_s:,.0f}, "
                    f"warm {measured.warm_per_s:,.0f} facts/s, peak {measured.peak_mb:,.0f} MB"
                )
                result["stream"] = measured.to_json()
                found += promised.pace_bars(measured)
        if {"sealing", "freshness"} & set(options.only):
            peer, data_root = endpoint.build(), options.out / "data"
        if "sealing" in options.only:
            sealed = sealing.run(peer, data_root, said, failed)
            result["sealing"] = sealed.to_json()
            found += promised.sealing_bars(sealed)
        if "freshness" in options.only:
            try:
                fresh = freshness.measure(peer, data_root, said)
            except (BrokerFailed, EndpointFailed) as error:
                failed(f"freshness: {error}")
            else:
                console.print(
                    f"from message to row: {fresh.rows:,} rows, p50 {fresh.p50_s:.1f} s, p95 {fresh.p95_s:.1f} s"
                )
                result["freshness"] = fresh.to_json()
                found += promised.freshness_bars(fresh)
    return report.conclude(console, options.out / "pipeline.json", result, found, faults, options.strict)


if __name__ == "__main__":
    sys.exit(main())
