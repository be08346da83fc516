"""The race: each contender makes all tables from the same lake, in a process of its own, one right after the other.

A round starts each of them once: its first time is cold, the others are warm. Figures are medians over rounds of ratios within a round,
so that a slow minute of the machine is everybody's slow minute. Whoever writes other rows than the others has not done the work.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.contenders import ROOT
from bench.pipeline.agree import differences, digests
from bench.pipeline.memory import Peak

NAMES = ("duckdb", "polars", "spark")
THREADS = "2"
WARM_TIMES = 2
PATIENCE_S = 3600.0


class ContenderFailed(RuntimeError):
    """A contender ended without its tables; the text is its own."""


@dataclass(frozen=True)
class Lap:
    """One contender in one round."""

    name: str
    cold_s: float  # from the start of the process to the last table
    warm_s: float  # the best of the times after it
    peak_mb: float

    def to_json(self) -> dict[str, float | str]:
        return {"name": self.name, "cold_s": self.cold_s, "warm_s": self.warm_s, "peak_mb": self.peak_mb}


@dataclass
class Race:
    """All rounds over one lake."""

    facts: int
    rounds: list[dict[str, Lap]] = field(default_factory=list)

    def middle(self, name: str, field_name: str) -> float | None:
        values = [getattr(laps[name], field_name) for laps in self.rounds if name in laps]
        return median(values) if values else None

    def ratio(self, name: str, to: str, field_name: str) -> float | None:
        ratios = [
            getattr(laps[name], field_name) / getattr(laps[to], field_name)
            for laps in self.rounds
            if name in laps and to in laps
        ]
        return median(ratios) if ratios else None

    def to_json(self) -> dict[str, object]:
        return {
            "facts": self.facts,
            "rounds": [[lap.to_json() for lap in laps.values()] for laps in self.rounds],
            "middle": {
                name: {what: self.middle(name, what) for what in ("cold_s", "warm_s", "peak_mb")} for name in NAMES
            },
        }


def run(
    lake: Path,
    facts: int,
    out: Path,
    rounds: int,
    names: tuple[str, ...],
    said: Callable[[str], None],
    failed: Callable[[str], None],
) -> Race:
    race = Race(facts)
    for number in range(rounds):
        turned = names[number % len(names) :] + names[: number % len(names)]
        laps = {}
        for name in turned:
            said(f"{facts:,} facts, round {number + 1}/{rounds}: {name}")
            try:
                laps[name] = lap(name, lake, out / name)
            except ContenderFailed as error:
                failed(f"{name}, {facts:,} facts: {error}")
        race.rounds.append({name: laps[name] for name in names if name in laps})
        if number == 0:
            for text in disagreements(out, list(laps)):
                failed(f"{facts:,} facts: {text}")
        shutil.rmtree(out, ignore_errors=True)
    return race


def lap(name: str, lake: Path, out: Path, warm_times: int = WARM_TIMES) -> Lap:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    command = [sys.executable, "-m", "bench.pipeline.contender", name, str(lake), str(out), str(1 + warm_times)]
    began = time.monotonic()
    with (out / "stderr").open("w") as words:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=words,
            text=True,
            env=os.environ | {"POLARS_MAX_THREADS": THREADS},
        )
    assert process.stdout is not None
    peak = Peak(process.pid)
    seconds = []
    cold_s = 0.0
    for line in process.stdout:
        cold_s = cold_s or time.monotonic() - began
        seconds.append(json.loads(line)["seconds"])
    process.wait(PATIENCE_S)
    process.stdout.close()
    peak_mb = peak.stop()
    if process.returncode != 0 or not seconds:
        raise ContenderFailed((out / "stderr").read_text()[-2000:] or f"exit code {process.returncode}")
    return Lap(name, cold_s, min(seconds[1:] or seconds), peak_mb)


def disagreements(out: Path, names: list[str]) -> list[str]:
    """What two contenders wrote that is not the same, in words."""
    if len(names) < 2:
        return []
    first, *others = names
    ours = digests(out / first / "tables")
    return [
        f"{first} and {other} differ in {text}"
        for other in others
        for text in differences(ours, digests(out / other / "tables"))
    ]
