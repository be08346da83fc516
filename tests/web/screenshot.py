"""python -m tests.web.screenshot docs/images/overview.png

Takes a picture of the web page of a real broker: the hour before the picture is made up, and clients and workers of all five dialects are at
work while it is taken.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import tempfile
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.client.app import App
from dragoman.client.job import Job
from dragoman.client.worker import WorkerSettings
from dragoman.client.worker.worker import Worker
from dragoman.model.units import SECOND_NS
from dragoman.web.samples.history import SLOT_NS, SLOTS_KEPT, Point
from dragoman.web.samples.sample_file import Checkpoint, SampleFile
from dragoman.web.samples.samples import Quantiles, Sample, Totals
from tests.runtime.daemon import Daemon
from tests.web.browser import Browser, chromium
from tests.web.conftest import daemon_with_page

HOUR_S = 3600.0
RATE = 28.0  # about as many a second as the traffic below makes
WATCHED_S = 75.0  # fills "last minute" and the lines of the queues
WIDTH, HEIGHT = 1280, 1130
PAUSE_S = 0.5  # of a client between two jobs

Work = Job[[float], float, Coroutine[Any, Any, float]]


@dataclass(frozen=True)
class Traffic:
    """One queue: who asks, who works, and how long a job takes."""

    queue: str
    client: str
    worker: str
    clients: int
    slots: int
    work_s: float

    def job(self, app: App) -> Work:
        @app.job(queue=self.queue)
        async def work(work_s: float) -> float:
            await asyncio.sleep(work_s)
            return work_s

        return work

    async def ask(self, app: App) -> None:
        """One client, for ever."""
        job = self.job(app)
        while True:
            await job.ask(self.work_s)
            await asyncio.sleep(PAUSE_S)


TRAFFIC = (
    Traffic("orders", "ebus", "emqp", 4, 3, 0.2),
    Traffic("emails", "emqp", "rq", 3, 2, 0.3),
    Traffic("thumbnails", "rq", "emqp", 3, 1, 0.4),
    Traffic("payments", "ebus", "scale0", 2, 2, 0.3),
    Traffic("search.index", "scale0", "scale0", 2, 2, 0.2),
    Traffic("notify.push", "rq", "ebus", 2, 4, 0.1),
    Traffic("pingpong", "pingpong", "pingpong", 2, 2, 0.05),
    Traffic("invoices", "emqp", "emqp", 3, 1, 0.4),
    Traffic("reports", "emqp", "scale0", 1, 1, 0.6),
    Traffic("audit.log", "scale0", "emqp", 1, 1, 0.1),
)


def save_last_hour(data: Path) -> None:
    """What a page would have saved that saw a boot before the broker's first."""
    chance = random.Random(12)
    now_ns = time.time_ns()
    slots: dict[int, Point] = {}
    for slot in range(now_ns // SLOT_NS - SLOTS_KEPT, now_ns // SLOT_NS):
        rate = RATE * (1 + 0.3 * math.sin(slot / 45)) * chance.uniform(0.9, 1.1)
        wait_ns = int(rate**2 * chance.uniform(0.5, 1.5) * SECOND_NS / 20_000)
        waits = Quantiles(wait_ns, 3 * wait_ns, 5 * wait_ns)
        totals = Quantiles(*(one_ns + SECOND_NS // 4 for one_ns in (wait_ns, 3 * wait_ns, 5 * wait_ns)))
        settled_rate = rate * chance.uniform(0.95, 1.05)
        slots[slot] = Point((slot + 1) * SLOT_NS, rate, settled_rate, int(rate / 4), int(rate / 3), waits, totals)
    last = Sample(now_ns, 0, now_ns, 0, 0, 0, 0, [], [], [], [], 0, [])
    data.mkdir(parents=True)
    SampleFile(data, HOUR_S).add(last, lambda: Checkpoint(slots, None, [], {}, Totals()))


async def take_picture(broker: Daemon, browser: Browser, picture: Path) -> None:
    """Keep every queue busy while somebody looks at the page, then save what it shows."""
    async with AsyncExitStack() as stack:
        clients = []
        for traffic in TRAFFIC:
            workers, askers = (App(f"file:{broker.data}?dialect={name}") for name in (traffic.worker, traffic.client))
            await stack.enter_async_context(workers)
            await stack.enter_async_context(askers)
            traffic.job(workers)
            worker = Worker(workers, WorkerSettings(slots=traffic.slots, drain_s=2.0))
            worker.start()
            stack.push_async_callback(worker.stop)
            clients += [asyncio.create_task(traffic.ask(askers)) for _ in range(traffic.clients)]
        await asyncio.wait(clients, timeout=WATCHED_S, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.to_thread(browser.driver.save_screenshot, str(picture))
        for client in clients:
            client.cancel()
        for outcome in await asyncio.gather(*clients, return_exceptions=True):
            assert isinstance(outcome, asyncio.CancelledError), outcome


def main() -> None:
    parser = argparse.ArgumentParser(description="Take a picture of the web page of a broker at work.")
    parser.add_argument("picture", type=Path)
    picture = parser.parse_args().picture
    picture.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dragoman-screenshot-") as directory:
        data = Path(directory, "data")
        save_last_hour(data)
        broker = daemon_with_page(data).start()
        host, port = broker.place("http")
        try:
            with chromium(f"http://{host}:{port}", Path(directory)) as browser:
                browser.resize(WIDTH, HEIGHT)
                browser.colours("light")
                browser.open("/")
                asyncio.run(take_picture(broker, browser, picture))
        finally:
            broker.kill()
    print(f"{picture}: {picture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
