"""What it costs the broker to be looked at: one broker with its page's process beside it, while the page is open in a browser's stead and metrics
are scraped each second, and while neither is."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console

from bench import pairs
from bench.bars import Bar
from bench.contenders import Running, start_broker
from bench.dialogues import EMQP
from bench.endpoint import Endpoint
from bench.pairs import WITH, WITHOUT, Pairs
from bench.rounds import Plan

SECONDS = 5.0
SCRAPE_S = 1.0
ANSWER_S = 30.0
LIMIT = 0.05


def run(
    endpoint: Endpoint, data_root: Path, rounds: int, said: Callable[[str], None], failed: Callable[[str], None]
) -> Pairs:
    plan = Plan(endpoint, data_root, EMQP, ("os",), seconds=SECONDS, warmup_s=1.0)
    broker = start_broker("os", data_root, has_page=True, is_indexed=True)
    try:
        assert broker.data is not None
        address = json.loads((broker.data / "broker.json").read_text())["listeners"]["http"]
        begins = {WITHOUT: partial(nullcontext, broker), WITH: partial(_watched, broker, urlsplit(address).netloc)}
        return pairs.run("watched", begins, plan, rounds, said, failed)
    finally:
        broker.stop()


def show(console: Console, measured: Pairs) -> None:
    if measured.cost is not None:
        console.print(f"looked at: {measured.cost:+.1%} of its pace, median of {len(measured.pairs)} rounds")


def bars(measured: Pairs) -> list[Bar]:
    return [Bar("os with the page open and metrics scraped: pace lost", measured.cost, LIMIT, False, "of 1")]


@contextmanager
def _watched(broker: Running, host: str) -> Iterator[Running]:
    over = threading.Event()
    watchers = [threading.Thread(target=look, args=(host, over)) for look in (_follow, _scrape)]
    for watcher in watchers:
        watcher.start()
    try:
        yield broker
    finally:
        over.set()
        for watcher in watchers:
            watcher.join()


def _follow(host: str, over: threading.Event) -> None:
    """The overview's stream, read as a browser does: something comes every second."""
    connection = http.client.HTTPConnection(host, timeout=ANSWER_S)
    with suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/stream?at=/")
        answer = connection.getresponse()
        while not over.is_set() and answer.read1():
            pass
    connection.close()


def _scrape(host: str, over: threading.Event) -> None:
    while not over.wait(SCRAPE_S):
        connection = http.client.HTTPConnection(host, timeout=ANSWER_S)
        with suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/metrics")
            connection.getresponse().read()
        connection.close()
