"""The ping-pong dialogue with a broker process: pyzmq on the other side, kill −9 in the middle, and what upset the original."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from tests.dialects.pingpong.zmq_peers import LISTEN, PONG, Socket, ZmqClient, ZmqWorker
from tests.runtime.daemon import Daemon
from tests.waiting import wait_for
from tests.wire.zmtp.dialogue import opening


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    running = Daemon(tmp_path_factory.mktemp("pingpong") / "data", listen=dict(LISTEN)).start()
    yield running
    running.kill()


@pytest.fixture
def worker(broker: Daemon) -> Iterator[ZmqWorker]:
    made = ZmqWorker(broker)
    yield made
    made.close()
    wait_for_no_worker(broker)


@pytest.fixture
def client(broker: Daemon) -> Iterator[ZmqClient]:
    made = ZmqClient(broker)
    yield made
    made.close()


def wait_for_no_worker(broker: Daemon) -> None:
    wait_for("all workers to be gone", lambda: broker.ask("counters")["workers"] == 0)


def test_orders_go_out_and_results_come_back(client: ZmqClient, worker: ZmqWorker) -> None:
    for number in range(20):
        client.order(b"order %d" % number)
    worker.serve(20)
    assert [client.hear() for _ in range(20)] == [[b"", b"order %d" % number] for number in range(20)]


def test_a_req_socket_is_a_client_too(broker: Daemon, worker: ZmqWorker) -> None:
    client = ZmqClient(broker, zmq.REQ)
    for body in (b"one", b"two"):
        client.send(body)
        worker.serve(1)
        assert client.hear() == [body]
    client.close()


def test_a_silent_idle_worker_leaves_after_three_seconds_and_comes_back_with_a_ping(broker: Daemon) -> None:
    began_s = time.monotonic()
    worker = ZmqWorker(broker)
    wait_for_no_worker(broker)
    assert time.monotonic() - began_s > 2.9
    assert broker.facts("worker_left")[-1]["reason"] == "heartbeat_lost"
    worker.send(b"", b"PING")
    assert worker.hear() == PONG
    assert broker.ask("counters")["workers"] == 1
    worker.close()
    wait_for_no_worker(broker)


def test_a_worker_killed_in_the_middle_of_a_job_loses_it_to_another_at_once(broker: Daemon, client: ZmqClient) -> None:
    first = ZmqWorker(broker)
    client.order(b"job")
    assert first.job() == [b"", b"job"]
    second = ZmqWorker(broker)
    first.close()
    assert second.job() == [b"", b"job"]
    assert broker.facts("worker_left")[-1]["reason"] == "connection_ended"
    second.send(b"", b"done")
    assert client.hear() == [b"", b"done"]
    second.close()
    wait_for_no_worker(broker)


def test_a_json_worker_and_a_json_client(broker: Daemon, client: ZmqClient) -> None:
    worker = Socket(broker, "pingpong.worker")
    worker.send(b'{"status":"PING"}')
    assert worker.hear() == [b'{"status":"PONG"}']
    client.send(b'{"order":{"price":100}}')
    work = json.loads(worker.hear()[0])
    assert work["job"] == {"price": 100}
    worker.send(json.dumps({"status": "SUCCESS", "token": work["token"], "result": "stored"}).encode())
    assert client.hear() == [b'{"msg":"stored"}']
    worker.close()
    wait_for_no_worker(broker)


ODD = {
    "a lone empty frame": [b""],
    "READY without the empty frame": [b"READY"],
    "many empty frames": [b""] * 6,
    "a result nobody asked for": [b"", b"result"],
    "JOB COMPLETE without the rest": [b"", b"JOB COMPLETE"],
    "JOB COMPLETE for nobody": [b"", b"JOB COMPLETE", b"\x00abcd", b"", b"result"],
    "binary": [b"", b"\x00\xff\xfe"],
    "half a JSON object": [b'{"status":"PI'],
    "JSON of another kind": [b'["PING"]'],
    "JSON that is no object of the dialogue": [b'{"hello":1}'],
    "a status that is no string": [b'{"status":[1]}'],
    "SUCCESS without a token": [b'{"status":"SUCCESS","result":1}'],
    "SUCCESS with an unknown token": [b'{"status":"SUCCESS","token":"x","result":1}'],
    "ERROR without a message": [b'{"status":"ERROR","token":"x"}'],
    "an order that is no object": [b'{"order"'],
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("listener", ["pingpong.worker", "pingpong.client"])
def test_what_upset_the_original_disturbs_nobody(
    broker: Daemon, client: ZmqClient, worker: ZmqWorker, name: str, listener: str
) -> None:
    """The originals unpack messages by position and look tokens up without asking whether they are there."""
    odd = Socket(broker, listener)
    odd.send(*ODD[name])
    if listener == "pingpong.worker":
        assert odd.hear()[-1] in (b"PONG", b'{"status":"PONG"}')
    else:
        odd.send(b"", b"an order")  # once it is at work, what was said before it has been heard
        while (job := worker.job()) != [b"", b"an order"]:
            worker.send(b"", b"made of " + job[1])  # some of these are orders like any
        worker.send(b"", b"done")
    odd.close()
    client.order(b"still here?")
    while (job := worker.job()) != [b"", b"still here?"]:
        worker.send(b"", b"made of " + job[1])
    worker.send(b"", b"yes")
    assert client.hear() == [b"", b"yes"]


def test_a_peer_that_breaks_zmtp_is_cut_off_and_the_others_go_on(
    broker: Daemon, client: ZmqClient, worker: ZmqWorker
) -> None:
    with socket.create_connection(broker.place("pingpong.worker")) as stranger:
        stranger.settimeout(60)
        stranger.sendall(opening(30, b"DEALER", b"") + b"\x80\x01x")  # a flag that does not exist
        while stranger.recv(1000):
            pass
    client.order(b"job")
    worker.serve(1)
    assert client.hear() == [b"", b"job"]


def test_orders_survive_kill_9_and_their_answers_keep_their_order(tmp_path: Path) -> None:
    broker = Daemon(tmp_path / "data", listen=dict(LISTEN)).start()
    try:
        client = ZmqClient(broker, identity=b"market")
        client.order(b"PONG")  # no worker yet: it waits, and a plain worker will never be told it
        client.order(b"one")
        client.order(b"two")
        wait_for("all three to wait", lambda: broker.ask("counters")["waiting"] == 3)
        broker.ask("pause", queue="pingpong")  # answered once it is kept, and with it all before
        broker.ask("resume", queue="pingpong")
        broker.kill()
        broker.start()
        worker = ZmqWorker(broker)
        assert worker.job() == [b"", b"one"]
        worker.send(b"", b"1")
        assert worker.job() == [b"", b"two"]
        worker.send(b"", b"2")
        client.order(b"three")
        assert worker.job() == [b"", b"three"]
        assert client.hears_nothing(0.1), "the first order is not answered yet"
        number = broker.ask("explain", of="queue:pingpong")
        assert number["kind"] == "queue"
        waiting = broker.ask("queues")["queues"][0]
        assert waiting["waiting"] == 1
        assert broker.ask("purge", queue="pingpong")["purged"] == 1
        assert client.hear()[:2] == [b"", b"ERROR"]
        assert [client.hear() for _ in range(2)] == [[b"", b"1"], [b"", b"2"]]
        worker.close()
        client.close()
    finally:
        broker.kill()
