"""Controllers linked: one broker consumes from another what its own workers serve, and the answers find their way back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.core.settings import CoreSettings
from dragoman.dialects.rq.description import LINK
from dragoman.dialects.rq.link import RqLink
from dragoman.model.enums import RQ
from tests.core.harness import InMemoryBroker
from tests.core.replaying import check_replay, restart
from tests.dialects.rq.nodes import Node, consumer, job, request
from tests.dialects.rq.original import OriginalProcess
from tests.dialects.rq.sockets import SocketNode, rq_broker
from tests.dialects.rq.spelling import spelt
from tests.runtime.daemon import Daemon


def few_in_memory() -> CoreSettings:
    settings = CoreSettings()
    settings.head_max = 1
    return settings


class Pair:
    """Two brokers without processes; `near` has a link to `far`."""

    def __init__(self, near: InMemoryBroker | None = None, far: InMemoryBroker | None = None) -> None:
        self.near, self.far = near or InMemoryBroker(), far or InMemoryBroker()
        link = self.near.dialects.session(LINK)
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


def test_a_link_ends_when_a_queue_it_consumes_is_served_here_no_more() -> None:
    """CANCEL_QUEUE would abort an original controller."""
    pair = Pair()
    worker = consumer(pair.near)
    pair.pump()
    worker.leave()
    pair.pump()
    assert pair.to_far == ["QUEUE=q MAX=1 PRIORITY=10 CONSUME"]
    assert pair.link.is_finished
    assert pair.link.is_replaced_at_once


def test_a_link_that_is_to_end_waits_for_what_it_holds_but_not_for_ever() -> None:
    pair = Pair()
    worker, other = consumer(pair.near), consumer(pair.near, queue="other")
    pair.pump()
    client = Node(pair.far)
    client.say(request(1), request(2, queue="other"))
    pair.pump()
    assert len(worker.hears()) == len(other.hears()) == 1
    worker.say("CLEAR ID=0 UNDELIVERED")
    pair.pump()
    assert not pair.link.is_finished
    other.say("CLEAR ID=0 PAYLOAD=ok REPLY")
    pair.pump()
    assert client.hears() == ["ID=2 DELIVERED", "ID=2 PAYLOAD=ok REPLY"]
    assert pair.link.is_finished
    slow = Pair()
    consumer(slow.near, queue="slow")
    leaver = consumer(slow.near)
    slow.pump()
    Node(slow.far).say(request(1, queue="slow"))
    slow.pump()
    leaver.leave()
    slow.pump(29)
    assert not slow.link.is_finished
    slow.pump(2)
    assert slow.link.is_finished


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


def test_what_cannot_be_delivered_here_goes_back_there_with_the_end_of_the_link() -> None:
    """An original controller registers no UNDELIVERED, and would keep the link's slot taken for ever."""
    pair = Pair()
    worker = consumer(pair.near)
    pair.pump()
    client = Node(pair.far)
    client.say(request(1))
    pair.pump()
    worker.say("CLEAR ID=0 UNDELIVERED")
    pair.pump()
    assert pair.to_far[1:] == []
    assert pair.link.is_finished
    assert not pair.link.is_replaced_at_once
    pair.link.ended()
    pair.seat.leave()
    assert consumer(pair.far).hears() == [job(0)]


def test_links_that_end_are_not_taken_for_workers_that_a_message_killed() -> None:
    far = InMemoryBroker()
    client = Node(far)
    client.say(request(1, options="RETRIES=3"))
    for _ in range(3):
        pair = Pair(far=far)
        worker = consumer(pair.near)
        pair.pump()
        assert worker.hears() == [job(0)]
        worker.say("CLEAR ID=0 UNDELIVERED")
        pair.pump()
        pair.link.ended()
        pair.seat.leave()
    assert far.facts("quarantined") == []
    assert consumer(far).hears() == [job(0)]


@pytest.mark.parametrize("by_checkpoint", [False, True])
@pytest.mark.parametrize("is_given", [False, True])
def test_what_came_over_a_link_is_cancelled_when_the_broker_comes_back(by_checkpoint: bool, is_given: bool) -> None:
    near = InMemoryBroker(few_in_memory())
    consumer(near)
    busy = Node(near)
    if not is_given:
        busy.say(*(request(number, body="own") for number in range(4)))
    pair = Pair(near)
    pair.pump()
    Node(pair.far).say(request(1, body="theirs"))
    pair.pump()
    after = restart(near, by_checkpoint=by_checkpoint)
    after.dialects.rq.listening()
    again = consumer(after, options="MAX=9")
    assert again.hears() == [] if is_given else [job(number, "own") for number in range(4)]
    assert [(f["outcome"], f["reason"]) for f in after.facts("closed")] == [("cancelled", "connection_ended")]
    check_replay(after)


def test_a_broadcast_at_the_far_controller_is_received_here() -> None:
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
def test_a_request_for_which_neither_of_two_linked_controllers_has_a_slot_does_not_go_to_and_fro(options: str) -> None:
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


def test_a_draining_broker_ends_its_links_without_a_word_once_their_requests_are_answered() -> None:
    """CLOSING would abort an original controller that knows any message."""
    pair = Pair()
    worker = consumer(pair.near)
    pair.pump()
    client = Node(pair.far)
    client.say(request(1))
    pair.pump()
    pair.near.dialects.rq.draining()
    pair.pump()
    assert not pair.link.is_finished
    worker.say("CLEAR ID=0 PAYLOAD=ok REPLY")
    pair.pump()
    assert pair.to_far[1:] == ["ID=0 DELIVERED", "ID=0 PAYLOAD=ok REPLY"]
    assert pair.link.is_finished


def test_a_broker_that_stops_ends_its_links_without_a_word() -> None:
    pair = Pair()
    consumer(pair.near)
    pair.pump()
    client = Node(pair.far)
    client.say(request(1))
    pair.pump()
    pair.near.dialects.rq.draining()
    pair.near.dialects.rq.closing()
    pair.pump()
    assert pair.to_far[1:] == []
    assert pair.link.is_finished
    assert pair.near.core.open_messages(RQ) == []


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


@pytest.fixture
def original() -> Iterator[OriginalProcess]:
    process = OriginalProcess()
    yield process
    process.close()


def linked(tmp_path: Path, original: OriginalProcess) -> Daemon:
    return rq_broker(tmp_path / "near", f"rq.upstreams={original.place}", "rq.upstream_retry_s=0.2").start()


def socket_consumer(broker: Daemon, queue: str = "q") -> SocketNode:
    node = SocketNode(broker)
    node.say(f"CLEAR QUEUE={queue} MAX=1 PRIORITY=20 CONSUME")
    node.hear_consuming(queue)
    return node


def test_an_original_controller_survives_workers_that_leave_and_requests_they_return(
    tmp_path: Path, original: OriginalProcess
) -> None:
    broker = linked(tmp_path, original)
    try:
        with socket_consumer(broker) as worker:
            original.wait_for(lambda it: it.consumed == ["q"])
            original.request("q", "first")
            assert worker.hear().endswith("PAYLOAD=first ID=0 REQUEST")
            worker.say("CLEAR ID=0 UNDELIVERED")
            original.wait_for(lambda it: it.links == 2 and it.consumed == ["q"])
            original.request("q", "second")
            assert worker.hear().endswith("PAYLOAD=second ID=0 REQUEST")
            worker.say("CLEAR ID=0 DELIVERED", "CLEAR ID=0 PAYLOAD=ok REPLY")
            original.wait_for(lambda it: it.answers == {"second": "ok"})
        original.wait_for(lambda it: it.links == 3 and not it.consumed)
        with socket_consumer(broker):
            original.wait_for(lambda it: it.consumed == ["q"])
    finally:
        broker.kill()


@pytest.mark.parametrize("is_answered", [False, True])
def test_an_original_controller_survives_sigterm_with_a_request_in_flight(
    tmp_path: Path, original: OriginalProcess, is_answered: bool
) -> None:
    broker = linked(tmp_path, original)
    try:
        with socket_consumer(broker) as worker:
            original.wait_for(lambda it: it.consumed == ["q"])
            original.request("q", "held")
            assert worker.hear().endswith("PAYLOAD=held ID=0 REQUEST")
            broker.process.terminate()
            assert worker.hear() == "CLOSING"
            if is_answered:
                worker.say("CLEAR ID=0 DELIVERED", "CLEAR ID=0 PAYLOAD=ok REPLY")
                original.wait_for(lambda it: it.answers == {"held": "ok"})
            else:
                worker.close()
            original.wait_for(lambda it: not it.consumed, wait_s=60)
    finally:
        broker.kill()


def test_what_came_over_a_link_does_not_run_again_after_kill_9(tmp_path: Path, original: OriginalProcess) -> None:
    broker = linked(tmp_path, original)
    try:
        with socket_consumer(broker) as worker:
            original.wait_for(lambda it: it.consumed == ["q"])
            original.request("q", "held")
            assert worker.hear().endswith("PAYLOAD=held ID=0 REQUEST")
            broker.kill()
        broker.start()
        with socket_consumer(broker) as worker, SocketNode(broker) as client:
            client.say("CLEAR ID=1 QUEUE=q PAYLOAD=after REQUEST")
            assert worker.hear().endswith("PAYLOAD=after ID=0 REQUEST")
    finally:
        broker.kill()
