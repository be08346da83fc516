"""SIGTERM: nothing new is taken, what is held may finish, what is not finished is kept."""

from __future__ import annotations

import signal
import time

from tests.runtime.conftest import NewBroker
from tests.runtime.daemon import Daemon
from tests.runtime.peers import Client, RawPeer, Worker, new_id


def begin_drain(broker: Daemon) -> None:
    broker.send_signal(signal.SIGTERM)
    broker.wait_line("draining")


def test_new_work_is_refused_and_held_work_finishes_and_its_result_reaches_the_client(broker: Daemon) -> None:
    with Client(broker) as client, Worker(broker, b"slow") as worker:
        held = client.request(b"slow", b"reply-requested")
        worker.take()
        begin_drain(broker)
        assert client.refusal(client.request(b"slow", b"reply-requested")) == "DRAINING"
        worker.answer(held, b'{"value":"done"}')
        assert client.result(held) == b'{"value":"done"}'
    assert broker.exit_code() == 0
    assert not broker.lines("stopped before all work was answered; it will be given out again")


def test_a_client_that_asked_for_nothing_is_notified_of_the_refusal_too(broker: Daemon) -> None:
    with Client(broker) as client, Worker(broker, b"slow") as worker:
        client.request(b"slow")
        worker.take()
        begin_drain(broker)
        assert client.refusal(client.request(b"other")) == "DRAINING"


def test_what_waits_is_not_given_out_any_more_and_is_there_after_the_restart(broker: Daemon) -> None:
    with Client(broker) as client, Worker(broker, b"slow") as worker:
        held = client.keep(b"slow")
        waiting = client.keep(b"slow")
        worker.take()
        begin_drain(broker)
        worker.answer(held)
        worker.ready(5)
        assert worker.hear_word(b"REQUEST", b"KBYE")[0] == b"KBYE"
    assert broker.exit_code() == 0
    broker.start()
    with Worker(broker, b"slow") as worker:
        assert worker.take()[0] == waiting


def test_a_large_last_result_reaches_its_client_whole(broker: Daemon) -> None:
    value = b'{"value":"%s"}' % (b"x" * 30_000_000)
    with Client(broker) as client, Worker(broker, b"large") as worker:
        held = client.request(b"large", b"reply-requested")
        worker.take()
        begin_drain(broker)
        worker.answer(held, value)
        assert client.result(held) == value
    assert broker.exit_code() == 0


def test_at_the_limit_it_exits_with_0_and_the_job_is_given_out_again_by_the_next(new_broker: NewBroker) -> None:
    broker = new_broker("drain.limit_s=0.2").start()
    with Client(broker) as client, Worker(broker, b"endless") as worker:
        held = client.keep(b"endless")
        assert worker.take()[0] == held
        assert broker.stop() == 0
    assert broker.lines("stopped before all work was answered; it will be given out again")[0]["leases"] == 1
    broker.start()
    with Worker(broker, b"endless") as worker:
        assert worker.take()[0] == held


def test_a_second_signal_hurries(broker: Daemon) -> None:
    with Client(broker) as client, Worker(broker, b"endless") as worker:
        client.request(b"endless")
        worker.take()
        begin_drain(broker)
        began_s = time.monotonic()
        assert broker.stop() == 0
        assert time.monotonic() - began_s < 30, "drain.limit_s is 30"


def test_a_client_that_never_reads_cannot_hold_up_the_exit(new_broker: NewBroker) -> None:
    broker = new_broker("drain.limit_s=1").start()
    with RawPeer(broker, "emqp.client", receive_buffer=4096) as client, Worker(broker, b"large") as worker:
        client.greet()
        client.say(b"REQUEST", new_id(), b"large", b"reply-requested", b"{}")
        request_id, _ = worker.take()
        begin_drain(broker)
        worker.answer(request_id, b'{"value":"%s"}' % (b"x" * 20_000_000))
        assert broker.exit_code() == 0
