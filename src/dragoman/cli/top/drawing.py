"""Draws a frame of `dragoman top`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from dragoman.cli.show import clock, rich_table
from dragoman.model.phrases import duration
from dragoman.printable import printable

QUEUES_SHOWN: Final = 20
WORKERS_SHOWN: Final = 10
FINDINGS_SHOWN: Final = 8
LINES_AROUND: Final = 12  # lines above, between and below the two lists


def draw(frame: dict[str, Any], height: int = 0) -> Group:
    """Draw a frame. `height`: lines of the terminal; 0: no limit."""
    room = max(height - LINES_AROUND - min(len(frame["findings"]), FINDINGS_SHOWN), 6) if height else 0
    queues_shown = min(QUEUES_SHOWN, room * 2 // 3) if room else QUEUES_SHOWN
    workers_shown = min(WORKERS_SHOWN, room // 3) if room else WORKERS_SHOWN
    return Group(
        heading(frame),
        *totals_lines(frame["totals"]),
        *findings_lines(frame["findings"]),
        queues_table(frame["queues"][:queues_shown], frame["queues_total"]),
        workers_table(frame["workers"][:workers_shown], frame["workers_total"], frame["now_ns"]),
    )


def heading(frame: dict[str, Any]) -> Text:
    up = duration(frame["now_ns"] - frame["started_ns"])
    boot = f"boot {frame['boot_no']}, up {up}, over {frame['span_s']:.1f} s"
    return Text(f"dragoman  {clock(frame['now_ns'])}  {boot}", "bold")


def totals_lines(totals: dict[str, Any]) -> list[Text]:
    flow = (("in", "accepted_per_s"), ("out", "settled_per_s"), ("failed", "failed_per_s"))
    counts = ("waiting", "delayed", "leased", "quarantined", "workers")
    numbers = [f"{name} {per_s(totals[key])}" for name, key in flow] + [f"{name} {totals[name]}" for name in counts]
    return [
        Text("  ".join([*numbers, f"free slots {totals['slots_free']}"])),
        Text(f"wait  {quantiles_text(totals['wait_ns'])}"),
        Text(f"total {quantiles_text(totals['total_ns'])}"),
    ]


def findings_lines(findings: list[dict[str, Any]]) -> list[Text]:
    lines = [Text("! " + printable(finding["line"]), "red") for finding in findings[:FINDINGS_SHOWN]]
    if len(findings) > FINDINGS_SHOWN:
        lines.append(Text(f"! and {len(findings) - FINDINGS_SHOWN} more", "red"))
    return lines


def queues_table(rows: Sequence[dict[str, Any]], total: int) -> Table:
    columns = (f"queue ({total})", ">waiting", ">oldest", ">in", ">out", ">delayed", ">leased", ">workers", ">wait p95")
    table = rich_table(columns, is_cut=True)
    for row in rows:
        switch = " (paused)" if row["is_paused"] else " (draining)" if row["is_draining"] else ""
        table.add_row(
            printable(row["queue"]) + switch,
            str(row["waiting"]),
            duration(int(row["oldest_s"] * 1e9)) if row["waiting"] else "",
            *(per_s(row[name]) for name in ("in_per_s", "out_per_s")),
            *(str(row[name]) for name in ("delayed", "leased", "workers")),
            duration(row["wait_ns"]["p95"]) if row["wait_ns"] else "",
        )
    return table


def workers_table(rows: Sequence[dict[str, Any]], total: int, now_ns: int) -> Table:
    columns = (f"worker ({total})", "name", "dialect", "state", ">leased", ">free", ">settled", ">last sign")
    table = rich_table(columns, is_cut=True)
    for row in rows:
        table.add_row(
            *(printable(str(row[name])) for name in ("id", "name", "dialect", "state", "leased", "slots_free")),
            per_s(row["settled_per_s"]),
            duration(max(now_ns - row["last_sign_ns"], 0)) if row["last_sign_ns"] else "",
        )
    return table


def per_s(value: float) -> str:
    """`0/s`, `3.5/s`, `120/s`."""
    return f"{value:.1f}/s" if 0 < value < 10 else f"{value:.0f}/s"


def quantiles_text(found: dict[str, int]) -> str:
    return "  ".join(f"{name} {duration(value)}" for name, value in found.items()) or "nothing in this time"
