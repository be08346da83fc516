"""This build beside another one: processor time and pace of each dialect and of the SDK, and how fast waiting messages are drained from disk.

The other build is named by the interpreter of the environment it is installed in. Both brokers are up at once; at every step they are
measured one right after the other, in an order that turns.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from bench import contenders
from bench.contenders import ContenderFailed, Running, start_broker
from bench.dialogues import DIALOGUES, EMQP
from bench.endpoint import Endpoint, EndpointFailed
from bench.footprint import BODY_SIZE, FILL_IN_FLIGHT, PATIENCE_S
from bench.rounds import Plan, sample
from bench.sdk_vs_nats import ask_dragoman

ASK = "SDK ask"
ASK_S = 2.0
DRAIN = "drain"


@dataclass
class Compared:
    """What one measurement gave by round: (the other build's, this build's)."""

    name: str
    cpu_us: list[tuple[float, float]] = field(default_factory=list)
    trips_per_s: list[tuple[float, float]] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        return {"name": self.name, "cpu_us": self.cpu_us, "trips_per_s": self.trips_per_s}


def ratio(pairs: list[tuple[float, float]]) -> float | None:
    """This build ÷ the other: the median over rounds of the ratio within a round."""
    ratios = [mine / other for other, mine in pairs if other > 0]
    return median(ratios) if ratios else None


def run(
    endpoint: Endpoint,
    data_root: Path,
    python: str,
    rounds: int,
    messages: int,
    said: Callable[[str], None],
    failed: Callable[[str], None],
) -> list[Compared]:
    builds = (python, sys.executable)
    found = []
    for dialogue in DIALOGUES.values():
        plan = Plan(endpoint, data_root, dialogue, rounds=rounds)
        found.append(_trips(plan, builds, said, failed))
    asks = Compared(ASK)
    for number in range(rounds):
        said(f"{ASK} beside the other build, round {number + 1}/{rounds}")
        _measure(asks, number, lambda at: _asked(data_root, builds[at]), failed)
    drains = Compared(DRAIN)
    for number in range(rounds):
        said(f"waiting messages drained beside the other build, round {number + 1}/{rounds}")
        _measure(drains, number, lambda at: (0.0, _drained_per_s(endpoint, data_root, builds[at], messages)), failed)
    return [*found, asks, drains]


def _trips(plan: Plan, builds: tuple[str, str], said: Callable[[str], None], failed: Callable[[str], None]) -> Compared:
    compared = Compared(plan.dialogue.name)
    brokers = [start_broker("os", plan.data_root, dialogue=plan.dialogue, python=build) for build in builds]
    try:
        for number in range(plan.rounds):
            said(f"{plan.dialogue.name} beside the other build, round {number + 1}/{plan.rounds}")
            _measure(compared, number, lambda at: _sample(plan, brokers[at]), failed)
    finally:
        for broker in brokers:
            broker.stop()
    return compared


def _measure(
    compared: Compared, number: int, measure: Callable[[int], tuple[float, float]], failed: Callable[[str], None]
) -> None:
    results: dict[int, tuple[float, float]] = {}
    for at in (0, 1) if number % 2 else (1, 0):
        try:
            results[at] = measure(at)
        except (ContenderFailed, EndpointFailed) as error:
            failed(f"{compared.name}: {error}")
    if len(results) == 2:
        compared.cpu_us.append((results[0][0], results[1][0]))
        compared.trips_per_s.append((results[0][1], results[1][1]))


def _sample(plan: Plan, broker: Running) -> tuple[float, float]:
    measured = sample(plan, plan.dialogue.bar_point, broker)
    return measured.broker_cpu_us, measured.trips_per_s


def _asked(data_root: Path, python: str) -> tuple[float, float]:
    """`ask` of one client and one worker process; the processor time is that of the broker and the client."""
    figures = ask_dragoman("os", ASK_S, data_root, python)
    cpu_s = figures["broker_cpu_s"] + figures["client_cpu_s"]
    return cpu_s * 1e6 / max(1.0, figures["trips"]), figures["asks_per_s"]


def _drained_per_s(endpoint: Endpoint, data_root: Path, python: str, messages: int) -> float:
    """Fill a queue, kill the broker, start it again and let workers take everything: what lay beyond the head comes from disk."""
    broker = start_broker("os", data_root, python=python)
    assert broker.data is not None
    again: Running | None = None
    try:
        filling = {"mode": "fill", "clients": 1, "in_flight": FILL_IN_FLIGHT, "trips": messages, "body": BODY_SIZE}
        endpoint.run(PATIENCE_S, **filling, client_addr=broker.client_address)
        broker.kill()
        again = start_broker("os", data_root, broker.data, dialogue=EMQP, python=python)
        drained = endpoint.run(
            PATIENCE_S, mode="drain", workers=1, slots=1000, trips=messages, worker_addr=again.worker_address
        )
        return drained.trips_per_s
    finally:
        if again is not None:
            again.stop()
        broker.stop()


def show(console: Console, found: list[Compared], python: str) -> None:
    table = Table(title=f"this build ÷ the other ({contenders.broker_flavour(python)}), at `os`")
    for column in ("", "processor time per trip", "trips per second", "rounds"):
        table.add_column(column, justify="right")
    for compared in found:
        cpu, pace = ratio(compared.cpu_us), ratio(compared.trips_per_s)
        texts = ("" if value is None else f"{value:.3f}" for value in (cpu, pace))
        table.add_row(compared.name, *texts, str(len(compared.trips_per_s)))
    console.print(table)
