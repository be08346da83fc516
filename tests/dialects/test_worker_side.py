"""The worker's end of eMQP as our SDK speaks it, against a real session: what one says the other understands."""

from __future__ import annotations

import pytest

from dragoman.dialects.emqp.client_side import MessageIds
from dragoman.dialects.emqp.worker_side import WorkerSide, timeout_s_of
from dragoman.limits import MESSAGE_SIZE_MAX
from tests.core.harness import House
from tests.dialects.shop import results


class Link:
    """A worker side and the broker's session for it, byte by byte or at once."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.side = WorkerSide(b"sdk", MESSAGE_SIZE_MAX, MessageIds(b"00000000-0000-4000-a000-"))
        self.session = house.dialects.session("emqp.worker")
        self.session.start()
        self.jobs: list[tuple[bytes, float, bytes]] = []
        self.session.receive(self.side.zmtp.greeting())
        self.exchange()

    def exchange(self) -> None:
        while True:
            self.house.commit()
            incoming = self.session.take_all()
            if incoming:
                self.jobs += self.side.receive(incoming)
            outgoing = self.side.zmtp.take_outgoing() + (self.side.take_out() if self.side.zmtp.is_ready else b"")
            if not outgoing:
                return
            self.session.receive(outgoing)


def test_it_informs_is_acknowledged_takes_jobs_and_answers_them() -> None:
    house = House()
    link = Link(house)
    link.side.inform(b'[[10,"mail"]]')
    link.side.ready(2)
    link.exchange()
    assert link.side.is_acknowledged
    client = house.client()
    first = client.request(b"mail", b"\xff", b"timeout:1.5,reply-requested")
    second = client.request(b"mail", b"2")
    link.exchange()
    assert link.jobs == [(first, 1.5, b"\xff"), (second, 0.0, b"2")]
    link.side.reply(first, b"v" * 70_000)
    link.side.heartbeat(b"1.0")
    link.exchange()
    assert results(client) == [(first, b"v" * 70_000)]


def test_it_hears_disconnect_and_kbye() -> None:
    house = House()
    link = Link(house)
    link.side.ready(1)
    link.exchange()
    assert link.side.is_sent_away
    assert not link.side.is_acknowledged
    link.side.inform(b'[[10,"mail"]]')
    link.exchange()
    for session in list(house.emqp.sessions.values()):
        session.say_goodbye()
    link.exchange()
    assert link.side.is_broker_leaving


def test_its_goodbye_makes_it_leave() -> None:
    house = House()
    link = Link(house)
    link.side.inform(b'[[10,"mail"]]')
    link.side.ready(1)
    link.side.goodbye()
    link.exchange()
    house.client().request(b"mail")
    link.exchange()
    assert link.jobs == []
    assert link.session.is_leaving


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
