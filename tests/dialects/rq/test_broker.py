"""rq on a running broker, over real sockets: deaths, restarts, draining, limits, and the other side in another dialect."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dialects.rq.sockets import Bystanders, SocketNode, rq_broker
from tests.runtime.daemon import Daemon
from tests.runtime.peers import Client, Worker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Daemon]:
    daemon = rq_broker(tmp_path / "data").start()
    yield daemon
    if daemon.process.is_running():
        daemon.kill()


def consumer(broker: Daemon, queue: str = "q", messages_max: int = 1) -> SocketNode:
    node = SocketNode(broker)
    node.say(f"CLEAR QUEUE={queue} MAX={messages_max} PRIORITY=20 CONSUME")
    node.hear_consuming(queue)
    return node


def test_a_thousand_requests_in_flight_are_each_answered_with_their_own_reply(broker: Daemon) -> None:
    with consumer(broker, messages_max=1000) as worker, SocketNode(broker) as client:
        client.say(*[f"CLEAR ID={number} QUEUE=q PAYLOAD=b{number} REQUEST" for number in range(1000)])
        for number in range(1000):
            assert worker.hear() == f"QUEUEID=1 PAYLOAD=b{number} ID={number} REQUEST"
        worker.say(*[f"CLEAR ID={n} DELIVERED CLEAR ID={n} PAYLOAD=r{n} REPLY" for n in reversed(range(1000))])
        heard = [client.hear() for _ in range(2000)]
        for number in range(1000):
            assert heard.index(f"ID={number} DELIVERED") < heard.index(f"ID={number} PAYLOAD=r{number} REPLY")


def test_an_operation_may_come_a_byte_at_a_time(broker: Daemon) -> None:
    with consumer(broker) as worker, SocketNode(broker) as client:
        for byte in b"\x01\x80\0\0\0\x07\xa0\x01q\xe0\0\0\0\x05hello\x0a":
            client.give(bytes([byte]))
        assert worker.hear() == "QUEUEID=1 PAYLOAD=hello ID=0 REQUEST"


def test_a_large_body_passes_whole(broker: Daemon) -> None:
    body = "x" * 3_000_000
    with consumer(broker) as worker, SocketNode(broker) as client:
        client.say(f"CLEAR ID=1 QUEUE=q PAYLOAD={body} REQUEST")
        assert worker.hear() == f"QUEUEID=1 PAYLOAD={body} ID=0 REQUEST"
        worker.say(f"CLEAR ID=0 PAYLOAD={body} REPLY")
        assert client.hear() == "ID=1 DELIVERED"
        assert client.hear() == f"ID=1 PAYLOAD={body} REPLY"


def test_what_a_consumer_killed_in_the_middle_held_runs_elsewhere_at_once(broker: Daemon) -> None:
    with consumer(broker) as first, SocketNode(broker) as client:
        client.say("CLEAR ID=1 QUEUE=q PAYLOAD=job REQUEST")
        assert first.hear() == "QUEUEID=1 PAYLOAD=job ID=0 REQUEST"
        with consumer(broker) as second:
            first.close()
            assert second.hear(1.0) == "QUEUEID=1 PAYLOAD=job ID=0 REQUEST"
            second.say("CLEAR ID=0 DELIVERED", "CLEAR ID=0 PAYLOAD=done REPLY")
            assert client.hear() == "ID=1 DELIVERED"
            assert client.hear() == "ID=1 PAYLOAD=done REPLY"


def test_a_request_without_a_reply_outlives_kill_9_once_delivered_was_sent(broker: Daemon) -> None:
    with SocketNode(broker) as client:
        client.say("CLEAR ID=1 QUEUE=q PAYLOAD=kept NOREPLY REQUEST")
        assert client.hear() == "ID=1 DELIVERED"
    broker.kill()
    broker.start()
    with consumer(broker) as worker:
        assert worker.hear() == "QUEUEID=1 PAYLOAD=kept NOREPLY ID=0 REQUEST"


def test_a_stopping_broker_says_closing_lets_held_work_be_answered_and_ends_the_connections(broker: Daemon) -> None:
    with consumer(broker) as worker, SocketNode(broker) as client:
        client.say("CLEAR ID=1 QUEUE=q PAYLOAD=held REQUEST CLEAR ID=2 QUEUE=q PAYLOAD=waiting REQUEST")
        assert worker.hear() == "QUEUEID=1 PAYLOAD=held ID=0 REQUEST"
        broker.send_signal(signal.SIGTERM)
        assert worker.hear() == client.hear() == "CLOSING"
        worker.say("CLEAR ID=0 DELIVERED", "CLEAR ID=0 PAYLOAD=ok REPLY")
        assert client.hear() == "ID=1 DELIVERED"
        assert client.hear() == "ID=1 PAYLOAD=ok REPLY"
        assert client.hear() == "ID=2 UNDELIVERED"
        assert client.hears_end() == worker.hears_end() == b""
    assert broker.exit_code() == 0


def test_a_node_that_says_closing_is_disconnected_once_it_has_answered(broker: Daemon) -> None:
    with consumer(broker) as worker, SocketNode(broker) as client:
        client.say("CLEAR ID=1 QUEUE=q PAYLOAD=held REQUEST")
        assert worker.hear() == "QUEUEID=1 PAYLOAD=held ID=0 REQUEST"
        worker.say("CLOSING", "CLEAR ID=0 DELIVERED", "CLEAR ID=0 PAYLOAD=ok REPLY")
        assert worker.hears_end() == b""
        assert client.hear() == "ID=1 DELIVERED"
        assert client.hear() == "ID=1 PAYLOAD=ok REPLY"


@pytest.mark.parametrize(("setting", "words"), [("false", b"\x17"), ("true", b"")])
def test_a_connection_over_the_limit_is_sent_server_full_and_ended(tmp_path: Path, setting: str, words: bytes) -> None:
    broker = rq_broker(tmp_path / "data", "limits.connections_max=2", f"rq.librq_safe={setting}").start()
    try:
        others = Bystanders(broker)
        others.notice_nothing()
        with SocketNode(broker) as late:
            assert late.hears_end() == words
        others.notice_nothing()
        others.close()
    finally:
        broker.kill()


def test_an_emqp_client_is_answered_by_an_rq_consumer(broker: Daemon) -> None:
    with consumer(broker) as worker, Client(broker) as client:
        request_id = client.request(b"q", b"reply-requested", b'{"n":1}')
        assert worker.hear() == 'QUEUEID=1 PAYLOAD={"n":1} ID=0 REQUEST'
        worker.say("CLEAR ID=0 DELIVERED", "CLEAR ID=0 PAYLOAD=two REPLY")
        assert client.result(request_id) == b"two"


def test_an_emqp_client_that_wants_no_reply_is_not_spelt_noreply_and_its_reply_is_dropped(broker: Daemon) -> None:
    with consumer(broker) as worker, Client(broker) as client:
        client.request(b"q", b"", b"1")
        assert worker.hear() == "QUEUEID=1 PAYLOAD=1 ID=0 REQUEST"
        worker.say("CLEAR ID=0 DELIVERED")
        client.request(b"q", b"", b"2")
        worker.say("CLEAR ID=0 PAYLOAD=ok REPLY")
        assert worker.hear() == "QUEUEID=1 PAYLOAD=2 ID=0 REQUEST"


def test_an_rq_source_is_answered_by_an_emqp_worker_after_delivered_of_the_brokers_own(broker: Daemon) -> None:
    with Worker(broker, b"q") as worker, SocketNode(broker) as client:
        client.say("CLEAR ID=9 QUEUE=q PAYLOAD=hello REQUEST")
        request_id, body = worker.take()
        assert body == b"hello"
        assert client.hear() == "ID=9 DELIVERED"
        worker.answer(request_id, b"world")
        assert client.hear() == "ID=9 PAYLOAD=world REPLY"


def test_a_node_the_operator_disconnects_leaves_with_all_it_consumes_and_is_blamed_for_nothing(tmp_path: Path) -> None:
    broker = rq_broker(tmp_path / "data", "queues.quarantine_after=1").start()
    try:
        with consumer(broker) as worker, SocketNode(broker) as client, consumer(broker, "apart") as apart:
            worker.say("CLEAR QUEUE=other MAX=1 PRIORITY=20 CONSUME")
            worker.hear_consuming("other")
            client.say("CLEAR ID=1 QUEUE=q PAYLOAD=a REQUEST CLEAR ID=2 QUEUE=other PAYLOAD=b REQUEST")
            assert {worker.hear(), worker.hear()} == {
                "QUEUEID=1 PAYLOAD=a ID=0 REQUEST",
                f"QUEUEID={worker.queue_id} PAYLOAD=b ID=1 REQUEST",
            }
            [listed] = broker.ask("workers", queue="q")["workers"]
            assert broker.ask("disconnect", worker=listed["id"])["leased"] == 2
            worker.hears_end()
            for queue in ("q", "other"):
                [line, _] = broker.ask("explain", of=f"queue:{queue}")["lines"]
                assert line.endswith("(the operator sent it away)")
                [message] = broker.ask("messages", queue=queue)["messages"]
                assert (message["state"], message["died_with"]) == ("waiting", [])
            client.say("CLEAR ID=3 QUEUE=apart PAYLOAD=c REQUEST")
            assert apart.hear() == f"QUEUEID={apart.queue_id} PAYLOAD=c ID=0 REQUEST", (
                "another node of the same listener stays"
            )
    finally:
        broker.kill()
