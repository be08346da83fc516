"""A loaded broker, killed at random instants and started again; then the count of what was promised against what was done."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.asking import ASKING, Asking
from tests.chaos.daemon import Daemon
from tests.chaos.emqp import ChaosClient, ChaosWorker
from tests.chaos.tally import Tally
from tests.chaos.working import WORKING

CLIENTS = 3
WORKERS = 2
OTHERS = 2  # clients and workers of each other dialect
SETTLE_S_MAX = 20.0  # without anything moving


@dataclass(frozen=True)
class Outcome:
    durability: str
    kills: int
    attempted: int
    acknowledged: int
    answered: int
    lost: int
    duplicated: int
    unexpected: list[str]
    took_s: float
    answered_by_dialect: dict[str, int] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        return self.lost == 0 and not self.unexpected and self.acknowledged > 0

    def __str__(self) -> str:
        lines = [
            f"durability {self.durability}: {self.kills} kills in {self.took_s:.0f} s",
            f"  attempted     {self.attempted:>8}",
            f"  acknowledged  {self.acknowledged:>8}",
            f"  answered      {self.answered:>8}   ({', '.join(f'{k} {v}' for k, v in self.answered_by_dialect.items())})",
            f"  lost          {self.lost:>8}",
            f"  duplicated    {self.duplicated:>8}   (given to a worker again: allowed)",
            f"  unexpected    {len(self.unexpected):>8}",
        ]
        return "\n".join(lines + [f"    {what}" for what in self.unexpected[:10]])


def run(data: Path, durability: str, kills: int, seed: int) -> Outcome:
    return asyncio.run(_run(data, durability, kills, random.Random(seed)))


async def _run(data: Path, durability: str, kills: int, chance: random.Random) -> Outcome:
    daemon, tally = Daemon(data, durability, ("pingpong.queue=chaos",)), Tally()  # one queue for all five dialects
    # A peer may be in the middle of a hundred writes when the broker dies; asyncio would tell of each.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    began_s = time.monotonic()
    await asyncio.to_thread(daemon.start)
    clients: list[ChaosClient | Asking] = [ChaosClient(f"{n}", daemon, tally) for n in range(CLIENTS)]
    clients += [kind(f"{kind.__name__}{n}", daemon, tally) for kind in ASKING for n in range(OTHERS)]
    workers = [ChaosWorker(f"{n}", daemon, tally) for n in range(WORKERS)]
    others = [kind(f"{kind.__name__}{n}", daemon, tally) for kind in WORKING for n in range(OTHERS)]
    tasks = [asyncio.create_task(peer.run()) for peer in [*clients, *workers, *others]]
    try:
        for _ in range(kills):
            await _under_load(tally, chance.choice((0.0, 0.02, 0.2, chance.uniform(0.0, 1.5))))
            daemon.kill()
            await asyncio.to_thread(daemon.start)
        await _under_load(tally, 0.5)
        tally.is_closing = True
        await _settle(tally, clients)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if daemon.process is not None and daemon.process.poll() is None:
            exit_code = await asyncio.to_thread(daemon.stop)
            if exit_code != 0:
                tally.unexpected.append(f"the last broker ended with {exit_code}")
    return Outcome(
        durability, kills, len(tally.attempted), len(tally.acknowledged), sum(tally.answered.values()), len(tally.lost),
        tally.duplicated, tally.unexpected, time.monotonic() - began_s, by_dialect(tally),
    )  # fmt: skip


def by_dialect(tally: Tally) -> dict[str, int]:
    """A request's id begins with the kind of client that asked it."""
    counts = {kind.listener.split(".")[0]: kind.__name__.encode() for kind in ASKING}
    found = {name: sum(1 for token in tally.answered if token.startswith(mark)) for name, mark in counts.items()}
    return {"emqp": len(tally.answered) - sum(found.values()), **found}


async def _under_load(tally: Tally, more_s: float) -> None:
    """Until requests are taken again, so that every kill meets a working broker, and then a little longer."""
    before = len(tally.acknowledged)
    await _until(lambda: len(tally.acknowledged) > before, SETTLE_S_MAX)
    await asyncio.sleep(more_s)


async def _settle(tally: Tally, clients: list[ChaosClient | Asking]) -> None:
    """Until every promise is kept, or nothing has moved for long. Promises are counted only while nothing moves: counting a quarter
    of a million of them takes time from the workers, which live in this process."""
    executed, moved_s = -1, time.monotonic()
    while time.monotonic() - moved_s < SETTLE_S_MAX:
        if len(tally.executed) != executed:
            executed, moved_s = len(tally.executed), time.monotonic()
        elif not tally.lost and not any(client.waiting for client in clients):
            return
        await asyncio.sleep(0.2)


async def _until(condition: object, most_s: float) -> None:
    assert callable(condition)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(most_s):
            while not condition():
                await asyncio.sleep(0.01)
