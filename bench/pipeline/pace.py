"""Runs the stream's process and reads its pace, cold and warm."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.contenders import ROOT
from bench.pipeline.memory import Peak
from bench.pipeline.race import ContenderFailed

TIMES = 3


@dataclass(frozen=True)
class Pace:
    """Facts per second of the first time through the lake, and of the best after it."""

    facts: int
    batches: int
    cold_per_s: float
    warm_per_s: float
    peak_mb: float

    def to_json(self) -> dict[str, float]:
        return asdict(self)


def measure(lake: Path, out: Path, times: int = TIMES) -> Pace:
    command = [sys.executable, "-m", "bench.pipeline.streaming", str(lake), str(out), str(times)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    peak = Peak(process.pid)
    told, words = process.communicate()
    peak_mb = peak.stop()
    if process.returncode != 0:
        raise ContenderFailed(words[-2000:] or f"exit code {process.returncode}")
    lines = [json.loads(line) for line in told.splitlines()]
    rates = [line["facts"] / line["seconds"] for line in lines]
    return Pace(lines[0]["facts"], lines[0]["batches"], rates[0], max(rates[1:] or rates), peak_mb)
