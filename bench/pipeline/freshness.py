"""From message to row: a live broker with its sealer, `dragoman pipeline watch` at its default trigger, and a little load.

A row's age is counted from the instant its message was closed to the instant its batch was committed, when every reader sees it. The
first batches are left out: they wait for Java to warm up, once in the life of a watch.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from bench.contenders import ROOT, ContenderFailed, Running, start_broker
from bench.dialogues import EMQP
from bench.endpoint import Endpoint

LOAD_S = 90.0
WARM_BATCHES = 12
EVERY_S = 0.25
BURST_S = 0.05
START_S = 420.0
STOP_S = 120.0


@dataclass(frozen=True)
class Freshness:
    """Ages of rows when they could first be read."""

    rows: int
    batches: int
    p50_s: float
    p95_s: float

    def to_json(self) -> dict[str, float]:
        return {"rows": self.rows, "batches": self.batches, "p50_s": self.p50_s, "p95_s": self.p95_s}


class Commits:
    """When each batch of messages was committed, by its number."""

    def __init__(self, tables: Path) -> None:
        self.tables = tables
        self.seen: dict[int, float] = {}

    def look(self) -> int:
        now = time.time()
        for state in self.tables.glob("progress/batch=*/state.json"):
            self.seen.setdefault(int(state.parent.name.removeprefix("batch=")), now)
        return len(self.seen)


def measure(endpoint: Endpoint, data_root: Path, said: Callable[[str], None], load_s: float = LOAD_S) -> Freshness:
    broker = start_broker("os", data_root, lake="on")
    assert broker.data is not None
    command = [
        sys.executable,
        "-m",
        "dragoman",
        "pipeline",
        "watch",
        "--data",
        str(broker.data),
        "--master",
        "local[2]",
    ]
    words = (broker.data / "watch.log").open("w")
    watch = subprocess.Popen(command, cwd=ROOT, stdout=words, stderr=words)
    commits = Commits(broker.data / "tables")
    try:
        said("from message to row: waiting for the first batches")
        _load(endpoint, broker, lambda: commits.look() >= WARM_BATCHES, START_S, watch)
        said(f"from message to row: {load_s:g} s of load")
        begin = time.time()
        end = begin + load_s
        _load(endpoint, broker, lambda: commits.look() < 0 or time.time() >= end, load_s + 1, watch)
        _settle(commits, watch)
        return _ages(commits, begin, end)
    finally:
        if watch.poll() is None:
            watch.send_signal(signal.SIGINT)
            try:
                watch.wait(STOP_S)
            except subprocess.TimeoutExpired:
                watch.kill()
                watch.wait()
        words.close()
        broker.stop()


def _load(
    endpoint: Endpoint, broker: Running, is_over: Callable[[], bool], patience_s: float, watch: subprocess.Popen[bytes]
) -> None:
    """A few messages every quarter of a second, until told to stop."""
    deadline = time.monotonic() + patience_s
    while not is_over():
        if watch.poll() is not None or time.monotonic() > deadline:
            assert broker.data is not None
            raise ContenderFailed(f"watch wrote no batch: {(broker.data / 'watch.log').read_text()[-2000:]}")
        endpoint.run(
            mode=EMQP.mode, clients=1, workers=1, in_flight=1, slots=1, seconds=BURST_S, warmup=0,
            client_addr=broker.client_address, worker_addr=broker.worker_address, watch=broker.pid,
        )  # fmt: skip
        time.sleep(EVERY_S)


def _settle(commits: Commits, watch: subprocess.Popen[bytes]) -> None:
    """Two more batches hold all that was sent."""
    wanted = commits.look() + 2
    deadline = time.monotonic() + 60
    while commits.look() < wanted and time.monotonic() < deadline and watch.poll() is None:
        time.sleep(0.05)


def _ages(commits: Commits, begin: float, end: float) -> Freshness:
    """Rows of messages that were closed within the time of the load."""
    tables, seen = commits.tables, commits.seen
    with duckdb.connect() as base:
        base.execute("create table commits (batch bigint, at_s double)")
        base.executemany("insert into commits values (?, ?)", [list(pair) for pair in seen.items()])
        row = base.execute(
            f"""
            with ages as (
                select at_s - epoch_us(closed_at) / 1e6 as age_s, batch
                from (select closed_at, regexp_extract(filename, 'batch=(-?\\d+)', 1)::bigint as batch
                      from read_parquet('{tables}/messages/batch=*/*.parquet', filename = true, hive_partitioning = false))
                    join commits using (batch)
                where epoch_us(closed_at) / 1e6 between {begin} and {end}
            )
            select count(*), count(distinct batch), quantile_cont(age_s, 0.5), quantile_cont(age_s, 0.95) from ages
            """
        ).fetchone()
    assert row is not None
    if not row[0]:
        raise ContenderFailed("watch committed no row of the load")
    return Freshness(*row)
