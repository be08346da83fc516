"""The ends that the SDK speaks through, against a real session of the broker."""

from __future__ import annotations

import pytest

from dragoman.dialects.ebus.endpoints import (
    SERVICES_MAX,
    EbusClientEndpoint,
    EbusPublisherEndpoint,
    EbusWorkerEndpoint,
)
from dragoman.dialects.endpoint import (
    ANSWERED,
    FAILED,
    REFUSED,
    CallOptions,
    ClientEndpoint,
    EndpointSetup,
    MessageIds,
    WorkerEndpoint,
    ZmtpSubscriberEndpoint,
)
from dragoman.dialects.session import Session
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message
from tests.dialects.ebus.in_memory import EbusBroker


def setup(identity: bytes) -> EndpointSetup:
    return EndpointSetup(identity, MessageIds(b"x" * 24))


class Wire:
    """Carries bytes between a endpoint and a session of the broker; keeps what the endpoint made of them."""

    def __init__(
        self,
        broker: EbusBroker,
        listener: str,
        endpoint: EbusClientEndpoint | EbusWorkerEndpoint | EbusPublisherEndpoint | ZmtpSubscriberEndpoint,
    ):
        self.broker = broker
        self.endpoint = endpoint
        self.session: Session = broker.dialects.session(listener)
        self.session.start()
        self.heard: list[tuple[object, ...]] = []
        self.session.receive(endpoint.opening())
        self.carry()

    def carry(self) -> None:
        while True:
            self.broker.commit()
            data = self.session.take_all()
            if data:
                self.heard.extend(self.endpoint.receive(data) or [])
            out = self.endpoint.data_to_send()
            if out:
                self.session.receive(out)
            if not data and not out:
                return

    def take(self) -> list[tuple[object, ...]]:
        self.carry()
        heard, self.heard = self.heard, []
        return heard


def client_wire(broker: EbusBroker, identity: bytes = b"client") -> Wire:
    return Wire(broker, "ebus.client", EbusClientEndpoint(setup(identity)))


def worker_wire(broker: EbusBroker, *services: bytes, slots: int = 8) -> Wire:
    endpoint = EbusWorkerEndpoint(setup(b"W"))
    endpoint.serve([(10, service) for service in services], slots)
    return Wire(broker, "ebus.worker", endpoint)


def ask(wire: Wire, call_id: bytes, queue: bytes = b"hello", expires_ms: int = 0) -> None:
    assert isinstance(wire.endpoint, ClientEndpoint)
    options = CallOptions(queue)
    if expires_ms:
        options.expires_ns = expires_ms * 1_000_000
    wire.endpoint.request(call_id, options, b"question")
    wire.carry()


def answer(wire: Wire, value: bytes) -> None:
    assert isinstance(wire.endpoint, WorkerEndpoint)
    for job in wire.take():
        assert isinstance(job[0], bytes)
        wire.endpoint.reply(job[0], value)
        wire.endpoint.ready(1)
    wire.carry()


def test_a_call_is_answered() -> None:
    broker = EbusBroker()
    worker, client = worker_wire(broker, b"hello"), client_wire(broker)
    assert worker.endpoint.is_ready
    ask(client, b"call-1")
    answer(worker, b"answer")
    assert client.take() == [(ANSWERED, b"call-1", b"answer")]


def test_a_call_made_before_the_handshake_is_sent_after_it() -> None:
    broker = EbusBroker()
    endpoint = EbusClientEndpoint(setup(b""))
    endpoint.request(b"call-1", CallOptions(b"hello"), b"question")
    assert endpoint.data_to_send() == b""
    Wire(broker, "ebus.client", endpoint)
    assert broker.ebus_worker().job()[1] == b"question"


def test_an_expiry_is_sent_as_stales_and_a_call_without_one_has_the_brokers_own() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), client_wire(broker)
    ask(client, b"call-1", expires_ms=1234)
    ask(client, b"call-2")
    assert [frames[4] for frames in worker.take_words(b"REQ")] == [b"1234", b"3000"]


def test_an_expired_call_fails_with_that_reason() -> None:
    broker = EbusBroker()
    client = client_wire(broker)
    ask(client, b"call-1", expires_ms=500)
    broker.pass_time(0.7)
    assert client.take() == [(FAILED, b"call-1", b"PAST_EXPIRY: past expiry")]


def test_a_call_that_a_worker_rejects_fails_with_the_workers_bytes() -> None:
    broker = EbusBroker()
    worker, client = worker_wire(broker, b"hello"), client_wire(broker)
    ask(client, b"call-1")
    assert isinstance(worker.endpoint, EbusWorkerEndpoint)
    rid = worker.take()[0][0]
    assert isinstance(rid, bytes)
    worker.endpoint.send([b"REJECT", rid, b"\x00why"])
    worker.carry()
    assert client.take() == [(FAILED, b"call-1", b"\x00why")]


def test_a_call_that_the_broker_does_not_take_is_refused_with_its_code() -> None:
    broker = EbusBroker()
    client = client_wire(broker)
    broker.core.refusing = 1
    ask(client, b"call-1")
    ((what, call_id, why),) = client.take()
    assert (what, call_id) == (REFUSED, b"call-1")
    assert isinstance(why, bytes)
    assert why.startswith(b"DRAINING: ")


def test_a_cancelled_call_fails_and_its_worker_learns_of_it() -> None:
    broker = EbusBroker()
    worker, client = worker_wire(broker, b"hello"), client_wire(broker)
    ask(client, b"call-1")
    ((request_id, _, _),) = worker.take()
    assert isinstance(client.endpoint, EbusClientEndpoint)
    client.endpoint.give_up(b"call-1")
    client.endpoint.give_up(b"no such call")
    assert client.take() == [(FAILED, b"call-1", b"BY_CLIENT: by client")]
    worker.carry()
    assert isinstance(worker.endpoint, EbusWorkerEndpoint)
    assert worker.endpoint.cancelled == [request_id]


def test_a_reply_to_what_was_not_asked_is_discarded() -> None:
    endpoint, broker = opened_client()
    endpoint.request(b"mine", CallOptions(b"hello"), b"")
    for rid in (b"mine", b"mine", b"not mine"):
        broker.append(encode_message([b"", b"EBW01", b"REPLY", rid, b"x"]))
    assert endpoint.receive(b"".join(broker)) == [(ANSWERED, b"mine", b"x")]


@pytest.mark.parametrize(
    "frames",
    [
        [b""],
        [b"", b"EBW01"],
        [b"", b"EBC01", b"REPLY", b"mine", b"x"],
        [b"EBW01", b"REPLY", b"mine", b"x"],
        [b"", b"EBW01", b"REPLY"],
        [b"", b"EBW01", b"NONSENSE", b"x"],
    ],
)
def test_a_client_discards_what_is_not_from_its_broker_or_no_message(frames: list[bytes]) -> None:
    endpoint, _ = opened_client()
    endpoint.request(b"mine", CallOptions(b"hello"), b"")
    assert endpoint.receive(encode_message(frames)) == []
    assert not endpoint.is_over


def opened_client() -> tuple[EbusClientEndpoint, list[bytes]]:
    """A endpoint whose handshake is done, and an empty list of messages to it."""
    endpoint = EbusClientEndpoint(setup(b""))
    broker = ZmtpConnection(b"ROUTER")
    to_broker, to_endpoint = endpoint.opening(), broker.greeting()
    while to_broker or to_endpoint:
        broker.receive(to_broker)
        endpoint.receive(to_endpoint)
        to_broker, to_endpoint = endpoint.data_to_send(), broker.take_outgoing()
    assert endpoint.is_ready
    return endpoint, []


def test_a_worker_serves_several_services_within_its_slots() -> None:
    broker = EbusBroker()
    worker, client = worker_wire(broker, b"hello", b"mail", slots=2), client_wire(broker)
    for number in range(3):
        ask(client, b"call-%d" % number, b"hello" if number % 2 else b"mail")
    assert len(worker.take()) == 2


def test_a_worker_of_more_services_than_a_message_has_frames_is_notified() -> None:
    endpoint = EbusWorkerEndpoint(setup(b""))
    with pytest.raises(ValueError, match="services"):
        endpoint.serve([(1, b"%d" % number) for number in range(SERVICES_MAX + 1)], 1)
    endpoint.serve([(1, b"%d" % number) for number in range(SERVICES_MAX)], 1)
    broker = EbusBroker()
    wire = Wire(broker, "ebus.worker", endpoint)
    assert len(wire.session.work.serves) == SERVICES_MAX


def test_a_worker_that_says_goodbye_still_answers_what_it_has() -> None:
    broker = EbusBroker()
    worker, client = worker_wire(broker, b"hello"), client_wire(broker)
    ask(client, b"call-1")
    ((request_id, _, _),) = worker.take()
    assert isinstance(worker.endpoint, EbusWorkerEndpoint)
    worker.endpoint.goodbye()
    worker.carry()
    ask(client, b"call-2")
    assert worker.take() == []
    worker.endpoint.reply(request_id, b"answer")  # type: ignore[arg-type]
    worker.carry()
    assert client.take() == [(ANSWERED, b"call-1", b"answer")]


@pytest.mark.parametrize("kind", ["client", "worker"])
def test_a_side_that_is_disconnected_is_over_and_says_why(kind: str) -> None:
    broker = EbusBroker()
    wire = client_wire(broker) if kind == "client" else worker_wire(broker, b"hello")
    if kind == "client":
        ask(wire, b"call-1")
    broker.ebus.closing()
    wire.carry()
    assert wire.endpoint.is_over
    assert wire.endpoint.problem == "broker is stopping"


@pytest.mark.parametrize("kind", ["client", "worker"])
def test_a_side_whose_broker_is_silent_pings_five_times_and_is_over(kind: str) -> None:
    broker = EbusBroker()
    wire = client_wire(broker) if kind == "client" else worker_wire(broker, b"hello")
    now_s, pings = 100.0, 0
    while not wire.endpoint.is_over and now_s < 110:
        wire.endpoint.beat(now_s)
        pings += wire.endpoint.data_to_send().count(b"PING")
        now_s += 0.25
    assert pings == 5
    assert wire.endpoint.problem == "the broker is silent"
    assert 102.5 < now_s < 103.6


@pytest.mark.parametrize("kind", ["client", "worker"])
def test_a_side_whose_broker_answers_its_pings_goes_on(kind: str) -> None:
    broker = EbusBroker()
    wire = client_wire(broker) if kind == "client" else worker_wire(broker, b"hello")
    for step in range(80):
        wire.endpoint.beat(100 + step * 0.25)
        wire.carry()
        broker.pass_time(0.25)
    wire.carry()
    assert not wire.endpoint.is_over
    assert wire.session.is_worker == (kind == "worker")


def test_a_worker_that_is_not_taken_on_is_over_not_ready() -> None:
    broker = EbusBroker()
    wire = worker_wire(broker, b"s" * 300)
    assert not wire.endpoint.is_ready
    assert wire.endpoint.is_over


def test_news_go_from_a_publisher_to_a_subscriber() -> None:
    broker = EbusBroker()
    subscriber = ZmtpSubscriberEndpoint(setup(b""))
    subscriber.subscribe(b"A")
    hears = Wire(broker, "ebus.subscribe", subscriber)
    publisher = EbusPublisherEndpoint(setup(b""))
    publisher.publish(b"AB", b"early")
    says = Wire(broker, "ebus.publish", publisher)
    publisher.publish(b"B", b"not heard")
    publisher.publish(b"A", b"later")
    says.carry()
    assert hears.take() == [(b"AB", b"early"), (b"A", b"later")]


def test_a_pulse_asks_after_each_interval_of_silence_and_gives_up_after_the_last() -> None:
    endpoint = EbusClientEndpoint(setup(b""))
    pulse = endpoint.pulse
    assert not pulse.is_ping_due(10.0)
    assert [pulse.is_ping_due(10.0 + step / 4) for step in range(1, 7)] == [False, True] * 3
    pulse.has_received = True
    assert not pulse.is_ping_due(12.0)
    assert [pulse.is_ping_due(12.0 + step / 4) for step in range(1, 12)] == [False, True] * 5 + [False]
    assert not endpoint.is_over
    assert not pulse.is_ping_due(15.0)
    assert endpoint.is_over
    assert endpoint.problem == "the broker is silent"
