"""What test_lines.py runs, each in a program that knows the dialect: `python -m tests.dialects.example.plays NAME …`."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pytest

from dragoman import App
from dragoman.cli.admin_client import ask
from dragoman.cli.root import run
from dragoman.cli.tap import line_of
from dragoman.client.address import host_port_of, parse
from dragoman.client.worker import WorkerSettings
from dragoman.dialects.description import DialectDescription, ListenerDescription
from dragoman.dialects.registry import DESCRIPTIONS, register
from dragoman.errors import NotInDialect
from dragoman.limits import PLAIN_UNFINISHED_SIZE_MAX
from dragoman.model.enums import DIALECT_NAMES
from dragoman.testing.broker import RunningBroker, running_worker
from dragoman_lab.sim.world import run_seed
from tests.client import errands
from tests.docs.reference_pages import PAGES
from tests.runtime.daemon import Daemon
from tests.web.conftest import daemon_with_page
from tests.web.visitor import Visitor

LINES = "lines"
OTHERS = [described.name for described in DESCRIPTIONS if described.name != LINES]
SEEDS = range(1, 9)


def sum_app(url: str, dialect: str, queue: str) -> tuple[App, Any]:
    """An App with a job that tells who did it."""
    app = App(url, answer_s=20.0)

    @app.job(queue=queue)
    def add(one: int, other: int) -> list[int | str]:
        return [one + other, dialect]

    return app, add


@contextmanager
def working(data: Path, dialect: str, queue: str) -> Iterator[None]:
    app, _ = sum_app(f"file:{data}?dialect={dialect}", dialect, queue)
    with running_worker(app, WorkerSettings(slots=2)):
        yield


def answer(url: str, queue: str) -> Any:
    app, add = sum_app(url, "", queue)
    with app:
        return add.ask_sync(2, 3)


def by_hand(data: Path) -> None:
    """A person with telnet is client and worker."""
    with RunningBroker(data) as broker:
        place = host_port_of(broker.listeners[LINES])
        assert place is not None
        with socket.create_connection(place, 10) as peer, peer.makefile("rwb", buffering=0) as file:
            assert file.readline() == b"HELLO\n"
            file.write(b"GET mail\nPUT mail hello 100%25 world\n")
            word, number, _ = file.readline().split(b" ", 2)
            assert word == b"ID"
            assert file.readline() == b"JOB %s hello 100%%25 world\n" % number
            file.write(b"OK 0000000000000000 to nothing\nOK %s good\n" % number)
            assert file.readline() == b"OK %s good\n" % number
            file.write(b"NONSENSE\n")
            assert file.read() == b""
        with socket.create_connection(place, 10) as endless:
            with suppress(ConnectionError):
                endless.sendall(b"PUT mail " + b"x" * (2 * PLAIN_UNFINISHED_SIZE_MAX))
            with suppress(ConnectionError):
                assert endless.makefile("rb").read() == b"HELLO\n", "it was cut off"
        with socket.create_connection(place, 10) as browser:
            browser.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert b"HTTP is not spoken" in browser.makefile("rb").read()


def sdk(data: Path) -> None:
    """By its own scheme, with what it has and without what it has not."""
    with RunningBroker(data) as broker, working(data, LINES, "sums"):
        url = broker.listeners[LINES].replace("tcp:", "lines:")
        assert answer(url, "sums") == [5, LINES]
        with App(url, answer_s=20.0) as app:
            assert app.send_sync("left", b"any\nbytes %\xff").id
            with pytest.raises(NotInDialect, match="lines has no `retries`"):
                app.job(queue="sums", retries=3)(print).ask_sync(1)


def crossings(data: Path) -> None:
    with RunningBroker(data):
        for other in OTHERS:
            for client, worker in ((other, LINES), (LINES, other), (LINES, LINES)):
                queue = "pingpong" if "pingpong" in (client, worker) else f"{client}-{worker}"
                with working(data, worker, queue):
                    assert answer(f"file:{data}?dialect={client}", queue) == [5, worker], (client, worker)
        found = {(one["client"], one["worker"]) for one in ask(data, "tallies")["crossings"]}
        assert found >= {(LINES, other) for other in OTHERS} | {(other, LINES) for other in OTHERS}


def restart(data: Path) -> None:
    """A message is kept under its dialect's number, and its client's connection is gone when it is answered."""
    with RunningBroker(data, "os") as broker, App(broker.listeners[LINES].replace("tcp:", "lines:")) as app:
        app.send_sync("sums", b"kept")
    with RunningBroker(data, "os"):
        (message,) = said("find", "--queue", "sums", "--data", str(data), "--json")["messages"]
        assert message["dialect"] == LINES
        with working(data, "emqp", "sums"):
            pass


def reference_page() -> None:
    for lines in PAGES["crossings.md"].values():
        print("\n".join(lines()))


def web_page(data: Path) -> None:
    broker = daemon_with_page(data / "data").start()
    try:
        with working(broker.data, "emqp", "sums"):
            assert answer(f"file:{broker.data}?dialect=lines", "sums") == [5, "emqp"]
        page = Visitor(broker).page("/crossings")
        assert page.count(f">{LINES}<") >= 2, page
        (message,) = said("find", "--queue", "sums", "--data", str(broker.data), "--json")["messages"]
        assert "PUT" in Visitor(broker).page(f"/message/{message['id']}")
    finally:
        broker.kill()


def simulator() -> None:
    tally: Counter[str] = Counter()
    for seed in SEEDS:
        verdict = run_seed(seed)
        assert not verdict.failure, verdict.failure
        tally += verdict.tally
    assert [other for other in OTHERS if tally[f"crossed {LINES} to {other}"]]
    assert [other for other in OTHERS if tally[f"crossed {other} to {LINES}"]]
    assert tally[f"crossed {LINES} to {LINES}"]


def said(*command: str) -> Any:
    """What a command prints as JSON."""
    with redirect_stdout(io.StringIO()) as out:
        assert run(list(command)) == 0, out.getvalue()
    return json.loads(out.getvalue())


def command_line(data: Path) -> None:
    """A broker process; `call` and `send` by address, `workers`, `tap` and `explain` by name."""
    broker = Daemon(data / "data").start()
    url = f"file:{broker.data}?dialect=lines"
    data_option = ("--data", str(broker.data))
    try:
        errands.app.address = parse(url)
        with running_worker(errands.app, WorkerSettings(slots=2)):
            (worker,) = said("workers", "--json", *data_option)["workers"]
            assert worker["dialect"] == LINES
            job = ("--job", "tests.client.errands:add")
            assert said("call", "default", "[1, 5]", *job, "--url", url, "--json")["value"] == 6
        said("send", "sums", '"later"', "--url", url, "--json")
        command = [sys.executable, "-m", "dragoman", "find", "--dialect", LINES, "--queue", "sums", *data_option]
        assert LINES in subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert run(["tap", "--listener", LINES, "--seconds", "0.5", *data_option]) == 0
        said_now = {"kind": "said", "t": 0.0, "listener": LINES, "peer": "", "to": "broker", "sizes": [9]}
        assert line_of(said_now | {"frames": [b"PUT q a\nGET q\n".hex()]}).endswith("▶  PUT q a · GET q")
    finally:
        broker.kill()


def clash(what: str) -> None:
    number = DESCRIPTIONS[0].number if what == "number" else 21
    listener_no = DESCRIPTIONS[0].listeners[0].number if what == "listener" else 101
    name = {"name": DESCRIPTIONS[0].name, "reserved": "journal"}.get(what, "other")
    listeners = [ListenerDescription(f"{name}.client", listener_no, 7071, "")]
    with pytest.raises(ValueError, match=r"same|two|cannot|something else"):
        register(DialectDescription(name, number, "", listeners, [], []))
    assert "other" not in DIALECT_NAMES, "nothing of it stays"


PLAYS: dict[str, Callable[..., None]] = {
    play.__name__: play
    for play in (by_hand, sdk, crossings, restart, reference_page, web_page, simulator, command_line)
}

if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    if name == "clash":
        clash(*arguments)
    else:
        PLAYS[name](*map(Path, arguments))
