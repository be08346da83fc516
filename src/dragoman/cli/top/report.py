"""A frame of `dragoman top` as plain values: printed as JSON for scripts, drawn for the screen."""

from __future__ import annotations

from typing import Any, Final

from dragoman.cli.top.window import Window, lately, quantiles_ns, rate

NAMES: Final = ("p50", "p95", "p99")
ASIS: Final = (
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
UNNAMED: Final[dict[str, Any]] = {"accepted": 0, "done": 0, "failed": 0, "wait": []}


def report(window: Window) -> dict[str, Any]:
    """Totals, queues by depth, workers by leased messages, findings."""
    now, before, span_s = window.newest, window.oldest, window.span_s
    tallies, earlier = now.tallies, before.tallies
    totals = {
        "accepted_per_s": rate(tallies["accepted"], earlier["accepted"], span_s),
        "settled_per_s": rate(tallies["settled"], earlier["settled"], span_s),
        "failed_per_s": rate(tallies["failed"], earlier["failed"], span_s),
        **{name: tallies[name] for name in ASIS},
        "wait_ns": named(lately(tallies["wait"], earlier["wait"])),
        "total_ns": named(lately(tallies["total"], earlier["total"])),
    }
    settled = {worker["number"]: worker["settled"] for worker in before.workers}
    queues = [
        queue_row(queue, before.queues.get(name, UNNAMED), now.now_ns, span_s) for name, queue in now.queues.items()
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


def named(counts: dict[int, int]) -> dict[str, int]:
    """Quantiles by name; empty if nothing happened."""
    return dict(zip(NAMES, quantiles_ns(counts), strict=False))


def queue_row(queue: dict[str, Any], before: dict[str, Any], now_ns: int, span_s: float) -> dict[str, Any]:
    settled, settled_before = queue["done"] + queue["failed"], before["done"] + before["failed"]
    return {
        "queue": queue["queue"],
        "is_paused": queue["is_paused"],
        "is_draining": queue["is_draining"],
        "waiting": queue["waiting"],
        "delayed": queue["delayed"],
        "leased": queue["leased"],
        "workers": queue["workers"],
        "oldest_s": (now_ns - queue["oldest_ns"]) / 1e9 if queue["oldest_ns"] else 0.0,
        "in_per_s": rate(queue["accepted"], before["accepted"], span_s),
        "out_per_s": rate(settled, settled_before, span_s),
        "wait_ns": named(lately(queue["wait"], before["wait"])),
    }


def worker_row(worker: dict[str, Any], settled_before: int, span_s: float) -> dict[str, Any]:
    return {
        "id": worker["id"],
        "name": worker["name"],
        "dialect": worker["dialect"],
        "state": worker["state"],
        "leased": worker["leased"],
        "slots_free": worker["slots_free"],
        "settled_per_s": rate(worker["settled"], settled_before, span_s),
        "last_sign_ns": worker["last_sign_ns"],
    }
