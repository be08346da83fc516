"""The ends of rq that programs of ours use, against the broker's own sessions and against a controller that says anything."""

from __future__ import annotations

import pytest

from dragoman.dialects.rq.client_side import RqClientSide
from dragoman.dialects.rq.subscriber_side import RqSubscriberSide
from dragoman.dialects.rq.worker_side import RqWorkerSide
from dragoman.dialects.sides import ANSWERED, FAILED, KEPT, REFUSED, Side, Wish
from tests.core.harness import House
from tests.rq.nodes import Node, consumer, job
from tests.rq.spelling import risp, spelt


class Line:
    """A side connected to a session of a broker without a process."""

    def __init__(self, house: House, side: Side) -> None:
        self.node = Node(house)
        self.side = side
        out = side.opening()
        assert out == b""

    def push(self) -> None:
        """What the side has to say reaches the broker."""
        out = self.side.take_out()
        if out:
            self.node.give(out)

    def pull(self) -> bytes:
        """What the broker has to say."""
        self.node.house.commit()
        return self.node.session.take_all()


def wish(queue: bytes = b"q", wants_reply: bool = True) -> Wish:
    asked = Wish(queue)
    asked.wants_reply = wants_reply
    return asked


def serving(house: House, slots: int = 1) -> tuple[Line, RqWorkerSide]:
    side = RqWorkerSide()
    line = Line(house, side)
    side.serve([(10, b"q")], slots)
    assert not side.is_ready
    line.push()
    assert side.receive(line.pull()) == []
    assert side.is_ready
    return line, side


def test_a_call_goes_to_a_worker_and_its_answer_comes_back() -> None:
    house = House()
    worker_line, worker = serving(house)
    client = RqClientSide()
    client_line = Line(house, client)
    assert client.is_ready
    client.request(b"call-1", wish(), b"hello")
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
    house = House()
    worker_line, worker = serving(house)
    client = RqClientSide()
    client_line = Line(house, client)
    client.request(b"call-1", wish(wants_reply=False), b"fire")
    client_line.push()
    assert client.receive(client_line.pull()) == [(KEPT, b"call-1", b"")]
    ((request_id, _, _),) = worker.receive(worker_line.pull())
    assert worker.take_out() == b""
    worker.reply(request_id, b"nobody wants it")
    assert spelt(worker.take_out()) == ["ID=0 DELIVERED"]


def test_what_a_wish_can_say_is_said() -> None:
    client = RqClientSide()
    client.opening()
    asked = wish()
    asked.retries, asked.expires_ns = 1000, 1_500_000_000
    client.request(b"a", asked, b"x")
    client.request(b"b", wish(wants_reply=False), b"y")
    client.publish(b"topic", b"news")
    client.cancel(b"a")
    assert spelt(client.take_out()) == [
        "ID=0 QUEUE=q PAYLOAD=x RETRIES=255 TIMEOUT=2 REQUEST",
        "ID=1 QUEUE=q PAYLOAD=y NOREPLY REQUEST",
        "QUEUE=topic PAYLOAD=news BROADCAST",
    ]


def test_ids_of_calls_are_used_again_only_when_they_are_settled() -> None:
    client = RqClientSide()
    for name in (b"a", b"b", b"c"):
        client.request(name, wish(), b"")
    client.take_out()
    assert client.receive(risp("CLEAR ID=1 DELIVERED CLEAR ID=1 PAYLOAD=x REPLY")) == [(ANSWERED, b"b", b"x")]
    client.request(b"d", wish(), b"")
    assert spelt(client.take_out()) == ["ID=1 QUEUE=q PAYLOAD= REQUEST"]
    assert client.receive(risp("CLEAR ID=9 PAYLOAD=x REPLY CLEAR ID=9 DELIVERED CLEAR ID=9 UNDELIVERED")) == []


def test_undelivered_is_a_failure_and_from_a_closing_controller_a_refusal() -> None:
    client = RqClientSide()
    for name in (b"a", b"b", b"c"):
        client.request(name, wish(), b"")
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
    house = House()
    line, worker = serving(house)
    Node(house).say("CLEAR ID=1 QUEUE=q PAYLOAD=x REQUEST")
    ((request_id, _, _),) = worker.receive(line.pull())
    house.dialects.rq.draining()
    worker.receive(line.pull())
    assert not worker.is_over
    worker.reply(request_id, b"")
    assert worker.is_over


def test_a_worker_that_says_goodbye_gets_nothing_new_and_is_disconnected_once_it_has_answered() -> None:
    house = House()
    line, worker = serving(house, slots=2)
    client = Node(house)
    client.say("CLEAR ID=1 QUEUE=q PAYLOAD=x REQUEST")
    ((request_id, _, _),) = worker.receive(line.pull())
    worker.goodbye()
    line.push()
    client.say("CLEAR ID=2 QUEUE=q PAYLOAD=x REQUEST")
    assert worker.receive(line.pull()) == []
    worker.reply(request_id, b"")
    line.push()
    assert line.node.is_ended_by_us()


@pytest.mark.parametrize("kind", [RqClientSide, RqWorkerSide, RqSubscriberSide])
def test_every_side_leaves_a_full_controller(kind: type[RqClientSide | RqWorkerSide | RqSubscriberSide]) -> None:
    side = kind()
    side.opening()
    side.receive(b"\x17")
    assert side.is_over
    assert side.problem == "the broker has as many connections as it takes"


@pytest.mark.parametrize("kind", [RqClientSide, RqWorkerSide, RqSubscriberSide])
def test_every_side_answers_ping_pings_after_15_seconds_and_leaves_after_30(
    kind: type[RqClientSide | RqWorkerSide | RqSubscriberSide],
) -> None:
    side = kind()
    side.opening()
    side.receive(b"\x05")
    assert side.take_out() == b"\x06"
    for quarter in range(59):
        side.beat(100 + quarter / 4)
    assert side.take_out() == b""
    side.beat(115)
    assert side.take_out() == b"\x05"
    side.receive(b"\x06")
    side.beat(120)
    side.beat(135)
    assert side.take_out() == b"\x05"
    assert not side.is_over
    side.beat(150)
    assert side.is_over
    assert side.problem == "the broker does not answer PING"


def test_a_subscriber_hears_the_broadcasts_of_its_queues_and_gets_no_requests() -> None:
    house = House()
    side = RqSubscriberSide()
    line = Line(house, side)
    side.subscribe(b"news")
    side.subscribe(b"weather")
    line.push()
    assert side.receive(line.pull()) == []
    node = Node(house)
    node.say("CLEAR QUEUE=weather PAYLOAD=rain BROADCAST CLEAR QUEUE=newspaper PAYLOAD=no BROADCAST")
    node.say("CLEAR QUEUE=news PAYLOAD=big BROADCAST CLEAR ID=1 QUEUE=news PAYLOAD=job REQUEST")
    assert side.receive(line.pull()) == [(b"weather", b"rain"), (b"news", b"big")]
    assert consumer(house, queue="news").hears() == [job(0, "job")]


def test_a_subscriber_gives_back_what_a_controller_that_ignores_priorities_sends_it() -> None:
    side = RqSubscriberSide()
    side.receive(risp("CLEAR QUEUEID=1 QUEUE=q CONSUMING CLEAR QUEUEID=1 PAYLOAD=x ID=4 REQUEST"))
    assert spelt(side.take_out()) == ["ID=4 UNDELIVERED"]


@pytest.mark.parametrize("name", [b"", b"x" * 256])
def test_a_name_that_rq_cannot_spell_is_refused(name: bytes) -> None:
    with pytest.raises(ValueError, match="1 to 255 bytes"):
        RqClientSide().request(b"a", wish(name), b"")
    with pytest.raises(ValueError, match="1 to 255 bytes"):
        RqWorkerSide().serve([(1, name)], 1)
    with pytest.raises(ValueError, match="1 to 255 bytes"):
        RqSubscriberSide().subscribe(name)
