"""`dragoman generate`: a lake of synthetic facts to try the pipeline on, without a broker."""

from __future__ import annotations

import datetime
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman.cli.options import json_option
from dragoman.cli.show import print_json, print_pairs, progress_bar
from dragoman.model.phrases import size

if TYPE_CHECKING:
    from dragoman_lab.generate.broker import Plan


@click.command(context_settings={"show_default": True})
@click.option("--facts", type=click.IntRange(1_000, 10_000_000_000), default=1_000_000, help="How many.")
@click.option("--out", metavar="ROOT", help="The lake: a directory, or an address pyarrow takes.")
@click.option(
    "--journal",
    "data",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Instead of a lake, write a journal into this data directory.",
)
@click.option("--seed", type=int, default=1, help="The same seed gives the same facts.")
@click.option("--days", type=click.FloatRange(0.05, 3660), default=14, help="Over so many days.")
@click.option("--start", type=click.DateTime(["%Y-%m-%d"]), default="2026-03-02", help="The first of them (UTC).")
@click.option("--queues", type=click.IntRange(4, 1000), default=12, help="Queues of each broker.")
@click.option("--brokers", type=click.IntRange(1, 100), default=1, help="Brokers that share the facts.")
@click.option(
    "--open-share",
    type=click.FloatRange(0, 0.5),
    default=0.002,
    help="Part of the messages that go to a queue nobody serves; most are open at the end.",
)
@click.option("--incoming", "is_incoming", is_flag=True, help="Write small incoming files, as a running sealer does.")
@json_option
def generate(
    facts: int,
    out: str | None,
    data: Path | None,
    seed: int,
    days: float,
    start: datetime.datetime,
    queues: int,
    brokers: int,
    open_share: float,
    is_incoming: bool,
    as_json: bool,
) -> None:
    """Write a lake of synthetic facts: made by the real core under a simulated clock, so they are true by construction.

    There are at least as many facts as asked for; the last block is not cut. No broker is needed, and none is touched.
    """
    from dragoman.lake.layout import HISTORY, INCOMING, date_of
    from dragoman_lab.generate.broker import Plan
    from dragoman_lab.generate.lake import fill, plans_of

    plan = Plan(facts, seed, days, start.date(), queues, open_share)
    begun_s = time.perf_counter()
    if data is not None:
        generate_journal(data, plan, as_json)
        return
    if out is None:
        raise click.UsageError("name the lake with --out, or a data directory with --journal")
    with progress_bar("generating", as_json) as progress:
        filled = fill(out, plans_of(plan, brokers), INCOMING if is_incoming else HISTORY, progress)
    spent_s, last_day = time.perf_counter() - begun_s, date_of(filled.last_ns).isoformat()
    if as_json:
        print_json(
            {
                "lake": out,
                "facts": filled.facts,
                "messages": filled.messages,
                "open": filled.open,
                "files": filled.files,
                "bytes": filled.size,
                "first_day": plan.start.isoformat(),
                "last_day": last_day,
                "seconds": round(spent_s, 3),
            }
        )
        return
    print_pairs(
        [
            ("lake", Path(out) if "://" not in out else out),
            ("facts", f"{filled.facts} of {filled.messages} messages, {filled.open} of them open"),
            ("days", f"{plan.start.isoformat()} to {last_day}"),
            ("files", f"{filled.files}, {size(filled.size)}, {filled.size / filled.facts:.1f} bytes per fact"),
            ("time", f"{spent_s:.1f} s, {filled.facts / spent_s:.0f} facts/s"),
        ]
    )


def generate_journal(data: Path, plan: Plan, as_json: bool) -> None:
    from dragoman_lab.generate.lake import write_journal

    with progress_bar("generating", as_json) as progress:
        journal = write_journal(str(data / "journal"), plan, progress)
    facts, segments = journal.next_lsn - 1, journal.segments()
    if as_json:
        print_json({"data": str(data), "facts": facts, "segments": len(segments), "bytes": journal.size()})
    else:
        print_pairs([("data", data), ("facts", facts), ("segments", len(segments)), ("size", size(journal.size()))])
