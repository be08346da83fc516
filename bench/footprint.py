"""The broker's footprint: memory when idle, memory with many waiting messages, and the time to come back after a kill.

For each size: fill a queue that nobody serves with messages of 200 bytes, read the resident memory, kill the broker
without warning, time the next start until it listens, read the memory again, then let workers take everything and
count: a recovery that forgets messages is no recovery.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.bars import Bar
from bench.contenders import ContenderFailed, Running, start_broker
from bench.endpoint import Endpoint, EndpointFailed

BODY_SIZE = 200
HUGE = 10_000_000
FILL_IN_FLIGHT = 10_000
PATIENCE_S = 1200.0
MB = 1_000_000


@dataclass(frozen=True)
class Footprint:
    """What one number of waiting messages costs at one durability."""

    durability: str
    messages: int
    idle_mb: float
    waiting_mb: float  # resident, with all of them waiting
    fill_per_s: float
    empty_start_s: float
    recovery_s: float  # from spawn to listening, with all of them waiting
    recovered_mb: float
    drained: int
    drain_per_s: float

    @property
    def over_idle_mb(self) -> float:
        return self.waiting_mb - self.idle_mb

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / MB
    return 0.0


def settled_mb(pid: int) -> float:
    """Resident memory once it has stopped moving, so that a just started or just filled broker is not caught halfway."""
    before = resident_mb(pid)
    for _ in range(20):
        time.sleep(0.25)
        now = resident_mb(pid)
        if abs(now - before) < 0.5:
            return now
        before = now
    return before


def measure(endpoint: Endpoint, data_root: Path, durability: str, messages: int) -> Footprint:
    broker = start_broker(durability, data_root)
    assert broker.data is not None
    again: Running | None = None
    try:
        idle_mb, empty_start_s = settled_mb(broker.pid), broker.started_s
        filled = endpoint.run(
            PATIENCE_S,
            mode="fill",
            clients=1,
            in_flight=min(FILL_IN_FLIGHT, messages),
            trips=messages,
            body=BODY_SIZE,
            client_addr=broker.client_address,
        )
        waiting_mb = settled_mb(broker.pid)
        broker.kill()
        again = start_broker(durability, data_root, broker.data)
        recovered_mb = settled_mb(again.pid)
        drained = endpoint.run(
            PATIENCE_S, mode="drain", workers=1, slots=1000, trips=messages, worker_addr=again.worker_address
        )
        return Footprint(
            durability,
            messages,
            idle_mb,
            waiting_mb,
            filled.trips_per_s,
            empty_start_s,
            again.started_s,
            recovered_mb,
            drained.trips,
            drained.trips_per_s,
        )
    finally:
        if again is not None:
            again.stop()
        broker.stop()  # also removes the data directory


def run(
    endpoint: Endpoint,
    data_root: Path,
    messages: int,
    is_huge: bool,
    said: Callable[[str], None],
    failed: Callable[[str], None],
) -> list[Footprint]:
    prints = []
    for count in [messages, *([HUGE] if is_huge else [])]:
        said(f"footprint of {count:,} waiting messages")
        try:
            prints.append(measure(endpoint, data_root, "os", count))
        except (ContenderFailed, EndpointFailed) as error:
            failed(f"footprint of {count:,} messages: {error}")
    return prints


def show(console: Console, prints: list[Footprint]) -> None:
    table = Table(title=f"footprint, waiting messages of {BODY_SIZE} bytes", title_justify="left")
    titles = ["messages", "idle MB", "waiting MB", "over idle MB", "fill/s", "empty start s", "recovery s"]
    for title in [*titles, "recovered MB", "drained", "drain/s"]:
        table.add_column(title, justify="right")
    for one in prints:
        table.add_row(
            f"{one.messages:,}",
            f"{one.idle_mb:.0f}",
            f"{one.waiting_mb:.0f}",
            f"{one.over_idle_mb:.0f}",
            f"{one.fill_per_s:,.0f}",
            f"{one.empty_start_s:.2f}",
            f"{one.recovery_s:.2f}",
            f"{one.recovered_mb:.0f}",
            f"{one.drained:,}",
            f"{one.drain_per_s:,.0f}",
        )
    console.print(table)


def bars(prints: list[Footprint]) -> list[Bar]:
    found = []
    for one in prints:
        if one.messages >= HUGE:
            found.append(Bar("10 million waiting messages, resident", one.waiting_mb, 4000, False, "MB"))
            continue
        found.append(Bar("idle broker, resident", one.idle_mb, 80, False, "MB"))
        if one.messages == 1_000_000:
            found.append(Bar("1 million waiting messages, over idle", one.over_idle_mb, 700, False, "MB"))
            found.append(Bar("recovery of 1 million waiting messages", one.recovery_s, 5, False, "s"))
    return found
