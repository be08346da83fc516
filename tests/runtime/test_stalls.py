"""A broker that did not run for a while (a paused machine, a starved one) has heard nobody, and blames nobody for it."""

from __future__ import annotations

import signal
import time

import pytest

from tests.runtime.conftest import NewBroker
from tests.runtime.peers import Client, Worker, new_id
from tests.waiting import wait_for

LOST_S = 1.2


@pytest.mark.long
def test_jobs_that_run_while_the_broker_stands_still_are_not_lost_with_their_worker(new_broker: NewBroker) -> None:
    broker = new_broker(f"emqp.worker_lost_s={LOST_S}", "emqp.heartbeat_s=0.3").start()
    with Client(broker) as client, Worker(broker, b"still") as worker:
        request_id = client.request(b"still", b"reply-requested,retry-count:0")
        taken_id, _ = worker.take()
        broker.send_signal(signal.SIGSTOP)
        worker.say(b"HEARTBEAT", new_id(), b"1.0")
        until_s = time.monotonic() + 2 * LOST_S
        wait_for("the stall to outlast the worker's time", lambda: time.monotonic() > until_s)
        broker.send_signal(signal.SIGCONT)
        assert broker.wait_line("the broker stood still")["seconds"] > LOST_S
        worker.answer(taken_id, b'{"value": 7}')
        assert client.result(request_id) == b'{"value": 7}'
