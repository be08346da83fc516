"""The rounds: every contender at every load, side by side in time, and again where others used the machine.

All contenders of a round are up at once (an idle one costs nothing). At each load they are measured one right after
the other, in an order that turns from round to round, so that a slow minute of the machine is everybody's slow minute.
The figure is the median over rounds of the ratio within a round, never a ratio of medians.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench import contenders
from bench.dialogues import EMQP, Dialogue
from bench.endpoint import Endpoint, EndpointFailed, Point, Sample

OTHERS_MAX = 0.15  # share of the machine; above it the round says nothing about us
REPEATS_MAX = 3  # per load and round: a busy machine must not keep the bench for ever
SYNCS = 50
SYNC_SIZE = 4096  # bytes appended before each sync: a small commit


@dataclass
class Round:
    """The samples of one load in one round, by contender."""

    number: int
    point: Point
    samples: dict[str, Sample]
    fdatasync_us: float
    repeats: int

    @property
    def others_share(self) -> float:
        return max((sample.others_share for sample in self.samples.values()), default=0.0)

    @property
    def is_quiet(self) -> bool:
        return self.others_share <= OTHERS_MAX


@dataclass
class Figures:
    """All rounds, and the questions asked of them."""

    rounds: list[Round] = field(default_factory=list)

    def at(self, point: Point) -> list[Round]:
        return [round_ for round_ in self.rounds if round_.point == point]

    def middle(self, point: Point, name: str, field_name: str) -> float | None:
        values = [getattr(r.samples[name], field_name) for r in self.at(point) if name in r.samples]
        return median(values) if values else None

    def ratio(self, point: Point, name: str, to: str, field_name: str = "trips_per_s") -> float | None:
        """The median over rounds of `name` ÷ `to` within the round."""
        ratios = [
            getattr(r.samples[name], field_name) / getattr(r.samples[to], field_name)
            for r in self.at(point)
            if name in r.samples and to in r.samples and getattr(r.samples[to], field_name) > 0
        ]
        return median(ratios) if ratios else None

    def fdatasync_us(self) -> float | None:
        return median([r.fdatasync_us for r in self.rounds]) if self.rounds else None


def fdatasync_us(directory: Path) -> float:
    """The p50 of an fdatasync after a small append, on the file system the brokers write to."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "fdatasync.probe"
    times_ns = []
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.posix_fallocate(fd, 0, SYNCS * SYNC_SIZE)
        os.fsync(fd)
        for _ in range(SYNCS):
            os.write(fd, b"x" * SYNC_SIZE)
            begun = time.perf_counter_ns()
            os.fdatasync(fd)
            times_ns.append(time.perf_counter_ns() - begun)
    finally:
        os.close(fd)
        path.unlink()
    return median(times_ns) / 1000


@dataclass
class Plan:
    """What to run."""

    endpoint: Endpoint
    data_root: Path
    dialogue: Dialogue = EMQP
    names: tuple[str, ...] = EMQP.contenders
    rounds: int = 7
    seconds: float = 1.0
    warmup_s: float = 0.3
    processes: int = 1


def run(plan: Plan, said: Callable[[str], None], failed: Callable[[str], None]) -> Figures:
    figures = Figures()
    for number in range(1, plan.rounds + 1):
        running = []
        try:
            for name in plan.names:
                try:
                    running.append(contenders.start(name, plan.data_root, plan.dialogue))
                except contenders.ContenderFailed as error:
                    failed(str(error))
            turned = running[number % len(running) :] + running[: number % len(running)] if running else []
            for point in plan.dialogue.points:
                said(f"{plan.dialogue.name}, round {number}/{plan.rounds}: {point.name}")
                figures.rounds.append(measure(plan, number, point, turned, failed))
        finally:
            for contender in running:
                contender.stop()
    return figures


def measure(
    plan: Plan, number: int, point: Point, running: list[contenders.Running], failed: Callable[[str], None]
) -> Round:
    """Measure one load in one round; again while it was noisy, keeping the quietest."""
    best: Round | None = None
    for repeat in range(REPEATS_MAX + 1):
        samples = {}
        for contender in running:
            try:
                samples[contender.name] = sample(plan, point, contender)
            except EndpointFailed as error:
                failed(f"{plan.dialogue.name}, {contender.name}, {point.name}: {error}")
        attempt = Round(number, point, samples, fdatasync_us(plan.data_root), repeat)
        if best is None or (samples and attempt.others_share < best.others_share):
            best = attempt
        if not samples or attempt.is_quiet:
            break
    assert best is not None
    best.repeats = repeat
    return best


def sample(plan: Plan, point: Point, contender: contenders.Running) -> Sample:
    return plan.endpoint.run(
        mode=contender.mode,
        clients=point.connections,
        workers=point.workers,
        in_flight=point.in_flight,
        slots=point.slots_per_worker,
        seconds=plan.seconds,
        warmup=plan.warmup_s,
        processes=plan.processes,
        client_addr=contender.client_address,
        worker_addr=contender.worker_address,
        watch=contender.pid,
    )
