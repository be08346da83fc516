"""The dragoman side of the SDK measurement: an app with one echo job, and a client that asks it.

The worker is `dragoman worker bench.ask_dragoman:app`; the client `python -m bench.ask_dragoman IN_FLIGHT WARMUP SECONDS PID`.
Both find the broker by BENCH_BROKER.
"""

from __future__ import annotations

import os
import sys

import uvloop

from bench.ask_load import load
from dragoman import App

app = App(os.environ.get("BENCH_BROKER", "emqp://127.0.0.1"))


@app.job(queue="bench")
async def echo(number: int) -> int:
    return number


async def client(in_flight: int, warmup_s: float, seconds: float, broker_pid: int) -> None:
    async def ask(number: int) -> int:
        return await echo.ask(number=number)

    await load(ask, in_flight, warmup_s, seconds, broker_pid)


if __name__ == "__main__":
    uvloop.run(client(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])))
