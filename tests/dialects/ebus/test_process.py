"""A broker process, real sockets, libzmq at the other end."""

from __future__ import annotations

import time

import pytest
import zmq

from tests.dialects.ebus.in_memory import unpack
from tests.dialects.ebus.peers import Client, Peer, Worker
from tests.runtime.conftest import NewBroker
from tests.runtime.daemon import Daemon
from tests.runtime.peers import RawPeer


def test_a_request_and_its_answer_cross_a_real_broker(common: Daemon) -> None:
    with Worker(common, b"plain") as worker, Client(common) as client:
        client.ask(b"plain", b"rid-1", b"question")
        rid, data = worker.take()
        assert data == b"question"
        worker.answer(rid, b"answer")
        assert client.outcome() == [b"REPLY", b"rid-1", b"answer"]


def test_a_request_expires_by_the_clock_waiting_and_running(common: Daemon) -> None:
    with Worker(common, b"slow") as worker, Client(common) as client:
        began_s = time.monotonic()
        client.ask(b"slow", b"running", stales_ms=600)
        client.ask(b"nobody", b"waiting", stales_ms=600)
        rid, _ = worker.take()
        assert sorted(client.outcome()[1] for _ in range(2)) == [b"running", b"waiting"]
        assert time.monotonic() - began_s > 0.5
        assert worker.hear_word(b"CANCEL")[2] == rid


def test_a_worker_killed_mid_job_has_it_run_elsewhere(common: Daemon) -> None:
    with Client(common) as client, Worker(common, b"mortal", b"first") as first:
        client.ask(b"mortal", b"rid-1")
        rid, _ = first.take()
        with Worker(common, b"mortal", b"second") as second:
            first.close()
            assert second.take()[0] == rid
            second.answer(rid, b"answer")
            assert client.outcome() == [b"REPLY", b"rid-1", b"answer"]


def test_a_hung_worker_is_pinged_and_sent_away_and_its_request_runs_elsewhere(new_broker: NewBroker) -> None:
    broker = new_broker("ebus.ping_s=0.2", "ebus.heartbeat_s=0").start()
    with Client(broker) as client, RawPeer(broker, "ebus.worker") as hung:
        hung.greet()
        hung.socket.sendall(b"\x01\x05EBW01\x01\x05READY\x01\x04null\x00\x05hello")
        client.ask(b"hello", b"rid-1")
        heard = hung.hear_text(b"no heartbeat")
        # One for each interval of silence; a loaded machine that skips an interval skips its PING.
        assert 1 <= heard.count(b"PING") <= 5
        assert hung.is_ended()
        with Worker(broker, b"hello") as worker:
            worker.answer(worker.take()[0], b"answer")
            assert client.outcome() == [b"REPLY", b"rid-1", b"answer"]


HOSTILE = {
    "READY twice": [[b"EBW01", b"READY", b"null", b"x"], [b"EBW01", b"READY", b"null", b"x"]],
    "a reply before READY": [[b"EBW01", b"REPLY", b"1", b"x"]],
    "a ping before READY": [[b"EBW01", b"PING"]],
    "an unknown sender": [[b"EBX01", b"READY", b"null", b"x"]],
    "a client's signature without the empty frame": [[b"EBC01", b"REQ", b"x", b"rid", b"data"]],
    "one empty frame": [[b""]],
    "READY without a service": [[b"EBW01", b"READY"]],
    "a reply without a rid": [[b"EBW01", b"READY", b"x"], [b"EBW01", b"REPLY"]],
    "an unknown word": [[b"EBW01", b"READY", b"x"], [b"EBW01", b"\xff\x00"]],
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_upsets_the_original_is_answered_with_disconnect_and_nobody_else_notices(
    common: Daemon, case: str
) -> None:
    with Worker(common, b"steady") as worker, Client(common) as client:
        # Rids of its own: another test's, sent again with the same data, would be answered from memory.
        before, after = b"before " + case.encode(), b"after " + case.encode()
        client.ask(b"steady", before, b"1")
        rid, _ = worker.take()
        with Peer(common, "ebus.worker") as hostile:
            for frames in HOSTILE[case]:
                hostile.send(*frames)
            assert hostile.hear_word(b"DISCONNECT")[-1]
            worker.answer(rid, b"answer")
            assert client.outcome() == [b"REPLY", before, b"answer"]
            client.ask(b"steady", after, b"2")
            worker.answer(worker.take()[0], b"answer")
            assert client.outcome() == [b"REPLY", after, b"answer"]


def test_a_rid_sent_again_after_kill_9_of_the_broker_runs_once(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    with Client(broker) as client:
        client.ask(b"hello", b"rid-1", b"only once", 60_000)
        client.ping()
        client.send(b"", b"EBC01", b"SERVICES")
        client.hear_word(b"SERVICES")
    broker.kill()
    broker.start()
    with Client(broker, b"another name") as client, Worker(broker, b"hello") as worker:
        client.ask(b"hello", b"rid-1", b"only once", 60_000)
        client.ping()
        rid, data = worker.take()
        assert data == b"only once"
        worker.answer(rid, b"answer")
        assert client.outcome() == [b"REPLY", b"rid-1", b"answer"]
        worker.ping()
        assert broker.ask("queues")["queues"][0]["waiting"] == 0


def test_a_worker_that_outlives_the_broker_is_asked_to_connect_anew(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    with Worker(broker, b"hello") as worker:
        broker.kill()
        broker.start()
        worker.send(b"EBW01", b"HEARTBEAT")
        assert worker.hear_word(b"DISCONNECT")[-1] == b"not ready: say READY first"


def test_news_reach_subscribers_through_libzmq_sockets(common: Daemon) -> None:
    with Peer(common, "ebus.subscribe", zmq.SUB) as subscriber, Peer(common, "ebus.publish", zmq.PUB) as publisher:
        subscriber.socket.subscribe(b"CH")
        end_s = time.monotonic() + 10
        while not subscriber.socket.poll(50):  # until both connections and the subscription are there
            assert time.monotonic() < end_s
            publisher.send(b"CH A", b"data")
        assert subscriber.hear() == [b"CH A", b"data"]


def test_the_broker_tells_of_its_end_its_start_and_its_workers(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    with Peer(broker, "ebus.subscribe", zmq.SUB) as subscriber, Peer(broker, "ebus.client") as client:
        subscriber.socket.subscribe(b"ebus/")
        client.send(b"", b"EBC01", b"HEARTBEAT")
        with Worker(broker, b"hello") as worker:
            news = subscriber.hear_word(b"ebus/workers")
            assert unpack(news[1]) == {"ebusmessage": "active workers", "workers": ["hello"]}
            assert broker.stop() == 0
            assert worker.hear_word(b"DISCONNECT") == [b"EBC01", b"DISCONNECT", b"broker is stopping"]
        assert client.hear_word(b"DISCONNECT") == [b"", b"EBW01", b"DISCONNECT", b"broker is stopping"]
        assert unpack(subscriber.hear_word(b"ebus/shutdown")[1]) == {"ebusmessage": "broker stopping"}
        broker.start()
        assert unpack(subscriber.hear_word(b"ebus/started")[1]) == {"ebusmessage": "broker starting"}


def test_settings_reach_the_dialect(new_broker: NewBroker) -> None:
    broker = new_broker("ebus.data=json", "ebus.stales_s=0.3", "ebus.worker_requests_max=1").start()
    with Worker(broker, b"hello") as worker, Client(broker) as client:
        client.send(b"", b"EBC01", b"SERVICES")
        assert client.hear_word(b"SERVICES")[4] == b'["hello"]'
        client.send(b"", b"EBC01", b"REQ", b"hello", b"rid-1")
        client.ask(b"hello", b"rid-2")
        worker.take()
        assert client.outcome() == [b"REJECT", b"rid-1"]
        worker.hear_word(b"CANCEL")
        worker.answer(worker.take()[0], b"answer")
        assert client.outcome() == [b"REPLY", b"rid-2", b"answer"]
