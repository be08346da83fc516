"""The endpoint: builds `peer.cpp` when a compiler is there, else runs `peer.py`, and turns its line of JSON into a `Sample`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).parent
OUT = HERE / "out"


class EndpointFailed(RuntimeError):
    """The endpoint ended without a result; the text is its own."""


@dataclass(frozen=True)
class Point:
    """One load: how many requests are in flight in all, over how many client connections, and over how many worker
    connections if not as many."""

    in_flight: int
    connections: int
    worker_connections: int = 0

    @property
    def name(self) -> str:
        workers = f", {self.workers} workers" if self.worker_connections else ""
        return f"{self.in_flight} in flight, {self.connections} conn{workers}"

    @property
    def workers(self) -> int:
        return self.worker_connections or self.connections

    @property
    def slots_per_worker(self) -> int:
        # As many slots as requests in flight: the yardstick has no credit at all, so credit must not be what limits us.
        return max(1, -(-self.in_flight // self.workers))


@dataclass(frozen=True)
class Sample:
    """What one run of the endpoint measured."""

    trips: int
    seconds: float
    trips_per_s: float
    p50_us: float
    p99_us: float
    broker_cpu_us: float  # processor time of the broker process per round trip, all its threads
    peer_cpu_us: float
    others_share: float  # of the whole machine, taken by processes that are not part of the measurement
    duplicates: int
    messages_per_trip: float = 0.0  # into and out of the middle; 0 where the endpoint does not see all of them

    def to_json(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True)
class Endpoint:
    """A command that plays clients and workers, and what it is written in."""

    command: tuple[str, ...]
    language: str

    def run(self, timeout_s: float = 120, **flags: str | int | float) -> Sample:
        arguments = [part for name, value in flags.items() for part in ("--" + name.replace("_", "-"), str(value))]
        done = subprocess.run([*self.command, *arguments], capture_output=True, text=True, timeout=timeout_s)
        if done.returncode != 0:
            raise EndpointFailed(done.stderr.strip() or f"exit code {done.returncode}")
        raw = json.loads(done.stdout)
        per_trip_us = 1e6 / max(1, raw["trips"])
        return Sample(
            trips=raw["trips"],
            seconds=raw["seconds"],
            trips_per_s=raw["trips_per_s"],
            p50_us=raw["p50_us"],
            p99_us=raw["p99_us"],
            broker_cpu_us=raw["broker_cpu_s"] * per_trip_us,
            peer_cpu_us=raw["peer_cpu_s"] * per_trip_us,
            others_share=raw["others_share"],
            duplicates=raw["duplicates"],
            messages_per_trip=raw.get("messages", 0) / max(1, raw["trips"]),
        )


def compiler() -> str | None:
    for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++"):
        if name and shutil.which(name):
            return name
    return None


def build() -> Endpoint:
    """Return the C++ endpoint, compiled if it is older than its sources; the Python one where nothing compiles."""
    OUT.mkdir(exist_ok=True)
    binary = OUT / "peer"
    newest = max(source.stat().st_mtime for source in (HERE / "peer.cpp", *HERE.glob("peer_*.hpp")))
    if not binary.exists() or binary.stat().st_mtime < newest:
        name = compiler()
        if name is None:
            return Endpoint((sys.executable, str(HERE / "peer.py")), "python")
        flags = ["-std=c++17", "-O2", "-Wall", "-Wextra"]
        subprocess.run([name, *flags, "-o", str(binary), str(HERE / "peer.cpp")], check=True)
    return Endpoint((str(binary),), "c++")
