"""The SDK against nats-py: `ask` with one future per call, 1000 in flight, one client and one worker process in Python.

Rounds are interleaved and the figure is the median of per-round ratios. NATS keeps nothing; we are measured at each
durability. Both sides run on uvloop and use the same JSON codec for the same small body.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import nats_server
from bench.bars import Bar
from bench.contenders import ROOT, ContenderFailed, Running, start_broker

IN_FLIGHT = 1000
WARMUP_S = 1.0
WINDOW_S_MIN = 2.0
DURABILITIES = ("memory", "os", "disk")
NATS = "nats"


@dataclass
class Compared:
    """Asks per second and processor time of the broker, by contender and round."""

    rounds: list[dict[str, dict[str, float]]] = field(default_factory=list)
    note: str = ""

    def middle(self, name: str, key: str) -> float | None:
        values = [one[name][key] for one in self.rounds if name in one]
        return median(values) if values else None

    def ratio(self, name: str) -> float | None:
        ratios = [r[name]["asks_per_s"] / r[NATS]["asks_per_s"] for r in self.rounds if name in r and NATS in r]
        return median(ratios) if ratios else None

    def to_json(self) -> dict[str, Any]:
        names = (NATS, *DURABILITIES)
        figures = {n: {"asks_per_s": self.middle(n, "asks_per_s"), "ratio_to_nats": self.ratio(n)} for n in names}
        return {"in_flight": IN_FLIGHT, "figures": figures, "rounds": self.rounds, "note": self.note}


def python(*arguments: str, build: str = sys.executable) -> list[str]:
    """A command of a module; `build`: the interpreter of the environment in which the SDK is installed."""
    return [build, "-m", *arguments]


def ask(command: list[str], broker_pid: int, seconds: float, environ: dict[str, str]) -> dict[str, float]:
    """Run a client process and return its figures."""
    load = [str(IN_FLIGHT), str(WARMUP_S), str(max(seconds, WINDOW_S_MIN)), str(broker_pid)]
    done = subprocess.run(
        [*command, *load], cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode != 0:
        raise ContenderFailed(f"{' '.join(command[2:4])}: {done.stderr.strip()[-800:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    figures["broker_cpu_us"] = figures["broker_cpu_s"] * 1e6 / max(1.0, figures["trips"])
    return figures


def ask_nats(binary: str, seconds: float) -> dict[str, float]:
    server = nats_server.NatsServer(binary)
    worker = None
    try:
        command = python("bench.ask_nats", "worker", server.url)
        worker = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert worker.stdout is not None
        if worker.stdout.readline().strip() != "ready":
            raise ContenderFailed("the NATS worker did not start")
        client = python("bench.ask_nats", "client", server.url)
        return ask(client, server.process.pid, seconds, dict(os.environ))
    finally:
        if worker is not None:
            worker.terminate()
            worker.communicate(timeout=10)
        server.stop()


def broker_url(broker: Running) -> str:
    """The worker listener takes client commands too, so one address serves both processes."""
    return broker.worker_address.replace("tcp://", "emqp://")


def ask_dragoman(durability: str, seconds: float, data_root: Path, build: str = sys.executable) -> dict[str, float]:
    broker = start_broker(durability, data_root, python=build)
    worker = None
    try:
        environ = {**os.environ, "BENCH_BROKER": broker_url(broker)}
        command = python("dragoman", "worker", "bench.ask_dragoman:app", "--slots", str(IN_FLIGHT), build=build)
        assert broker.data is not None
        with (broker.data / "worker.log").open("w") as log:
            worker = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=log, stderr=log)
        return ask(python("bench.ask_dragoman", build=build), broker.pid, seconds, environ)
    finally:
        if worker is not None:
            worker.terminate()
            worker.wait(40)
        broker.stop()


def run(
    rounds: int, seconds: float, data_root: Path, said: Callable[[str], None], failed: Callable[[str], None]
) -> Compared:
    compared = Compared()
    binary = nats_server.find(data_root.parent, said)
    if binary is None:
        compared.note = "no nats-server here and none to be had by apt-get: no ratio"
    for number in range(1, rounds + 1):
        figures: dict[str, dict[str, float]] = {}
        for name in (NATS, *DURABILITIES):
            said(f"SDK round {number}/{rounds}: {name}")
            try:
                if name != NATS:
                    figures[name] = ask_dragoman(name, seconds, data_root)
                elif binary is not None:
                    figures[name] = ask_nats(binary, seconds)
            except (ContenderFailed, subprocess.TimeoutExpired) as error:
                failed(f"SDK, {name}: {error}")
        compared.rounds.append(figures)
    return compared


def show(console: Console, compared: Compared) -> None:
    title = f"SDK ask, {IN_FLIGHT} in flight, one client and one worker process"
    table = Table(title=title, title_justify="left")
    table.add_column("through")
    for heading in ("asks/s", "÷ nats", "broker CPU µs/ask"):
        table.add_column(heading, justify="right")
    for name in (NATS, *DURABILITIES):
        asks, ratio, cpu = (
            compared.middle(name, "asks_per_s"),
            compared.ratio(name),
            compared.middle(name, "broker_cpu_us"),
        )
        if asks is None:
            table.add_row(name, "did not run")
        else:
            table.add_row(name, f"{asks:,.0f}", f"{ratio:.2f}" if ratio else "–", f"{cpu:.1f}")
    console.print(table)
    if compared.note:
        console.print(compared.note)


def bars(compared: Compared) -> list[Bar]:
    return [Bar(f"SDK ask to nats, {name}", compared.ratio(name), 1.5, True) for name in ("os", "disk")]
