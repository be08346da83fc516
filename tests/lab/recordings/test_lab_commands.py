"""`dragoman tap` and `dragoman replay-peer` against broker processes and real sockets."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from tests.cli.broker import BrokerProcess, Commands, wait_for

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("lab") / "data")
    yield process
    process.end()


@pytest.fixture
def dragoman(broker: BrokerProcess, capfd: pytest.CaptureFixture[str]) -> Commands:
    return Commands(broker.data, capfd)


def address(broker: BrokerProcess, listener: str) -> str:
    return str(json.loads((broker.data / "broker.json").read_text())["listeners"][listener])


class Tap:
    """`dragoman tap` in a process of its own, watching when the block begins."""

    def __init__(self, broker: BrokerProcess, *flags: str) -> None:
        command = [sys.executable, "-m", "dragoman", "tap", "--data", str(broker.data), *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.first = self.process.stdout.readline()
        assert "watching" in self.first, self.process.communicate()

    def end(self) -> str:
        self.process.send_signal(signal.SIGINT)
        return self.rest()

    def end_after_talk(self) -> str:
        """Once it has shown that client and worker are gone: a tap is a little behind what it shows."""
        assert self.process.stdout is not None
        shown = ""
        while shown.count("is gone") < 2:
            line = self.process.stdout.readline()
            assert line, f"it ended by itself after: {shown}"
            shown += line
        return shown + self.end()

    def rest(self) -> str:
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, err
        return out


def talk(broker: BrokerProcess, bodies: list[bytes]) -> None:
    """A plain worker and a client: each body is ordered and comes back."""
    context = zmq.Context.instance()
    with context.socket(zmq.DEALER) as worker, context.socket(zmq.DEALER) as client:
        worker.linger = client.linger = 0
        worker.connect(address(broker, "pingpong.worker"))
        worker.send_multipart([b"", b"READY"])
        assert hear(worker) == [b"", b"PONG"]
        client.connect(address(broker, "pingpong.client"))
        for body in bodies:
            client.send_multipart([b"", body])
            while (job := hear(worker)) == [b"", b"PONG"]:
                pass
            worker.send_multipart([b"", b"made of " + job[1]])
            assert hear(client) == [b"", b"made of " + body]
    wait_for("its end", lambda: not workers(broker))


def hear(peer: Any) -> list[bytes]:
    assert peer.poll(60_000), "nothing came"
    frames: list[bytes] = peer.recv_multipart()
    return frames


def workers(broker: BrokerProcess) -> int:
    from dragoman.cli.admin_client import ask

    return int(ask(broker.data, "counters")["workers"])


def test_a_tap_shows_traffic_as_readable_text(broker: BrokerProcess) -> None:
    tap = Tap(broker)
    talk(broker, [b"hello", b"\x00\xff", b"x" * 1000])
    lines = tap.end_after_talk().splitlines()
    assert any("pingpong.worker" in line and "a DEALER is here" in line for line in lines)
    assert any("▶" in line and line.endswith('"" · READY') for line in lines)
    assert any("◀" in line and line.endswith('"" · PONG') for line in lines)
    assert any("pingpong.client" in line and line.endswith('"" · hello') for line in lines)
    assert any(line.endswith('"" · 0x00ff') for line in lines)
    assert any("(1000 bytes)" in line for line in lines)
    assert any("is gone" in line for line in lines)


def test_a_tap_can_be_narrowed_to_a_listener_and_a_word(broker: BrokerProcess) -> None:
    tap = Tap(broker, "--listener", "pingpong.worker", "--command", "ready", "--json", "--count", "1")
    talk(broker, [b"hello"])
    (event,) = [json.loads(line) for line in tap.rest().splitlines()]
    assert event["listener"] == "pingpong.worker"
    assert event["frames"] == ["", b"READY".hex()]


def test_a_tap_can_be_narrowed_to_a_peer(broker: BrokerProcess) -> None:
    tap = Tap(broker, "--peer", "192.0.2.1")
    talk(broker, [b"hello"])
    assert tap.end() == ""


def test_a_tap_on_a_listener_that_is_not_there_is_refused(dragoman: Commands) -> None:
    answer = dragoman("tap", "--listener", "nowhere", "--seconds", "5")
    assert answer.code == 4
    assert "nowhere" in answer.err


def test_what_a_tap_recorded_replays_against_a_fresh_broker_without_divergence(
    broker: BrokerProcess, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recording = tmp_path / "recording.jsonl"
    tap = Tap(broker, "--record", str(recording))
    talk(broker, [b"one", b"two", b"three"])
    tap.end_after_talk()
    fresh = BrokerProcess(tmp_path / "fresh")
    try:
        found = Commands(fresh.data, capfd)("replay-peer", str(recording), "--speed", "0", "--json")
        assert json.loads(found.out)["divergence"] is None, found.out
        assert json.loads(found.out)["matched"] == 6
        assert found.code == 0
    finally:
        fresh.end()


def test_a_recording_that_the_broker_does_not_follow_ends_at_the_first_divergence(
    broker: BrokerProcess, dragoman: Commands, tmp_path: Path
) -> None:
    recording = tmp_path / "recording.jsonl"
    tap = Tap(broker, "--record", str(recording))
    talk(broker, [b"one", b"two"])
    tap.end_after_talk()
    text = recording.read_text()
    recording.write_text(text.replace(b"made of one".hex(), b"made of gold".hex(), 1))
    lines = text.splitlines()
    changed = next(number for number, line in enumerate(lines, 1) if b"made of one".hex() in line)
    answer = dragoman("replay-peer", str(recording), "--speed", "0", "--patience", "1")
    assert answer.code == 1
    expected = next(
        number
        for number, line in enumerate(lines, 1)
        if number > changed and b"made of one".hex() in line and '"to": "peer"' in line
    )
    assert f"divergence at line {expected}" in answer.out
    assert "made of gold" in answer.out
    assert "made of one" in answer.out


@pytest.mark.parametrize("name", ["strings", "json"])
def test_the_originals_pingpong_peers_find_nothing_amiss(dragoman: Commands, name: str) -> None:
    file = str(GOLDEN / "pingpong" / f"{name}.jsonl")
    answer = dragoman("replay-peer", file, "--dialect", "pingpong", "--speed", "5")
    assert answer.code == 0, answer.out
    assert "no divergence" in answer.out


def test_a_package_worker_diverges_where_the_page_says_it_does(dragoman: Commands) -> None:
    """Its first job comes plain, for it has only said READY."""
    file = str(GOLDEN / "pingpong" / "package.jsonl")
    answer = dragoman("replay-peer", file, "--dialect", "pingpong", "--speed", "5")
    assert answer.code == 1
    assert "line 10 " in answer.out


def test_a_package_worker_whose_form_is_fixed_finds_nothing_amiss(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    fixed = BrokerProcess(tmp_path / "data", "--set=pingpong.form=package")
    try:
        file = str(GOLDEN / "pingpong" / "package.jsonl")
        answer = Commands(fixed.data, capfd)("replay-peer", file, "--dialect", "pingpong", "--speed", "5")
        assert answer.code == 0, answer.out
    finally:
        fixed.end()


def test_a_port_of_a_recording_that_is_no_listener_must_be_named(dragoman: Commands) -> None:
    answer = dragoman("replay-peer", str(GOLDEN / "pingpong" / "strings.jsonl"))
    assert answer.code == 1
    assert "--dialect" in answer.err


def joined(broker: BrokerProcess) -> zmq.Socket[bytes]:
    """A pingpong worker of libzmq with an identity, taken on by the broker."""
    worker = zmq.Context.instance().socket(zmq.DEALER)
    worker.linger = 0
    worker.routing_id = b"unwanted"
    worker.connect(address(broker, "pingpong.worker"))
    worker.send_multipart([b"", b"READY"])
    assert hear(worker) == [b"", b"PONG"]
    return worker


def test_a_worker_can_be_dismissed_and_admitted(broker: BrokerProcess, dragoman: Commands) -> None:
    with joined(broker):
        answer = dragoman("workers", "dismiss", "unwanted")
        assert answer.code == 0, answer.err
        assert "dismissed" in answer.out
        assert "dismissed" in dragoman("workers").out
        assert dragoman("dismiss", "unwanted").code == 0
    wait_for("its departure", lambda: "kept out until" in dragoman("workers").out)
    with joined(broker):
        assert "dismissed" in dragoman("workers").out
        assert dragoman("workers", "admit", "unwanted").code == 0
        assert "dismissed" not in dragoman("workers").out
    assert dragoman("workers", "dismiss", "nobody").code == 4
    assert dragoman("workers", "admit", "nobody").code == 4
    assert dragoman("workers", "admit").code == 2
    assert dragoman("workers", "admit", "--all").out == "0 workers admitted\n"
