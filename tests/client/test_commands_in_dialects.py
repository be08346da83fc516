"""`dragoman send`, `call`, `publish`, `subscribe` and `bench` with an address of another dialect."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

from dragoman.cli.root import run
from dragoman.client import address
from dragoman.client.worker import WorkerSettings
from dragoman.testing.broker import running_worker
from tests.client import errands as e
from tests.runtime.daemon import Daemon

OTHERS = ("rq", "ebus", "scale0", "pingpong")
ADD = ("--job", "tests.client.errands:add")


class Shell:
    """Commands against one broker in one dialect."""

    def __init__(self, five: Daemon, dialect: str, capfd: pytest.CaptureFixture[str]) -> None:
        self.url = f"file:{five.data}?dialect={dialect}"
        self.queue = "pingpong" if dialect == "pingpong" else "default"
        self._capfd = capfd

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, stdout, stderr."""
        self._capfd.readouterr()
        code = run([*arguments, "--url", self.url])
        return code, *self._capfd.readouterr()


@pytest.fixture(params=OTHERS)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shell(five: Daemon, dialect: str, capfd: pytest.CaptureFixture[str]) -> Shell:
    return Shell(five, dialect, capfd)


@pytest.fixture
def worker(shell: Shell) -> Iterator[None]:
    e.app.address = address.parse(shell.url)
    with running_worker(e.app, WorkerSettings(slots=2)):
        yield


def test_call_prints_the_answer_and_a_failure_exits_with_1(shell: Shell, worker: None) -> None:
    assert shell("call", shell.queue, "[1, 5]", *ADD)[:2] == (0, "6\n")
    code, out, err = shell("call", shell.queue, '["no tea"]', "--job", "tests.client.errands:fails", "--json")
    assert (code, out) == (1, "")
    assert "ValueError" in json.loads(err)["error"]["message"]


def test_send_wants_a_dialect_that_says_kept(shell: Shell, dialect: str, worker: None) -> None:
    code, out, err = shell("send", shell.queue, "[1]", *ADD)
    if dialect == "rq":
        assert code == 0
        assert len(out.strip()) == 36
    else:
        assert (code, out) == (1, "")
        assert f"{dialect} has no word that a job is kept" in err
        assert "NOT_IN_DIALECT" in err


def test_an_option_without_a_field_in_the_dialect_is_refused(shell: Shell, dialect: str) -> None:
    for option in (("--priority", "3"), ("--header", "x:1"), ("--dedupe", "k"), ("--guarantee",)):
        code, _, err = shell("call", shell.queue, "x", *option)
        assert code == 1
        assert f"{dialect} has no" in err


@pytest.mark.parametrize("dialect", ["rq", "ebus"])
def test_subscribe_prints_what_publish_says(shell: Shell, dialect: str) -> None:
    outcome: list[tuple[int, str, str]] = []
    topic = f"told-{dialect}"
    listener = threading.Thread(
        target=lambda: outcome.append(shell("subscribe", topic, "--count", "2", "--wait", "15", "--json"))
    )
    listener.start()
    while listener.is_alive():
        assert run(["publish", topic, "tea", "--url", shell.url]) == 0
        listener.join(0.05)
    code, out, _ = outcome[0]
    assert code == 0
    assert [json.loads(line) for line in out.splitlines()] == [{"topic": topic, "body": "tea"}] * 2


@pytest.mark.parametrize("dialect", ["rq"])
def test_a_subscription_that_hears_too_little_exits_with_1(shell: Shell) -> None:
    assert shell("subscribe", "nobody-says-it", "--count", "1", "--wait", "0.1")[0] == 1


@pytest.mark.parametrize("dialect", ["scale0"])
def test_a_dialect_without_news_says_which_has_it(shell: Shell) -> None:
    for command in (("publish", "t", "x"), ("subscribe", "t")):
        code, _, err = shell(*command)
        assert code == 1
        assert "use rq://… or ebus://… or emqp://…" in err


def test_a_broker_that_is_away_exits_as_for_emqp(capfd: pytest.CaptureFixture[str]) -> None:
    codes = {run(["call", "q", "x", "--wait", "0.3", "--url", f"{name}://127.0.0.1:9"]) for name in ("rq", "ebus")}
    codes.add(run(["publish", "t", "x", "--url", "rq://127.0.0.1:9"]))
    codes.add(run(["call", "q", "x", "--url", "emqp://127.0.0.1:9"]))
    capfd.readouterr()
    assert codes == {3}


def test_bench_measures_round_trips_in_any_dialect(shell: Shell) -> None:
    code, out, err = shell("bench", "--seconds", "0.1", "--in-flight", "5", "--json")
    assert code == 0, err
    assert json.loads(out)["round_trips"] >= 5


def test_an_option_without_a_meaning_is_a_wrong_use(shell: Shell) -> None:
    code, _, err = shell("call", shell.queue, "x", "--expires", "-1")
    assert code == 2
    assert "expires_s wants seconds, not -1.0" in err
