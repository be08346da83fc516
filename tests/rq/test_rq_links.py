"""Controllers linked: one broker consumes from another what its own workers serve, and the answers find their way back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.dialects.registry import RQ_LINK
from dragoman.dialects.rq.link import RqLink
from dragoman.model.words import RQ
from tests.core.harness import House
from tests.rq.nodes import Node, consumer, job, request
from tests.rq.sockets import SocketNode, rq_broker
from tests.rq.spelling import spelt
from tests.runtime.daemon import Daemon


class Pair:
    """Two brokers without processes; `near` has a link to `far`."""

    def __init__(self, near: House | None = None, far: House | None = None) -> None:
        self.near, self.far = near or House(), far or House()
        link = self.near.dialects.session(RQ_LINK)
        assert isinstance(link, RqLink)
        self.link = link
        link.start()
        self.seat = Node(self.far)  # the far end of the link
        self.to_far: list[str] = []
        self.to_near: list[str] = []

    def pump(self, seconds: float = 0.6) -> None:
        """Let what was said reach the other side, and time pass on both, until nothing more is said."""
        self.near.pass_time(seconds)
        self.far.pass_time(seconds)
        while True:
            self.near.commit()
            self.far.commit()
            there, here = self.link.take_all(), self.seat.session.take_all()
            if not there and not here:
                return
            self.to_far += spelt(there)
            self.to_near += spelt(here)
            if there:
                self.seat.give(there)
            if here:
                self.link.receive(here)


def test_a_link_talks_as_the_original_controllers_do() -> None:
    """As in the recording librq_federation."""
    pair = Pair()
    worker = consumer(pair.near, queue="q1")
    pair.pump()
    assert pair.to_far == ["QUEUE=q1 MAX=1 PRIORITY=10 CONSUME"]
    assert pair.to_near == ["QUEUEID=1 QUEUE=q1 CONSUMING"]
    client = Node(pair.far)
    client.say(request(9, "q1", "fed"))
    pair.pump()
    assert pair.to_near[1:] == [job(0, "fed")]
    assert worker.hears() == [job(0, "fed")]
    assert pair.to_far[1:] == []
    worker.say("CLEAR ID=0 DELIVERED")
    pair.pump()
    worker.say("CLEAR ID=0 PAYLOAD=ok REPLY")
    pair.pump()
    assert pair.to_far[1:] == ["ID=0 DELIVERED", "ID=0 PAYLOAD=ok REPLY"]
    assert client.hears() == ["ID=9 DELIVERED", "ID=9 PAYLOAD=ok REPLY"]


def test_the_other_controllers_own_consumers_come_first() -> None:
    pair = Pair()
    here = consumer(pair.near)
    there = consumer(pair.far)
    pair.pump()
    client = Node(pair.far)
    client.say(request(1, body="a"), request(2, body="b"))
    pair.pump()
    assert there.hears() == [job(0, "a")]
    assert here.hears() == [job(0, "b")]


def test_a_queue_nobody_serves_here_any_more_is_cancelled_there() -> None:
    pair = Pair()
    worker = consumer(pair.near)
    pair.pump()
    worker.leave()
    pair.pump()
    assert pair.to_far == ["QUEUE=q MAX=1 PRIORITY=10 CONSUME", "QUEUE=q CANCEL_QUEUE"]


def test_a_request_without_a_reply_is_delivered_there_once_it_is_done_here() -> None:
    pair = Pair()
    worker = consumer(pair.near)
    pair.pump()
    Node(pair.far).say(request(1, options="NOREPLY"))
    pair.pump()
    assert worker.hears() == [job(0, flag="NOREPLY")]
    assert pair.to_far[1:] == []
    worker.say("CLEAR ID=0 DELIVERED")
    pair.pump()
    assert pair.to_far[1:] == ["ID=0 DELIVERED"]
    assert [fact["outcome"] for fact in pair.far.facts("closed")] == ["done"]


def test_what_cannot_be_delivered_here_goes_back_there() -> None:
    pair = Pair()
    worker = consumer(pair.near)
    pair.pump()
    client = Node(pair.far)
    client.say(request(1))
    pair.pump()
    worker.say("CLEAR ID=0 UNDELIVERED")
    pair.pump()
    assert pair.to_far[1:] == ["ID=0 UNDELIVERED"]
    assert client.hears() == ["ID=1 UNDELIVERED"]


def test_a_broadcast_there_is_heard_here() -> None:
    pair = Pair()
    worker = consumer(pair.near)
    pair.pump()
    Node(pair.far).say("CLEAR QUEUE=q PAYLOAD=all BROADCAST")
    pair.pump()
    assert worker.hears() == ["QUEUEID=1 PAYLOAD=all BROADCAST"]


def test_two_controllers_linked_to_each_other_pass_nothing_in_circles() -> None:
    first = Pair()
    second = Pair(first.far, first.near)
    worker = consumer(first.near)
    for _ in range(4):
        first.pump()
        second.pump()
    # The far broker has no worker but the near one's link, which is of low priority.
    assert first.to_far == ["QUEUE=q MAX=1 PRIORITY=10 CONSUME"]
    assert second.to_far == []
    other = consumer(first.far)
    for _ in range(4):
        first.pump()
        second.pump()
    Node(first.far).say("CLEAR QUEUE=q PAYLOAD=all BROADCAST")
    for _ in range(4):
        first.pump()
        second.pump()
    assert worker.hears() == other.hears() == ["QUEUEID=1 PAYLOAD=all BROADCAST"]


@pytest.mark.parametrize("options", ["", "NOREPLY"])
def test_what_neither_of_two_linked_controllers_has_room_for_does_not_go_to_and_fro(options: str) -> None:
    first = Pair()
    second = Pair(first.far, first.near)
    here, there = consumer(first.near), consumer(first.far)

    def pump(times: int) -> None:
        for _ in range(times):
            first.pump(0.1)
            second.pump(0.1)

    pump(10)
    client = Node(first.near)
    client.say(*(request(number, body=f"r{number}", options=options) for number in range(6)))
    pump(20)
    passed = len([said for said in first.to_near + second.to_near if said.endswith("REQUEST")])
    assert passed <= 3
    done: list[str] = []
    for _ in range(20):
        for worker in (here, there):
            for said in worker.hears():
                if said.endswith("REQUEST"):
                    done.append(said.split()[1])
                    worker.say("CLEAR ID=0 DELIVERED" if options else "CLEAR ID=0 PAYLOAD=ok REPLY")
        pump(2)
    assert sorted(done) == [f"PAYLOAD=r{number}" for number in range(6)]
    assert first.near.core.open_messages(RQ) == first.far.core.open_messages(RQ) == []


@pytest.mark.parametrize("options", ["", "NOREPLY"])
def test_a_lost_link_ends_here_what_the_other_controller_gives_to_others_now(options: str) -> None:
    pair = Pair()
    worker = consumer(pair.near)
    pair.pump()
    client = Node(pair.far)
    client.say(request(1, options=options))
    pair.pump()
    assert worker.hears() == [job(0, flag=options)]
    pair.link.ended()
    pair.seat.leave()
    assert pair.near.core.open_messages(5) == []
    again = consumer(pair.far)
    assert again.hears() == [job(0, flag=options)]


def test_a_full_closing_or_silent_controller_is_left() -> None:
    for words in (b"\x17", b"\x01\x16"):
        pair = Pair()
        pair.link.receive(words)
        assert pair.link.is_finished
    pair = Pair()
    pair.near.pass_time(29)
    assert not pair.link.is_finished
    pair.near.pass_time(2)
    assert pair.link.is_finished


def test_a_draining_broker_closes_its_links_and_gives_back_what_cannot_finish() -> None:
    pair = Pair()
    consumer(pair.near)
    pair.pump()
    client = Node(pair.far)
    client.say(request(1))
    pair.pump()
    pair.near.dialects.rq.draining()
    pair.near.dialects.rq.closing()
    pair.pump()
    assert pair.to_far[1:] == ["CLOSING", "ID=0 UNDELIVERED"]
    assert pair.link.is_finished


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[tuple[Daemon, Daemon]]:
    far = rq_broker(tmp_path / "far").start()
    host, port = far.place("rq")
    near = rq_broker(tmp_path / "near", f"rq.upstreams={host}:{port}", "rq.upstream_retry_s=0.2").start()
    yield near, far
    for broker in (near, far):
        if broker.process.is_running():
            broker.kill()


def test_linked_broker_processes_serve_each_others_requests_and_find_each_other_again(
    brokers: tuple[Daemon, Daemon],
) -> None:
    near, far = brokers
    with SocketNode(near) as worker:
        worker.say("CLEAR QUEUE=q MAX=9 PRIORITY=20 CONSUME")
        assert worker.hear() == "QUEUEID=1 QUEUE=q CONSUMING"
        for number in range(3):
            with SocketNode(far) as client:
                client.say(f"CLEAR ID=7 QUEUE=q PAYLOAD=fed{number} REQUEST")
                assert worker.hear() == f"QUEUEID=1 PAYLOAD=fed{number} ID=0 REQUEST"
                worker.say("CLEAR ID=0 DELIVERED", "CLEAR ID=0 PAYLOAD=ok REPLY")
                assert client.hear() == "ID=7 DELIVERED"
                assert client.hear() == "ID=7 PAYLOAD=ok REPLY"
            if number == 1:
                far.kill()
                far.start()
    assert len(near.lines("link to another controller is up")) == 2
