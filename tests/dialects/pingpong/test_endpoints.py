"""Our own client's and worker's ends, face to face with the broker's sessions."""

from __future__ import annotations

import pytest

from dragoman.dialects.endpoint import ANSWERED, FAILED, REFUSED, CallOptions, EndpointSetup, MessageIds
from dragoman.dialects.pingpong.commands import PACKAGE, PLAIN
from dragoman.dialects.pingpong.endpoints import PingpongClientEndpoint, PingpongWorkerEndpoint
from dragoman.dialects.session import Session
from dragoman.model.enums import BY_OPERATOR
from dragoman.wire.zmtp.frames import encode_message
from tests.dialects.pingpong.in_memory import FakeClient, PingpongBroker, ready_worker

SETUP = EndpointSetup(b"", MessageIds(b"-" * 24))


@pytest.fixture
def broker() -> PingpongBroker:
    return PingpongBroker()


class Wire:
    """A endpoint and the session it talks to; `pass_on` carries bytes until both are silent."""

    def __init__(
        self, broker: PingpongBroker, endpoint: PingpongClientEndpoint | PingpongWorkerEndpoint, listener: str
    ) -> None:
        self.broker = broker
        self.endpoint = endpoint
        self.session: Session = broker.dialects.session(listener)
        self.session.start()
        self.session.receive(endpoint.opening())
        self.heard: list[tuple[object, ...]] = []
        self.pass_on()

    def pass_on(self) -> list[tuple[object, ...]]:
        """What the endpoint has heard since the last look."""
        while True:
            self.broker.commit()
            to_endpoint = self.session.take_all()
            if to_endpoint:
                self.heard.extend(self.endpoint.receive(to_endpoint))
            to_broker = self.endpoint.data_to_send()
            if to_broker:
                self.session.receive(to_broker)
            if not to_endpoint and not to_broker:
                heard, self.heard = self.heard, []
                return heard


def serving(broker: PingpongBroker) -> tuple[PingpongWorkerEndpoint, Wire]:
    endpoint = PingpongWorkerEndpoint(SETUP)
    wire = Wire(broker, endpoint, "pingpong.worker")
    endpoint.serve([(10, b"pingpong")], 1)
    wire.pass_on()
    return endpoint, wire


def test_a_call_reaches_a_worker_and_comes_back(broker: PingpongBroker) -> None:
    worker, worker_wire = serving(broker)
    client = PingpongClientEndpoint(SETUP)
    client_wire = Wire(broker, client, "pingpong.client")
    assert client.is_ready
    assert worker.is_ready
    client.request(b"call-1", CallOptions(b"pingpong"), b"body")
    client_wire.pass_on()
    ((job_id, seconds, body),) = worker_wire.pass_on()
    assert (seconds, body) == (0.0, b"body")
    assert isinstance(job_id, bytes)
    worker.reply(job_id, b"value")
    worker.ready(1)
    worker_wire.pass_on()
    assert client_wire.pass_on() == [(ANSWERED, b"call-1", b"value")]


def test_refusals_and_failures_are_distinguished(broker: PingpongBroker) -> None:
    worker = ready_worker(broker)
    client = PingpongClientEndpoint(SETUP)
    wire = Wire(broker, client, "pingpong.client")
    client.request(b"1", CallOptions(b"pingpong"), b"PONG")
    client.request(b"2", CallOptions(b"pingpong"), b"job")
    wire.pass_on()
    broker.core.cancel(next(iter(worker.broker_side.work.leases.values())), BY_OPERATOR)
    said = {call_id: (what, value) for what, call_id, value in wire.pass_on() + wire.pass_on()}
    assert said[b"2"] == (FAILED, b"BY_OPERATOR")


def test_a_refusal_says_why(broker: PingpongBroker) -> None:
    ready_worker(broker)
    client = PingpongClientEndpoint(SETUP)
    wire = Wire(broker, client, "pingpong.client")
    client.request(b"1", CallOptions(b"pingpong"), b"EXIT")
    ((what, call_id, value),) = wire.pass_on()
    assert (what, call_id) == (REFUSED, b"1")
    assert isinstance(value, bytes)
    assert value.startswith(b"INEXPRESSIBLE")


def test_a_worker_pings_each_second_also_while_busy(broker: PingpongBroker) -> None:
    endpoint, wire = serving(broker)
    endpoint.beat(100.0)
    assert endpoint.data_to_send() == b""
    endpoint.beat(100.5)
    assert endpoint.data_to_send() == b""
    endpoint.beat(101.0)
    assert endpoint.data_to_send() == encode_message([b"", b"PING"])
    FakeClient(broker).order(b"job")
    wire.pass_on()
    endpoint.beat(102.0)
    assert endpoint.data_to_send() == encode_message([b"", b"PING"])


def test_a_broker_silent_for_three_seconds_is_over(broker: PingpongBroker) -> None:
    endpoint, wire = serving(broker)
    endpoint.beat(100.0)
    endpoint.beat(103.0)
    assert not endpoint.is_over
    wire.pass_on()  # it answers the PING
    endpoint.beat(103.5)
    endpoint.beat(106.5)
    assert not endpoint.is_over
    endpoint.beat(106.75)
    assert endpoint.is_over
    assert "silent" in endpoint.problem


def test_two_connections_never_share_an_identity(broker: PingpongBroker) -> None:
    _, first = serving(broker)
    _, second = serving(broker)
    assert first.session.address != second.session.address


def test_exit_ends_a_worker(broker: PingpongBroker) -> None:
    broker.pingpong.settings.send_exit = True
    endpoint, wire = serving(broker)
    broker.pingpong.draining()
    wire.pass_on()
    assert endpoint.is_over
    assert "EXIT" in endpoint.problem


def test_the_second_copy_of_the_first_job_is_known_for_what_it_is(broker: PingpongBroker) -> None:
    endpoint, wire = serving(broker)
    client = FakeClient(broker)
    client.order(b"first")
    ((job_id, _, _),) = wire.pass_on()
    broker.pass_time(1.0)
    endpoint.beat(100.0)
    endpoint.beat(101.0)
    assert wire.pass_on() == []
    assert isinstance(job_id, bytes)
    endpoint.reply(job_id, b"done")
    client.order(b"second")
    ((job_id, _, body),) = wire.pass_on()
    assert body == b"second"
    assert isinstance(job_id, bytes)
    endpoint.reply(job_id, b"done too")
    wire.pass_on()
    assert client.results() == [b"done", b"done too"]
    session = wire.session
    assert getattr(session, "form", None) == PACKAGE


def test_a_second_copy_that_crosses_the_result_is_not_run(broker: PingpongBroker) -> None:
    endpoint, wire = serving(broker)
    client = FakeClient(broker)
    client.order(b"first")
    ((job_id, _, _),) = wire.pass_on()
    broker.pass_time(1.0)
    endpoint.beat(100.0)
    endpoint.beat(101.0)
    wire.session.receive(endpoint.data_to_send())  # its PING reaches the broker, which sends the job again …
    assert isinstance(job_id, bytes)
    endpoint.reply(job_id, b"done")  # … while the result leaves
    client.order(b"second")
    ((_, _, body),) = wire.pass_on()
    assert body == b"second"
    assert client.results() == [b"done"]
    assert getattr(wire.session, "form", None) == PLAIN


@pytest.mark.parametrize("value", [b"READY", b"PING"])
def test_a_result_that_is_a_word_of_control_arrives_all_the_same(broker: PingpongBroker, value: bytes) -> None:
    endpoint, wire = serving(broker)
    client = FakeClient(broker)
    client.order(b"job")
    ((job_id, _, _),) = wire.pass_on()
    assert isinstance(job_id, bytes)
    endpoint.reply(job_id, value)
    wire.pass_on()
    assert client.results() == [value]


def test_after_its_goodbye_a_worker_takes_nothing_new(broker: PingpongBroker) -> None:
    endpoint, wire = serving(broker)
    endpoint.goodbye()
    FakeClient(broker).order(b"job")
    assert wire.pass_on() == []
    wire.session.ended()
    assert ready_worker(broker).jobs() == [[b"", b"job"]]
