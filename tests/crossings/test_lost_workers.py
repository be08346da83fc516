"""A worker of each dialect that dies or falls silent with a message in its hands: another one gets it, in time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.independent.all_peers import PEERS
from tests.independent.broker_with_peers import BrokerWithPeers

GRACE_S = 1.0


@pytest.mark.parametrize("works", PEERS)
def test_the_message_of_a_worker_that_dies_runs_elsewhere_at_once(broker: BrokerWithPeers, works: str) -> None:
    """The next worker speaks another dialect. The end of a connection counts, before the silence does, whatever is spoken on it."""
    queue = broker.queue(works)
    client = broker.client("pingpong" if works == "pingpong" else "rq")
    asked = client.ask(queue, b"job")
    mortal = broker.worker(works, queue)
    assert mortal.take()[1] == b"job"
    mortal.close()
    heir = broker.worker("emqp", queue)
    job, body = heir.take()
    assert body == b"job"
    assert broker.daemon.facts("worker_left")[-1]["reason"] == "connection_ended"
    heir.answer(job, b"done")
    assert client.outcome(asked) == ("answered", b"done")


class Silence:
    """A message in the hands of a worker that says nothing more, though its connection stays."""

    def __init__(self, broker: BrokerWithPeers, works: str, *headers: str) -> None:
        self.broker, self.works = broker, works
        self.queue = broker.queue(works)
        self.client = broker.client("emqp")
        self.asked = self.client.ask(self.queue, works.encode(), *headers)
        self.worker = broker.worker(works, self.queue)
        assert self.worker.take()[1] == works.encode()

    def assert_taken_over(self, within_s: float) -> None:
        """An heir gets the message before the dialect's own expiry and a second are over, by the broker's clock, and answers it."""
        heir = self.broker.worker("emqp", self.queue)
        job, body = heir.take()
        assert body == self.works.encode()
        times_ns = {fact["fact"]: fact["time_ns"] for fact in reversed(self.broker.daemon.facts_of(self.asked))}
        assert (times_ns["released"] - times_ns["leased"]) / 1e9 < within_s + GRACE_S
        heir.answer(job, b"done")
        assert self.client.outcome(self.asked) == ("answered", b"done")


@pytest.fixture(scope="module")
def silences(shared_broker: BrokerWithPeers) -> Iterator[dict[str, Any]]:
    """All begin together, so that the tests below need not wait one after another."""
    bounded = ("timeout:2", "retry-count:1")
    yield {
        "scale0": Silence(shared_broker, "scale0", *bounded),
        "pingpong": Silence(shared_broker, "pingpong", *bounded),
        "rq": Silence(shared_broker, "rq", *bounded),
        "emqp": Silence(shared_broker, "emqp"),
        "ebus": Silence(shared_broker, "ebus"),
    }
    shared_broker.clear()


@pytest.mark.parametrize("works", ["scale0", "pingpong", "rq"])
def test_where_a_busy_worker_may_be_silent_the_messages_timeout_bounds_it(silences: dict[str, Any], works: str) -> None:
    """They show no life while they work: the message's own bound, of two seconds here, decides."""
    silences[works].assert_taken_over(2.0)


def test_a_silent_emqp_worker_loses_its_message_after_5_s(silences: dict[str, Any]) -> None:
    silences["emqp"].assert_taken_over(5.0)


def test_a_silent_ebus_worker_loses_its_message_after_five_pings(silences: dict[str, Any]) -> None:
    """Silence for one second, then a PING in each of five."""
    silences["ebus"].assert_taken_over(6.0)
