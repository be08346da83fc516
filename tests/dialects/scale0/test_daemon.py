"""Scale0 at a running broker: its own process, libzmq's sockets, files, signals."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from dragoman.dialects.scale0.configuration.notations import parse, write
from tests.runtime.daemon import Daemon
from tests.waiting import wait_for

WAIT_S = 60.0
CONFIGURATION = """\
broker
    identity = {name}
worker
    identity = w1
    services = mail
"""


class Socket:
    """A libzmq socket that speaks Scale0; nothing of dragoman is in it."""

    def __init__(self, broker: Daemon, listener: str, kind: int = zmq.DEALER, identity: bytes = b"") -> None:
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(kind)
        self.socket.linger = 0
        if identity:
            self.socket.routing_id = identity
        self.socket.connect(broker.address(listener))

    def say(self, *frames: bytes) -> None:
        self.socket.send_multipart(frames)

    def send(self, command: str, *body: bytes, **header: Any) -> None:
        self.say(command.encode(), json.dumps(header).encode(), *body)

    def hear(self, wait_s: float = WAIT_S) -> list[bytes]:
        assert self.socket.poll(int(wait_s * 1000)), f"nothing came within {wait_s:g} s"
        return self.socket.recv_multipart()

    def hear_word(self, command: str) -> tuple[dict[str, Any], bytes]:
        """The next message of one command; others are passed over."""
        while True:
            frames = self.hear()
            if frames[0].decode() == command:
                return json.loads(frames[1]), frames[2] if len(frames) > 2 else b""

    def ping(self, *services: str, **header: Any) -> None:
        """Join the line, and know that we are in it."""
        self.send("PING", services=list(services), time=time.time(), **header)
        self.hear_word("PONG")

    def close(self) -> None:
        self.socket.close()


Connect = Callable[..., Socket]


@pytest.fixture
def connect() -> Iterator[Connect]:
    made: list[Socket] = []

    def make(*args: Any, **options: Any) -> Socket:
        made.append(Socket(*args, **options))
        return made[-1]

    yield make
    for peer in made:
        peer.close()


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    broker = Daemon(tmp_path_factory.mktemp("scale0") / "data").start()
    yield broker
    broker.kill()


def one_round_trip(client: Socket, worker: Socket, service: str) -> None:
    worker.ping(service)
    client.send("TASK", b"work", id=service, service=service)
    header, body = worker.hear_word("TASK")
    assert body == b"work"
    worker.send("TASKREPLY", b"done", id=header["id"])
    header, body = client.hear_word("TASKREPLY")
    assert (header["id"], body) == (service, b"done")


def test_dealers_talk_through_a_running_broker(common: Daemon, connect: Connect) -> None:
    one_round_trip(connect(common, "scale0.client"), connect(common, "scale0.worker"), "dealers")


def test_req_sockets_work_on_both_sides(common: Daemon, connect: Connect) -> None:
    client, worker = connect(common, "scale0.client", zmq.REQ), connect(common, "scale0.worker", zmq.REQ)
    client.send("TASK", b"work", id=1, service="req")
    while True:
        worker.send("PING", services=["req"], time=time.time())
        frames = worker.hear()
        if frames[0] == b"TASK":
            break
    worker.send("TASKREPLY", b"done", id=json.loads(frames[1])["id"])
    assert worker.hear()[0] == b"PONG"
    header, body = client.hear_word("TASKREPLY")
    assert (header["id"], body) == (1, b"done")


def test_the_configuration_of_a_worker_is_shown_to_the_operator(common: Daemon, connect: Connect) -> None:
    worker = connect(common, "scale0.worker")
    worker.send("CONNECT", config_type="JSON", services=["terms"])
    version = worker.hear_word("CONFIG")[0]["config_version"]
    worker.ping("terms", config_version=version)
    [listed] = common.ask("workers", queue="terms")["workers"]
    assert common.ask("worker", worker=listed["id"])["config_version"] == version


def test_the_newest_original_hears_its_broadcast(common: Daemon, connect: Connect) -> None:
    listener = connect(common, "scale0.publish", zmq.SUB)
    for topic in (b"PING", b"w-legacy"):
        listener.socket.subscribe(topic)
    assert listener.hear()[0] == b"PING"
    worker = connect(common, "scale0.worker", identity=b"w-legacy")
    worker.say(b"READY", b"test")
    worker.say(b"HEARTBEAT", b"12.5")
    heard: list[list[bytes]] = []
    while len(heard) < 2:
        frames = listener.hear()
        if frames[0] == b"w-legacy":
            heard.append(frames)
    assert heard == [[b"w-legacy", b"OK"], [b"w-legacy", b"HEARTBEAT", b"12.5"]]


NONSENSE = [
    pytest.param([b""], id="an empty frame"),
    pytest.param([b"PING"], id="a PING without its second frame"),
    pytest.param([b"PING", b""], id="a PING with an empty header"),
    pytest.param([b"PING", b"one two"], id="a PING of two words"),
    pytest.param([b"PING", b"\xff\xfe\x00"], id="a PING that is no text"),
    pytest.param([b"PING", b"tcp://h:1 a noon"], id="a PING whose time is no number"),
    pytest.param([b"READY"], id="a READY without services"),
    pytest.param([b"READY", b" "], id="a READY of blanks"),
    pytest.param([b"HEARTBEAT", b"now"], id="a HEARTBEAT whose time is no number"),
    pytest.param([b"TASK", b"{}", b"x"], id="a TASK for nobody"),
    pytest.param([b"TASKREPLY", b'{"id":"0"}', b"x"], id="a TASKREPLY to nothing"),
    pytest.param([b"TASK", b"{" * 50_000], id="a header of braces"),
    pytest.param([b"TASK", b'{"a":' + b"[" * 30_000], id="a header without an end"),
    pytest.param([b"X" * 70_000, b"{}"], id="a command of 70 kB"),
    pytest.param([b"CONNECT", b'{"config_type":["XML"]}'], id="a config_type that is a list"),
    pytest.param([b"PING"] * 60, id="sixty frames"),
]


@pytest.mark.parametrize("frames", NONSENSE)
def test_what_would_end_or_silence_the_original_harms_nobody(
    common: Daemon, connect: Connect, frames: list[bytes], request: pytest.FixtureRequest
) -> None:
    service = request.node.callspec.id
    client, worker = connect(common, "scale0.client"), connect(common, "scale0.worker")
    one_round_trip(client, worker, service)
    for listener in ("scale0.client", "scale0.worker"):
        rude = connect(common, listener)
        rude.say(*frames)
        rude.send("PING")
        rude.hear_word("PONG")  # it is still heard, and so is everybody else
    one_round_trip(client, worker, service)


def test_a_worker_killed_mid_job_leaves_it_to_another_within_a_second_of_backoff(
    common: Daemon, connect: Connect
) -> None:
    client, first = connect(common, "scale0.client"), connect(common, "scale0.worker")
    first.ping("killed")
    client.send("TASK", b"work", id=1, service="killed")
    first.hear_word("TASK")
    second = connect(common, "scale0.worker")
    second.ping("killed")
    first.close()
    header, _ = second.hear_word("TASK")
    second.send("TASKREPLY", b"done", id=header["id"])
    assert client.hear_word("TASKREPLY")[1] == b"done"


def test_a_task_survives_kill_9_of_the_broker(tmp_path: Path, connect: Connect) -> None:
    broker = Daemon(tmp_path / "data").start()
    try:
        client = connect(broker, "scale0.client", identity=b"steady")
        client.send("TASK", b"work", id="kept", service="mail")
        client.send("PING")
        client.hear_word("PONG")
        broker.kill()
        broker.start()
        worker = connect(broker, "scale0.worker")
        worker.ping("mail")
        header, body = worker.hear_word("TASK")
        assert body == b"work"
        worker.send("TASKREPLY", b"done", id=header["id"])
        header, body = client.hear_word("TASKREPLY")
        assert (header["id"], body) == ("kept", b"done")
    finally:
        broker.kill()


def test_a_req_worker_gets_a_large_task_that_is_on_disk_only(tmp_path: Path, connect: Connect) -> None:
    broker = Daemon(tmp_path / "data").start()
    try:
        body = bytes(range(256)) * 40_000
        connect(broker, "scale0.client", identity=b"client").send("TASK", body, id=1, service="mail")
        wait_for("the task", lambda: broker.ask("queues")["queues"], WAIT_S)
        broker.stop()
        broker.start()
        worker = connect(broker, "scale0.worker", zmq.REQ)
        answers: list[bytes] = []
        while answers[-1:] != [b"TASK"] and len(answers) < 3:
            worker.send("PING", services=["mail"])
            command, _, *rest = worker.hear()
            answers.append(command)
        assert answers[-1] == b"TASK"
        assert rest == [body]
    finally:
        broker.kill()


def test_an_edited_configuration_file_is_pushed_without_a_signal(tmp_path: Path, connect: Connect) -> None:
    file = tmp_path / "scale0.zpl"
    file.write_text(CONFIGURATION.format(name="one"))
    broker = Daemon(tmp_path / "data", f"scale0.config_file={file}").start()
    try:
        worker = connect(broker, "scale0.worker", identity=b"w1")
        worker.send("CONNECT", config_type="ZFL")
        assert parse(b"ZFL", worker.hear_word("CONFIG")[1]).text("broker") == "one"
        file.write_text(CONFIGURATION.format(name="number two"))
        assert parse(b"ZFL", worker.hear_word("CONFIG")[1]).text("broker") == "number two"
    finally:
        broker.kill()


@pytest.mark.parametrize(("suffix", "notation"), [("zpl", "ZFL"), ("xml", "XML"), ("json", "JSON")])
def test_an_edited_configuration_file_is_pushed_on_sighup(
    tmp_path: Path, connect: Connect, suffix: str, notation: str
) -> None:
    file = tmp_path / f"scale0.{suffix}"

    def edit(name: str) -> None:
        file.write_bytes(write(notation.encode(), parse(b"ZFL", CONFIGURATION.format(name=name).encode())))

    edit("one")
    broker = Daemon(tmp_path / "data", f"scale0.config_file={file}").start()
    try:
        worker = connect(broker, "scale0.worker", identity=b"w1")
        worker.send("CONNECT", config_type="ZFL")
        first, document = worker.hear_word("CONFIG")
        assert parse(b"ZFL", document).text("broker") == "one"
        edit("two")
        broker.send_signal(signal.SIGHUP)
        second, document = worker.hear_word("CONFIG")
        assert parse(b"ZFL", document).text("broker") == "two"
        assert first["config_version"] != second["config_version"]
        worker.send("PING", config_version=first["config_version"])
        assert worker.hear_word("ERROR")[0]["code"] == 426
        assert worker.hear()[0] == b"FORCENEGOTIATE"
        assert broker.wait_line("reloaded")["applied"] == ["scale0.config_file"]
        file.write_text("\tbroken")
        broker.send_signal(signal.SIGHUP)
        assert str(file) in broker.wait_line("reload failed, settings unchanged")["error"]
        worker.send("PING", config_version=second["config_version"])
        assert worker.hear()[0] == b"PONG"
    finally:
        broker.kill()


def test_a_broken_configuration_file_keeps_the_broker_from_starting(tmp_path: Path) -> None:
    file = tmp_path / "scale0.zpl"
    file.write_text("broker\n   identity = main\n")
    process = Daemon(tmp_path / "data", f"scale0.config_file={file}").launch()
    assert process.process.wait(WAIT_S) == 2
    assert f"{file}, line 2: indented by 3 spaces" in process.log()


def test_sigterm_sends_all_peers_to_another_broker(tmp_path: Path, connect: Connect) -> None:
    file = tmp_path / "fleet.zpl"
    file.write_text("broker\n    peers\n        broker = tcp://127.0.0.1:9\n")
    broker = Daemon(tmp_path / "data", f"scale0.config_file={file}", "scale0.look_s=0").start()
    try:
        worker = connect(broker, "scale0.worker")
        worker.ping("mail")
        broker.send_signal(signal.SIGTERM)
        assert worker.hear_word("ERROR")[0]["code"] == 301
        assert worker.hear_word("CHANGEBROKER")[0]["broker"] == "tcp://127.0.0.1:9"
    finally:
        broker.kill()


def test_needbroker_names_a_broker_that_answers_and_knows_its_load(tmp_path: Path, connect: Connect) -> None:
    others = [Daemon(tmp_path / f"other{number}").start() for number in range(2)]
    file = tmp_path / "fleet.zpl"
    lines = ["broker", "    peers"]
    for place in ["tcp://127.0.0.1:9", *(other.address("scale0.worker") for other in others)]:
        lines += [f"        broker = {place}", "            load = 0.5"]
    file.write_text("\n".join(lines))
    broker = Daemon(tmp_path / "data", f"scale0.config_file={file}", "scale0.look_s=0.05").start()
    try:
        other_client = connect(broker, "scale0.worker")

        def named() -> str:
            other_client.send("NEEDBROKER", services=["mail"])
            frames = other_client.hear()
            return str(json.loads(frames[1]).get("broker", ""))

        helper = connect(others[1], "scale0.worker")
        helper.ping("mail")  # the other one has no worker, so it can do nothing for anybody
        wait_for("the other with room", lambda: named() == others[1].address("scale0.worker"))
        others[1].kill()
        wait_for("the other that is left", lambda: named() == others[0].address("scale0.worker"))
        others[0].kill()
        wait_for("no broker at all", lambda: named() == "")
    finally:
        for daemon in (broker, *others):
            daemon.kill()


def test_a_skewed_worker_loses_its_connection(common: Daemon, connect: Connect) -> None:
    worker = connect(common, "scale0.worker")
    monitor = worker.socket.get_monitor_socket()
    try:
        worker.send("PING", services=["skewed"], time=time.time() - 100)
        assert worker.hear_word("ERROR")[0]["code"] == 503
        ends = time.monotonic() + WAIT_S
        while time.monotonic() < ends:
            assert monitor.poll(int(WAIT_S * 1000)), "the connection was not ended"
            event = int.from_bytes(monitor.recv_multipart()[0][:2], "little")
            if event == zmq.EVENT_DISCONNECTED:
                return
        raise AssertionError("the connection was not ended")
    finally:
        worker.socket.disable_monitor()
        monitor.close()
