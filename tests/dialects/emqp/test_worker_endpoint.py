"""The worker's end of eMQP as our SDK speaks it, against a real session: what one says the other understands."""

from __future__ import annotations

import pytest

from dragoman.dialects.emqp.endpoints import EmqpWorkerEndpoint, timeout_s_of
from dragoman.dialects.endpoint import EndpointSetup, MessageIds
from dragoman.wire.zmtp.frames import encode_message
from tests.core.harness import InMemoryBroker
from tests.dialects.emqp.ready_peers import results


class Link:
    """A worker endpoint and the broker's session for it."""

    def __init__(self, broker: InMemoryBroker, slots: int | None = None) -> None:
        self.broker = broker
        self.endpoint = EmqpWorkerEndpoint(EndpointSetup(b"sdk", MessageIds(b"00000000-0000-4000-a000-")))
        if slots is not None:
            self.endpoint.serve([(10, b"mail")], slots)
        self.session = broker.dialects.session("emqp.worker")
        self.session.start()
        self.jobs: list[tuple[bytes, float, bytes]] = []
        self.session.receive(self.endpoint.opening())
        self.exchange()

    def exchange(self) -> None:
        while True:
            self.broker.commit()
            incoming = self.session.take_all()
            if incoming:
                self.jobs += self.endpoint.receive(incoming)
            outgoing = self.endpoint.data_to_send()
            if not outgoing:
                return
            self.session.receive(outgoing)


def test_it_informs_is_acknowledged_takes_jobs_and_answers_them() -> None:
    broker = InMemoryBroker()
    link = Link(broker, 2)
    assert link.endpoint.is_ready
    client = broker.client()
    first = client.request(b"mail", b"\xff", b"timeout:1.5,reply-requested")
    second = client.request(b"mail", b"2")
    link.exchange()
    assert link.jobs == [(first, 1.5, b"\xff"), (second, 0.0, b"2")]
    link.endpoint.reply(first, b"v" * 70_000)
    link.endpoint.beat(1.0)
    link.endpoint.beat(5.0)
    link.exchange()
    assert results(client) == [(first, b"v" * 70_000)]


def test_it_hears_disconnect() -> None:
    link = Link(InMemoryBroker())
    link.session.receive(encode_message([b"", b"eMQP/1.0", b"READY", b"x"]))
    link.exchange()
    assert link.endpoint.is_over


def test_kbye_alone_does_not_end_the_connection() -> None:
    broker = InMemoryBroker()
    link = Link(broker, 1)
    for session in list(broker.emqp.sessions.values()):
        session.say_goodbye()
    link.exchange()
    assert not link.endpoint.is_over


def test_its_goodbye_makes_it_leave() -> None:
    broker = InMemoryBroker()
    link = Link(broker, 1)
    link.endpoint.goodbye()
    link.exchange()
    broker.client().request(b"mail")
    link.exchange()
    assert link.jobs == []
    assert link.session.work.is_leaving


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (b"", 0.0),
        (b"reply-requested,timeout:2.5", 2.5),
        (b"Timeout : 3", 3.0),
        (b"x-timeout:9", 0.0),
        (b"timeout:soon", 0.0),
        (b"timeout:-1", 0.0),
        (b"timeout:nan", 0.0),
        (b"timeout:1e300", 0.0),
    ],
)
def test_a_timeout_among_the_headers_is_read_or_there_is_none(headers: bytes, seconds: float) -> None:
    assert timeout_s_of(headers) == seconds
