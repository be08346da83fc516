"""The `dragoman top` command: one live screen on a terminal, elsewhere one frame after the other.

A frame is plain values: printed as JSON for scripts, drawn for the screen. It shows recent activity: the difference between the newest and the
oldest of the broker's recent samples. The broker's counts only rise after its start (docs/reference/admin.md), so two samples are enough for
rates and for the quantiles of what happened between them. After a restart the broker counts anew, and the window starts anew.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from click import FloatRange, option

from dragoman.cli.admin_client import PAGE, AdminClient
from dragoman.cli.options import common_options
from dragoman.cli.show import console, print_json, print_json_line
from dragoman.errors import AdminRefused, AdminUnreachable
from dragoman.model.buckets import between, counts_of, quantile_ns
from dragoman.model.units import SECOND_NS
from dragoman.printable import printable

QUEUE_COLUMNS: Final = ("queue", "is_paused", "is_draining", "waiting", "delayed", "leased", "workers")
WORKER_COLUMNS: Final = ("id", "name", "dialect", "state", "leased", "slots_free", "last_sign_ns")
TOTALS: Final = (
    "waiting",
    "delayed",
    "leased",
    "quarantined",
    "workers",
    "slots_free",
    "queues",
    "schedules",
    "refusing",
)
# The counts of a queue that did not exist in the earlier sample.
NO_COUNTS: Final[dict[str, Any]] = {"accepted": 0, "done": 0, "failed": 0, "wait": []}
QUANTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
WINDOW_S: Final = 10.0
QUEUES_MAX: Final = 10_000  # the maximum sampled; of a broker with more, those named first

Counts = dict[int, int]


@click.command()
@option("--interval-s", type=FloatRange(0.1, 3600), default=1.0, show_default=True, help="Look so often.")
@option("--once", is_flag=True, help="Print one frame, over one interval, and end.")
@common_options
def top(interval_s: float, once: bool, data: Path, as_json: bool) -> None:
    """Watch the broker: rates, times, queues by depth, workers, and what is stuck. Ends with Ctrl-C.

    Rates and times are those of the last ten seconds (with --once, of one interval). When the broker goes, it is waited for. With
    --json each frame is one JSON object on a line of its own; with --once, one document.
    """
    with closing(Watch(data)) as watch, suppress(KeyboardInterrupt):
        if once:
            watch.frame()
            time.sleep(interval_s)
            frame = watch.frame()
            print_json(frame) if as_json else print_drawing(frame)
        elif as_json or not sys.stdout.isatty():
            print_frames(watch, interval_s, as_json)
        else:
            draw_frames(watch, interval_s)


class Watch:
    """Samples the broker of one data directory, across its restarts."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._window = Window()
        self._client: AdminClient | None = None

    def frame(self) -> dict[str, Any]:
        """Take a sample; raises `AdminUnreachable` if no broker responds, and the next call tries again."""
        try:
            if self._client is None:
                self._client = AdminClient(self._data)
            self._window.add(look(self._client))
        except (AdminUnreachable, AdminRefused):
            self._window.clear()
            self.close()
            raise
        return report(self._window)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


def print_drawing(frame: dict[str, Any]) -> None:
    from dragoman.cli.top.drawing import draw

    console().print(draw(frame))


def print_frames(watch: Watch, interval_s: float, as_json: bool) -> None:
    """For a pipe: print a frame per interval, and a line on stderr when the broker does not respond."""
    while True:
        try:
            frame = watch.frame()
            print_json_line(frame) if as_json else print_drawing(frame)
        except (AdminUnreachable, AdminRefused) as error:
            print(f"waiting for the broker: {printable(str(error))}", file=sys.stderr, flush=True)
        time.sleep(interval_s)


def draw_frames(watch: Watch, interval_s: float) -> None:
    from rich.live import Live
    from rich.text import Text

    from dragoman.cli.top.drawing import draw

    screen = console()
    with Live(console=screen, screen=True, auto_refresh=False) as live:
        while True:
            try:
                live.update(draw(watch.frame(), screen.height), refresh=True)
            except (AdminUnreachable, AdminRefused) as error:
                live.update(Text(f"waiting for the broker: {printable(str(error))}", "yellow"), refresh=True)
            time.sleep(interval_s)


@dataclass(frozen=True)
class Look:
    """One sample of the broker."""

    tallies: dict[str, Any]
    queues: dict[str, dict[str, Any]]
    workers: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    queues_total: int
    workers_total: int

    @property
    def now_ns(self) -> int:
        return int(self.tallies["now_ns"])

    @property
    def started_ns(self) -> int:
        return int(self.tallies["started_ns"])


def look(client: AdminClient) -> Look:
    queues: dict[str, dict[str, Any]] = {}
    total = 0
    for page in client.pages("queue_tallies"):
        total = page["total"]
        queues |= {queue["queue"]: queue for queue in page["queues"]}
        if len(queues) >= QUEUES_MAX:
            break
    workers = client.ask("workers", limit=PAGE)
    findings = client.ask("stuck")["findings"]
    return Look(client.ask("tallies"), queues, workers["workers"], findings, total, workers["total"])


class Window:
    """The samples of the last `WINDOW_S`, and at least the last two."""

    def __init__(self) -> None:
        self._looks: deque[Look] = deque()

    def add(self, newest: Look) -> None:
        looks = self._looks
        if looks and looks[-1].started_ns != newest.started_ns:
            looks.clear()
        looks.append(newest)
        while len(looks) > 2 and newest.now_ns - looks[1].now_ns >= WINDOW_S * SECOND_NS:
            looks.popleft()

    def clear(self) -> None:
        self._looks.clear()

    @property
    def newest(self) -> Look:
        return self._looks[-1]

    @property
    def oldest(self) -> Look:
        return self._looks[0]

    @property
    def span_s(self) -> float:
        return (self.newest.now_ns - self.oldest.now_ns) / SECOND_NS


def rate(now: int, before: int, span_s: float) -> float:
    """Rate per second; 0 if no time lies between the two samples."""
    return max(now - before, 0) / span_s if span_s > 0 else 0.0


def lately(now: list[list[int]], before: list[list[int]]) -> Counts:
    """What was added to each bucket between two samples."""
    return between(counts_of(before), counts_of(now))


def report(window: Window) -> dict[str, Any]:
    """Totals, queues by depth, workers by leased messages, findings."""
    now, before, span_s = window.newest, window.oldest, window.span_s
    tallies, earlier = now.tallies, before.tallies
    totals = {
        **{f"{name}_per_s": rate(tallies[name], earlier[name], span_s) for name in ("accepted", "settled", "failed")},
        **{name: tallies[name] for name in TOTALS},
        **{f"{name}_ns": quantiles_ns(lately(tallies[name], earlier[name])) for name in ("wait", "total")},
    }
    settled = {worker["number"]: worker["settled"] for worker in before.workers}
    queues = [
        queue_row(queue, before.queues.get(name, NO_COUNTS), now.now_ns, span_s) for name, queue in now.queues.items()
    ]
    workers = [worker_row(worker, settled.get(worker["number"], 0), span_s) for worker in now.workers]
    return {
        "now_ns": now.now_ns,
        "boot_no": tallies["boot_no"],
        "started_ns": now.started_ns,
        "span_s": span_s,
        "totals": totals,
        "queues": sorted(queues, key=lambda row: (-row["waiting"], -row["in_per_s"], row["queue"])),
        "queues_total": now.queues_total,
        "workers": sorted(workers, key=lambda row: (-row["leased"], -row["settled_per_s"], row["id"])),
        "workers_total": now.workers_total,
        "findings": now.findings,
    }


def quantiles_ns(counts: Counts) -> dict[str, int]:
    """p50, p95 and p99; empty if nothing happened."""
    total = sum(counts.values())
    return {name: quantile_ns(counts, total, part) for name, part in QUANTILES.items()} if total else {}


def queue_row(queue: dict[str, Any], before: dict[str, Any], now_ns: int, span_s: float) -> dict[str, Any]:
    settled, settled_before = queue["done"] + queue["failed"], before["done"] + before["failed"]
    return {
        **{name: queue[name] for name in QUEUE_COLUMNS},
        "oldest_s": (now_ns - queue["oldest_ns"]) / 1e9 if queue["oldest_ns"] else 0.0,
        "in_per_s": rate(queue["accepted"], before["accepted"], span_s),
        "out_per_s": rate(settled, settled_before, span_s),
        "wait_ns": quantiles_ns(lately(queue["wait"], before["wait"])),
    }


def worker_row(worker: dict[str, Any], settled_before: int, span_s: float) -> dict[str, Any]:
    row = {name: worker[name] for name in WORKER_COLUMNS}
    return row | {"settled_per_s": rate(worker["settled"], settled_before, span_s)}
