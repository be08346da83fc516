"""The page's process beside the broker: it keeps the port over its deaths and never outlives its broker."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import psutil
import pytest

from dragoman.client.app import App
from dragoman.model.buckets import between, bucket_of
from dragoman.web.samples.samples import quantiles
from dragoman.web.stream import STREAMS_MAX
from tests.cli.broker import FakeWorker
from tests.runtime.daemon import Daemon
from tests.waiting import wait_for
from tests.web.conftest import NewBroker
from tests.web.visitor import Visitor

PAGE_S = 60.0
pytestmark = pytest.mark.timeout(180)


def page_of(broker: Daemon) -> psutil.Process:
    def is_page(process: psutil.Process) -> bool:
        try:
            return "dragoman.web.process" in process.cmdline()
        except psutil.Error:  # killed a moment ago, and not yet buried
            return False

    def find() -> list[psutil.Process]:
        return [process for process in psutil.Process(broker.pid).children() if is_page(process)]

    found: list[psutil.Process] = wait_for("the page's process", find, PAGE_S)
    return found[0]


def is_up(broker: Daemon) -> bool:
    try:
        return Visitor(broker).get("/").status == 200
    except OSError:
        return False


def test_the_address_is_shown_by_card_status_and_log(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    host, port = broker.place("http")
    address = f"http://{host}:{port}"
    assert broker.card["listeners"]["http"] == address
    assert broker.ask("status")["listeners"]["http"] == address
    assert broker.ask("status")["web"]["address"] == address
    assert {"listener": "http", "address": address}.items() <= broker.lines("listening")[-1].items()


def test_a_killed_page_is_replaced_at_the_same_port_and_nobody_is_refused_meanwhile(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    assert is_up(broker)
    first = page_of(broker)
    os.kill(first.pid, signal.SIGKILL)
    assert Visitor(broker).get("/").status == 200, "it waits for the next one instead of being refused"
    assert page_of(broker).pid != first.pid


def test_forms_of_an_open_page_outlive_the_pages_process(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    with App(f"file:{broker.data}") as app:
        app.send_sync("mail", b"x")
    visitor = Visitor(broker)
    token = visitor.csrf_token()
    os.kill(page_of(broker).pid, signal.SIGKILL)
    assert visitor.post("/do/pause?queue=mail", {"csrf_token": token}).status == 303


def test_the_page_ends_with_a_broker_that_was_killed(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    assert is_up(broker)
    page = page_of(broker)
    broker.process.kill_alone()
    page.wait(PAGE_S)


def test_a_broker_ends_in_good_order_while_somebody_watches(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    host, port = broker.place("http")
    Visitor(broker).page("/")
    with socket.create_connection((host, port), PAGE_S) as watcher:
        watcher.sendall(b"GET /stream?at=/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in watcher.recv(4096)
        page = page_of(broker)
        assert broker.stop() == 0
    page.wait(PAGE_S)


def test_the_number_of_pages_that_are_kept_up_to_date_is_limited(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    place = broker.place("http")
    Visitor(broker).page("/")
    watchers = []

    def status_line() -> bytes:
        watcher = socket.create_connection(place, PAGE_S)
        watchers.append(watcher)
        watcher.sendall(b"GET /stream?at=/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return watcher.recv(4096).partition(b"\r\n")[0]

    def leave() -> None:
        while watchers:
            watchers.pop().close()

    try:
        assert {status_line() for _ in range(STREAMS_MAX)} == {b"HTTP/1.1 200 OK"}
        assert status_line() == b"HTTP/1.1 503 Service Unavailable"
        leave()
        wait_for("room for another", lambda: b"200" in status_line(), PAGE_S)
    finally:
        leave()


def test_a_page_that_is_off_has_no_process(new_broker: NewBroker) -> None:
    broker = new_broker(listen={"emqp.client": "tcp://127.0.0.1:0", "http": "off"}).start()
    assert "http" not in broker.card["listeners"]
    assert broker.ask("status")["web"] is None
    assert not [child for child in psutil.Process(broker.pid).children() if "dragoman.web.process" in child.cmdline()]


def test_a_taken_port_that_was_asked_for_is_fatal(new_broker: NewBroker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        broker = new_broker(listen={"emqp.client": "tcp://127.0.0.1:0", "http": address})
        broker.launch()
        assert broker.exit_code() == 1
        assert "listener http cannot bind" in broker.process.log()


def test_the_broker_itself_imports_no_web_framework(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    assert is_up(broker)
    maps = Path(f"/proc/{broker.pid}/maps").read_text()
    assert "markupsafe" not in maps
    assert "markupsafe" in Path(f"/proc/{page_of(broker).pid}/maps").read_text()


def test_quantiles_are_read_within_a_sixteenth() -> None:
    counts: dict[int, int] = {}
    for micros in range(1, 1001):
        bucket = int(bucket_of(micros * 1000))
        counts[bucket] = counts.get(bucket, 0) + 1
    found = quantiles(counts)
    for value_ns, exact_ns in ((found.p50_ns, 500_000), (found.p95_ns, 950_000), (found.p99_ns, 990_000)):
        assert value_ns is not None
        assert abs(value_ns - exact_ns) <= exact_ns / 8


def test_counts_that_shrank_are_another_brokers() -> None:
    assert between({1: 5}, {1: 8, 2: 1}) == {1: 3, 2: 1}
    assert between({1: 5}, {1: 2}) == {1: 2}


def test_a_life_across_attempts_and_a_restart_is_one_story(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    with App(f"file:{broker.data}") as app:
        first = FakeWorker(broker.data, b"work", None)
        handle = app.send_sync("work", b"x", ["retry-count:5"])
        wait_for("the lease", lambda: broker.ask("message", id=handle.id)["state"] == "leased")
    broker.kill()
    first.vanish()
    broker.start()
    second = FakeWorker(broker.data, b"work", lambda body: b"done")
    try:
        visitor = Visitor(broker)
        wait_for("the end", lambda: "settled: done" in visitor.page(f"/message/{handle.id}"), PAGE_S)
        html = visitor.page(f"/message/{handle.id}")
        assert "the broker started again (boot 2): the lease ended" in html
        assert "attempt 1" in html
        assert "attempt 2" in html
        assert html.count("what the worker receives") == 1, "no fact says what the worker spoke that a restart cut off"
        assert "Other messages with this id" not in html
    finally:
        second.vanish()


def test_a_broker_that_keeps_nothing_still_shows_what_is_open(new_broker: NewBroker) -> None:
    broker = new_broker(durability="memory").start()
    with App(f"file:{broker.data}") as app:
        handle = app.send_sync("work", b"a body")
    html = Visitor(broker).page(f"/message/{handle.id}?body=1")
    assert "durability memory stores none" in html
    assert "could not be read: there is none; durability memory stores none" in Visitor(broker).page(
        "/search?state=done"
    )
    assert "a body" in html
