"""The load both SDKs are measured with: so many tasks, each asking one question after the other."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

Ask = Callable[[int], Awaitable[int]]


async def load(ask: Ask, in_flight: int, warmup_s: float, seconds: float, broker_pid: int) -> None:
    """Ask with one future per call; print what was done in the window as one line of JSON."""
    answered = 0
    stop = False

    async def asker(number: int) -> None:
        nonlocal answered
        while not stop:
            answer = await ask(number)
            assert answer == number, f"asked {number}, was answered {answer}"
            answered += 1

    tasks = [asyncio.create_task(asker(number)) for number in range(in_flight)]
    await asyncio.sleep(warmup_s)
    first, begun, broker_s, own_s = answered, time.perf_counter(), processor_s(broker_pid), time.process_time()
    await asyncio.sleep(seconds)
    trips, took_s = answered - first, time.perf_counter() - begun
    broker_s, own_s = processor_s(broker_pid) - broker_s, time.process_time() - own_s
    stop = True
    await asyncio.wait_for(asyncio.gather(*tasks), 30)
    result = {"trips": trips, "seconds": took_s, "asks_per_s": trips / took_s}
    print(json.dumps(result | {"broker_cpu_s": broker_s, "client_cpu_s": own_s}), flush=True)


def processor_s(pid: int) -> float:
    """Processor time of a process, its threads included, in steps of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
