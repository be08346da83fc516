"""A siege in rounds: the floods against the broker, then as much work beside it; in both the same peers ask.

The second half of a round is what the first is measured against: the machine is as busy, but nobody touches the broker.
"""

from __future__ import annotations

import json
import multiprocessing
import re
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil

from tests.chaos.daemon import Daemon
from tests.siege import attacks, good_peers

ROUNDS = 3
MB = 1 << 20
SAMPLE_S = 0.25
GRACE_S = 40.0  # an ask that was made at the end may take so long
PROBE_S = 10.0
BURST_S = 0.02
_CODE = re.compile(r'"?code"?[=:]\s*"?([A-Z0-9_]{4,})')
_context = multiprocessing.get_context("spawn")


@dataclass
class Half:
    """What the peers saw in one half of all rounds."""

    took_s: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def add(self, found: dict[str, dict[str, list[object]]]) -> None:
        for dialect, seen in found.items():
            self.took_s.setdefault(dialect, []).extend(float(str(s)) for s in seen["took_s"])
            self.errors += [f"{dialect}: {error}" for error in seen["errors"]]

    def p99_ms(self, dialect: str | None = None) -> float:
        all_s = sorted(s for name, took in self.took_s.items() if dialect in (None, name) for s in took)
        return all_s[min(len(all_s) * 99 // 100, len(all_s) - 1)] * 1000 if all_s else float("inf")

    @property
    def answered(self) -> int:
        return sum(map(len, self.took_s.values()))


@dataclass
class Outcome:
    memory_max: int
    took_s: float = 0.0
    under_attack: Half = field(default_factory=Half)
    beside_work: Half = field(default_factory=Half)
    rss_max: int = 0
    probes_failed: list[str] = field(default_factory=list)
    probes: int = 0
    attack_cores: list[float] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    is_alive: bool = True

    @property
    def ratio(self) -> float:
        return self.under_attack.p99_ms() / self.beside_work.p99_ms()

    @property
    def lost(self) -> int:
        return len(self.under_attack.errors) + len(self.beside_work.errors)

    def __str__(self) -> str:
        lines = [
            f"siege of {self.took_s:.0f} s, attackers used {sum(self.attack_cores) / len(self.attack_cores):.2f} cores",
            f"  broker alive      {self.is_alive}",
            f"  RSS at most       {self.rss_max / MB:8.0f} MB   (memory_max {self.memory_max / MB:.0f} MB)",
            f"  asks answered     {self.under_attack.answered:8} under attack, {self.beside_work.answered} beside",
            f"  p99               {self.under_attack.p99_ms():8.1f} ms under attack, {self.beside_work.p99_ms():.1f} ms beside",
            f"  p99 ratio         {self.ratio:8.2f}",
            f"  lost or failed    {self.lost:8}",
            f"  probes failed     {len(self.probes_failed):8} of {self.probes} (/livez, /readyz, /metrics)",
        ]
        for dialect in good_peers.DIALECTS:
            under, beside = self.under_attack.p99_ms(dialect), self.beside_work.p99_ms(dialect)
            lines.append(f"    {dialect:9} p99 {under:8.1f} ms / {beside:.1f} ms")
        lines += [f"  refused {count:>9} {code}" for code, count in self.refusals.most_common(20)]
        lines += [
            f"  error: {error}"
            for error in (self.under_attack.errors + self.beside_work.errors + self.probes_failed)[:10]
        ]
        return "\n".join(lines)


def run(directory: Path, seconds: float, memory_max: int, durability: str = "os") -> Outcome:
    # Attackers come from other addresses of loopback than the peers, so that shares by address count for them.
    settings = (f"limits.memory_max={memory_max}", 'limits.exempt_addresses=["127.0.0.1"]')
    daemon = Daemon(directory / "data", durability, settings, http="tcp://127.0.0.1:0")
    daemon.start()
    outcome, began_s = Outcome(memory_max), time.monotonic()
    ready = directory / "ready"
    workers = _context.Process(target=good_peers.serve, args=(daemon.data, ready), daemon=True)
    workers.start()
    try:
        _wait_for(ready, workers)
        _wait_for_page(daemon)
        half_s = seconds / ROUNDS / 2
        for _ in range(ROUNDS):
            cores = _attacked(daemon, directory, half_s, outcome)
            outcome.attack_cores.append(cores)
            _beside_work(daemon, directory, half_s, cores, outcome)
    finally:
        workers.terminate()
        workers.join()
        assert daemon.process is not None
        outcome.is_alive = daemon.process.poll() is None
        if outcome.is_alive:
            daemon.stop()
    outcome.took_s = time.monotonic() - began_s
    outcome.refusals = Counter(_CODE.findall(daemon.log.read_text(errors="replace")))
    return outcome


def _wait_for(ready: Path, process: BaseProcess) -> None:
    ends_s = time.monotonic() + GRACE_S
    while not ready.exists():
        assert process.is_alive(), "the workers did not start"
        assert time.monotonic() < ends_s, "the workers are not taken on"
        time.sleep(0.02)


def _wait_for_page(daemon: Daemon) -> None:
    """The page is a process of its own: it comes a moment after the broker."""
    ends_s = time.monotonic() + GRACE_S
    while (refused := _asked(daemon, "/livez")) is not None:
        assert time.monotonic() < ends_s, f"the page does not come: {refused}"
        time.sleep(0.02)


def _attacked(daemon: Daemon, directory: Path, half_s: float, outcome: Outcome) -> float:
    """One half with all attacks; the cores they used."""
    ends_s = time.monotonic() + half_s
    ports = {name: daemon.port(name) for name in daemon.addresses if daemon.addresses[name] != "off"}
    attackers = [
        _context.Process(target=attack, args=(attacks.Target(ports, f"127.0.0.{at + 2}", ends_s),), daemon=True)
        for at, attack in enumerate(attacks.ATTACKS)
    ]
    return _half(daemon, directory, half_s, attackers, outcome, outcome.under_attack)


def _beside_work(daemon: Daemon, directory: Path, half_s: float, cores: float, outcome: Outcome) -> None:
    ends_s, count = time.monotonic() + half_s, len(attacks.ATTACKS)
    burners = [_context.Process(target=_burn, args=(cores / count, ends_s), daemon=True) for _ in range(count)]
    _half(daemon, directory, half_s, burners, outcome, outcome.beside_work)


def _burn(share: float, ends_s: float) -> None:
    """Use this share of a core, in bursts."""
    while time.monotonic() < ends_s:
        until_s = time.thread_time() + BURST_S * share
        while time.thread_time() < until_s:
            pass
        time.sleep(BURST_S * (1 - min(share, 0.95)))


def _half(
    daemon: Daemon, directory: Path, half_s: float, crowd: list[BaseProcess], outcome: Outcome, seen: Half
) -> float:
    result = directory / "asked.json"
    result.unlink(missing_ok=True)
    client = _context.Process(target=good_peers.ask, args=(daemon.data, half_s, result), daemon=True)
    for process in (*crowd, client):
        process.start()
    began_s, used_s = time.monotonic(), 0.0
    assert daemon.process is not None
    broker = psutil.Process(daemon.process.pid)
    seen_cpu: dict[int, float] = {}
    while client.is_alive() and time.monotonic() < began_s + half_s + GRACE_S:
        if daemon.process.poll() is not None:
            break
        outcome.rss_max = max(outcome.rss_max, broker.memory_info().rss)
        _probe(daemon, outcome)
        for process in crowd:
            if process.pid is not None and process.is_alive():
                times = psutil.Process(process.pid).cpu_times()
                seen_cpu[process.pid] = times.user + times.system
        client.join(SAMPLE_S)
    used_s = sum(seen_cpu.values())
    for process in (*crowd, client):
        if process.is_alive():
            process.terminate()
        process.join()
    if result.exists():
        seen.add(json.loads(result.read_text()))
    else:
        seen.errors.append("the clients did not come to an end")
    return used_s / half_s


def _probe(daemon: Daemon, outcome: Outcome) -> None:
    """What a monitor asks; it must be answered whatever goes on."""
    for path in ("/livez", "/readyz", "/metrics"):
        outcome.probes += 1
        if (refused := _asked(daemon, path)) is not None:
            outcome.probes_failed.append(f"{path}: {refused}")


def _asked(daemon: Daemon, path: str) -> str | None:
    """None when the page answers with 200, else what it says."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{daemon.port('http')}{path}", timeout=PROBE_S) as answer:
            return None if answer.status == 200 else f"status {answer.status}"
    except OSError as error:
        return str(error)
