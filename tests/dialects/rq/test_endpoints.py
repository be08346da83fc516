"""The ends of rq that programs of ours use, against the broker's own sessions and against a controller that says anything."""

from __future__ import annotations

import pytest

from dragoman.dialects.endpoint import ANSWERED, FAILED, KEPT, REFUSED, CallOptions, Endpoint, EndpointSetup, MessageIds
from dragoman.dialects.rq.endpoints import RqClientEndpoint, RqPublisherEndpoint, RqSubscriberEndpoint, RqWorkerEndpoint
from tests.core.harness import InMemoryBroker
from tests.dialects.rq.nodes import Node, consumer, job
from tests.dialects.rq.spelling import risp, spelt

SETUP = EndpointSetup(b"", MessageIds(b"x" * 24))


class Line:
    """A endpoint connected to a session of a broker without a process."""

    def __init__(self, broker: InMemoryBroker, endpoint: Endpoint) -> None:
        self.node = Node(broker)
        self.endpoint = endpoint
        out = endpoint.opening()
        assert out == b""

    def push(self) -> None:
        """What the endpoint has to say reaches the broker."""
        out = self.endpoint.data_to_send()
        if out:
            self.node.give(out)

    def pull(self) -> bytes:
        """What the broker has to say."""
        self.node.broker.commit()
        return self.node.session.take_all()


def call_options(queue: bytes = b"q", wants_reply: bool = True) -> CallOptions:
    asked = CallOptions(queue)
    asked.wants_reply = wants_reply
    return asked


def serving(broker: InMemoryBroker, slots: int = 1) -> tuple[Line, RqWorkerEndpoint]:
    endpoint = RqWorkerEndpoint(SETUP)
    line = Line(broker, endpoint)
    endpoint.serve([(10, b"q")], slots)
    assert not endpoint.is_ready
    line.push()
    assert endpoint.receive(line.pull()) == []
    assert endpoint.is_ready
    return line, endpoint


def test_a_call_goes_to_a_worker_and_its_answer_comes_back() -> None:
    broker = InMemoryBroker()
    worker_line, worker = serving(broker)
    client = RqClientEndpoint(SETUP)
    client_line = Line(broker, client)
    assert client.is_ready
    client.request(b"call-1", call_options(), b"hello")
    client_line.push()
    ((request_id, seconds, body),) = worker.receive(worker_line.pull())
    assert (seconds, body) == (0.0, b"hello")
    worker_line.push()
    assert client.receive(client_line.pull()) == []  # DELIVERED is no news to a caller
    worker.reply(request_id, b"world")
    worker.ready(1)
    worker_line.push()
    assert client.receive(client_line.pull()) == [(ANSWERED, b"call-1", b"world")]


def test_a_call_without_a_reply_is_kept_and_the_workers_delivered_comes_when_it_is_done() -> None:
    broker = InMemoryBroker()
    worker_line, worker = serving(broker)
    client = RqClientEndpoint(SETUP)
    client_line = Line(broker, client)
    client.request(b"call-1", call_options(wants_reply=False), b"fire")
    client_line.push()
    assert client.receive(client_line.pull()) == [(KEPT, b"call-1", b"")]
    ((request_id, _, _),) = worker.receive(worker_line.pull())
    assert worker.data_to_send() == b""
    worker.reply(request_id, b"nobody wants it")
    assert spelt(worker.data_to_send()) == ["ID=0 DELIVERED"]


def test_what_the_options_ask_for_is_sent() -> None:
    client = RqClientEndpoint(SETUP)
    client.opening()
    asked = call_options()
    asked.retries, asked.expires_ns = 1000, 1_500_000_000
    client.request(b"a", asked, b"x")
    client.request(b"b", call_options(wants_reply=False), b"y")
    client.give_up(b"a")
    assert spelt(client.data_to_send()) == [
        "ID=0 QUEUE=q PAYLOAD=x RETRIES=255 TIMEOUT=2 REQUEST",
        "ID=1 QUEUE=q PAYLOAD=y NOREPLY REQUEST",
    ]


def test_a_publisher_broadcasts_and_is_over_when_its_controller_closes() -> None:
    publisher = RqPublisherEndpoint(SETUP)
    publisher.opening()
    publisher.publish(b"topic", b"news")
    assert spelt(publisher.data_to_send()) == ["QUEUE=topic PAYLOAD=news BROADCAST"]
    with pytest.raises(ValueError, match="1 to 255 bytes"):
        publisher.publish(b"", b"news")
    publisher.receive(risp("CLEAR CLOSING"))
    assert publisher.is_over


def test_ids_of_calls_are_used_again_only_when_they_are_settled() -> None:
    client = RqClientEndpoint(SETUP)
    for name in (b"a", b"b", b"c"):
        client.request(name, call_options(), b"")
    client.data_to_send()
    assert client.receive(risp("CLEAR ID=1 DELIVERED CLEAR ID=1 PAYLOAD=x REPLY")) == [(ANSWERED, b"b", b"x")]
    client.request(b"d", call_options(), b"")
    assert spelt(client.data_to_send()) == ["ID=1 QUEUE=q PAYLOAD= REQUEST"]
    assert client.receive(risp("CLEAR ID=9 PAYLOAD=x REPLY CLEAR ID=9 DELIVERED CLEAR ID=9 UNDELIVERED")) == []


def test_undelivered_is_a_failure_and_from_a_closing_controller_a_refusal() -> None:
    client = RqClientEndpoint(SETUP)
    for name in (b"a", b"b", b"c"):
        client.request(name, call_options(), b"")
    assert client.receive(risp("CLEAR ID=0 UNDELIVERED")) == [(FAILED, b"a", b"UNDELIVERED")]
    assert client.receive(risp("CLEAR ID=1 DELIVERED CLEAR CLOSING")) == []
    assert not client.is_over
    assert client.receive(risp("CLEAR ID=1 UNDELIVERED CLEAR ID=2 UNDELIVERED")) == [
        (FAILED, b"b", b"UNDELIVERED"),
        (REFUSED, b"c", b"UNDELIVERED"),
    ]
    assert client.is_over
    assert client.problem == "the broker is closing"


def test_a_closing_controller_is_left_once_everything_held_is_answered() -> None:
    broker = InMemoryBroker()
    line, worker = serving(broker)
    Node(broker).say("CLEAR ID=1 QUEUE=q PAYLOAD=x REQUEST")
    ((request_id, _, _),) = worker.receive(line.pull())
    broker.dialects.rq.draining()
    worker.receive(line.pull())
    assert not worker.is_over
    worker.reply(request_id, b"")
    assert worker.is_over


def test_a_worker_that_says_goodbye_gets_nothing_new_and_is_disconnected_once_it_has_answered() -> None:
    broker = InMemoryBroker()
    line, worker = serving(broker, slots=2)
    client = Node(broker)
    client.say("CLEAR ID=1 QUEUE=q PAYLOAD=x REQUEST")
    ((request_id, _, _),) = worker.receive(line.pull())
    worker.goodbye()
    line.push()
    client.say("CLEAR ID=2 QUEUE=q PAYLOAD=x REQUEST")
    assert worker.receive(line.pull()) == []
    worker.reply(request_id, b"")
    line.push()
    assert line.node.is_ended_by_us()


@pytest.mark.parametrize("kind", [RqClientEndpoint, RqWorkerEndpoint, RqSubscriberEndpoint])
def test_every_side_leaves_a_full_controller(
    kind: type[RqClientEndpoint | RqWorkerEndpoint | RqSubscriberEndpoint],
) -> None:
    endpoint = kind(SETUP)
    endpoint.opening()
    endpoint.receive(b"\x17")
    assert endpoint.is_over
    assert endpoint.problem == "the broker has as many connections as it takes"


@pytest.mark.parametrize("kind", [RqClientEndpoint, RqWorkerEndpoint, RqSubscriberEndpoint])
def test_every_side_answers_ping_pings_after_15_seconds_and_leaves_after_30(
    kind: type[RqClientEndpoint | RqWorkerEndpoint | RqSubscriberEndpoint],
) -> None:
    endpoint = kind(SETUP)
    endpoint.opening()
    endpoint.receive(b"\x05")
    assert endpoint.data_to_send() == b"\x06"
    for quarter in range(59):
        endpoint.beat(100 + quarter / 4)
    assert endpoint.data_to_send() == b""
    endpoint.beat(115)
    assert endpoint.data_to_send() == b"\x05"
    endpoint.receive(b"\x06")
    endpoint.beat(120)
    endpoint.beat(135)
    assert endpoint.data_to_send() == b"\x05"
    assert not endpoint.is_over
    endpoint.beat(150)
    assert endpoint.is_over
    assert endpoint.problem == "the broker does not answer PING"


def test_a_subscriber_hears_the_broadcasts_of_its_queues_and_gets_no_requests() -> None:
    broker = InMemoryBroker()
    endpoint = RqSubscriberEndpoint(SETUP)
    line = Line(broker, endpoint)
    endpoint.subscribe(b"news")
    endpoint.subscribe(b"weather")
    line.push()
    assert endpoint.receive(line.pull()) == []
    node = Node(broker)
    node.say("CLEAR QUEUE=weather PAYLOAD=rain BROADCAST CLEAR QUEUE=newspaper PAYLOAD=no BROADCAST")
    node.say("CLEAR QUEUE=news PAYLOAD=big BROADCAST CLEAR ID=1 QUEUE=news PAYLOAD=job REQUEST")
    assert endpoint.receive(line.pull()) == [(b"weather", b"rain"), (b"news", b"big")]
    assert consumer(broker, queue="news").hears() == [job(0, "job")]


def test_a_subscriber_gives_back_what_a_controller_that_ignores_priorities_sends_it() -> None:
    endpoint = RqSubscriberEndpoint(SETUP)
    endpoint.receive(risp("CLEAR QUEUEID=1 QUEUE=q CONSUMING CLEAR QUEUEID=1 PAYLOAD=x ID=4 REQUEST"))
    assert spelt(endpoint.data_to_send()) == ["ID=4 UNDELIVERED"]


@pytest.mark.parametrize("name", [b"", b"x" * 256])
def test_a_name_that_rq_cannot_spell_is_refused(name: bytes) -> None:
    with pytest.raises(ValueError, match="1 to 255 bytes"):
        RqClientEndpoint(SETUP).request(b"a", call_options(name), b"")
    with pytest.raises(ValueError, match="1 to 255 bytes"):
        RqWorkerEndpoint(SETUP).serve([(1, name)], 1)
    with pytest.raises(ValueError, match="1 to 255 bytes"):
        RqSubscriberEndpoint(SETUP).subscribe(name)
