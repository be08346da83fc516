"""Workers of every kind as the core sees them: ranks, exclusive claims, load, confirmations, refusals, body_constraint."""

from __future__ import annotations

import pytest

from dragoman.core.core import Core
from dragoman.core.settings import CoreSettings
from dragoman.core.timers import Timers
from dragoman.model.enums import (
    BROKER_STOPPED,
    EMQP,
    EXPIRES_HELD,
    HANDOVER_WANTED,
    INEXPRESSIBLE,
    PAST_EXPIRY,
    REFUSED_BY_WORKER,
    REPLY_WANTED,
    RETURNED,
    RQ,
    TAKEN,
)
from dragoman.model.facts.decode import decode_block
from dragoman.model.message import Message
from dragoman.model.peer import TAKES_NO_CONTROL_WORDS, TAKES_TEXT, Peer
from dragoman.model.units import SECOND_NS
from dragoman.version import build_flavour
from dragoman_lab.sim.checks.recount import recount
from tests.core.harness import InMemoryBroker

if build_flavour() == "compiled":
    pytest.skip("the doubles inherit from Peer, which compiled code does not allow", allow_module_level=True)

LOW, NORMAL, HIGH = 10, 20, 30


class RecordingPeer(Peer):
    """A peer that remembers what it was told."""

    def __init__(self, timed_core: TimedCore, name: bytes) -> None:
        super().__init__(RQ, "rq")
        self.told: list[tuple[object, ...]] = []
        self.refuses: set[bytes] = set()
        self.address = b"\x8f" + name
        timed_core.core.hello(self)

    def deliver(self, message: Message) -> None:
        self.told.append(("deliver", message.body))

    def withdraw(self, message: Message, reason: int) -> None:
        self.told.append(("withdraw", message.body, reason))

    def accepts(self, message: Message) -> bool:
        if message.body in self.refuses:
            message.unfit |= self.body_constraint
            return False
        message.fit |= self.body_constraint
        return True

    def promoted(self, queue: bytes) -> None:
        self.told.append(("promoted", queue))

    def handed_over(self, message: Message) -> None:
        self.told.append(("handed over", message.body))

    def answered(self, message: Message, value: bytes) -> None:
        self.told.append(("answered", message.body, value))

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        self.told.append(("failed", message.body, reason, value))

    def published(self, topic: bytes, body: bytes) -> None:
        self.told.append(("news", topic, body))

    def bodies(self) -> list[object]:
        return [words[1] for words in self.told if words[0] == "deliver"]


class TimedCore:
    """A core, and time by hand."""

    def __init__(self) -> None:
        self.core = Core(CoreSettings(), lambda position: b"")
        self.timers = Timers(self.core)
        self.now_ns = 1_700_000_000 * SECOND_NS
        self.core.set_time(self.now_ns)
        self.core.start(1, b"test", bytes(16))
        self.records = b""

    def peer(self, name: bytes) -> RecordingPeer:
        return RecordingPeer(self, name)

    def worker(self, name: bytes, slots: int = 1, rank: int = NORMAL, is_exclusive: bool = False) -> RecordingPeer:
        worker = self.peer(name)
        assert self.core.consume(worker, b"q", rank, is_exclusive) == TAKEN
        self.core.ready(worker, slots)
        return worker

    def submit(
        self, client: Peer, body: bytes, flags: int = REPLY_WANTED, retries: int = -1, expires_s: int = 0
    ) -> int:
        m = Message(RQ, b"q", body, body)
        m.client, m.address, m.flags, m.retries_left = client, client.address, flags, retries
        m.expires_ns = self.core.now_ns + expires_s * SECOND_NS if expires_s else 0
        return self.core.submit(m)

    def held(self, worker: Peer) -> Message:
        return next(iter(worker.work.leases.values()))

    def pass_time(self, seconds: float) -> None:
        self.records += self.core.log.take()
        self.now_ns += int(seconds * SECOND_NS)
        self.timers.sweep(self.now_ns, self.now_ns)

    def facts(self, name: str) -> list[dict[str, object]]:
        self.records += self.core.log.take()
        return [fact for fact in decode_block(self.records) if fact["fact"] == name]


@pytest.fixture
def timed_core() -> TimedCore:
    return TimedCore()


def test_the_highest_rank_with_a_free_slot_is_served_first_and_equals_take_turns(timed_core: TimedCore) -> None:
    low = timed_core.worker(b"low", 9, LOW)
    first, second = timed_core.worker(b"first", 2, HIGH), timed_core.worker(b"second", 2, HIGH)
    client = timed_core.peer(b"client")
    for n in range(6):
        timed_core.submit(client, b"%d" % n)
    assert (first.bodies(), second.bodies(), low.bodies()) == ([b"0", b"2"], [b"1", b"3"], [b"4", b"5"])
    recount(timed_core.core)


def test_rank_none_gets_no_messages(timed_core: TimedCore) -> None:
    timed_core.worker(b"listener", 9, 0)
    timed_core.submit(timed_core.peer(b"client"), b"job")
    assert timed_core.core.state.queues[b"q"].waiting == 1
    recount(timed_core.core)


def test_an_exclusive_worker_stands_alone_and_others_are_promoted_in_order_when_it_goes(timed_core: TimedCore) -> None:
    only = timed_core.worker(b"only", 1, NORMAL, True)
    second = timed_core.worker(b"second", 9, HIGH, True)
    third = timed_core.worker(b"third", 9, HIGH)
    client = timed_core.peer(b"client")
    timed_core.submit(client, b"a")
    timed_core.submit(client, b"b")
    assert (only.bodies(), second.told, third.told) == ([b"a"], [], [])
    timed_core.core.lose(only, 0)
    assert second.told[0] == ("promoted", b"q")
    assert second.bodies() == [b"a", b"b"]
    assert third.told == []
    timed_core.core.lose(second, 0)
    assert third.told[0] == ("promoted", b"q")
    recount(timed_core.core)


def test_an_exclusive_claim_waits_for_all_others_to_leave_and_keeps_no_newcomer_out(timed_core: TimedCore) -> None:
    first = timed_core.worker(b"first")
    only = timed_core.worker(b"only", 1, NORMAL, True)
    newcomer = timed_core.worker(b"newcomer")
    timed_core.core.lose(first, 0)
    assert only.told == []
    timed_core.core.leave(newcomer)
    assert only.told == [("promoted", b"q")]
    recount(timed_core.core)


def test_where_load_decides_the_one_that_holds_least_is_chosen(timed_core: TimedCore) -> None:
    busy, idle = timed_core.peer(b"busy"), timed_core.peer(b"idle")
    for worker in (busy, idle):
        worker.is_chosen_by_load = True
        timed_core.core.join(worker, [(10, b"q")])
    timed_core.core.ready(busy, 9)
    client = timed_core.peer(b"client")
    for n in range(3):
        timed_core.submit(client, b"%d" % n)
    timed_core.core.ready(idle, 9)
    for n in range(3, 8):
        timed_core.submit(client, b"%d" % n)
    assert idle.bodies() == [b"3", b"4", b"5", b"7"]
    recount(timed_core.core)


def test_a_worker_that_confirms_makes_the_hand_over_and_only_once(timed_core: TimedCore) -> None:
    worker = timed_core.peer(b"worker")
    worker.says_delivered = True
    timed_core.core.consume(worker, b"q", NORMAL, False)
    timed_core.core.ready(worker, 1)
    client = timed_core.peer(b"client")
    timed_core.submit(client, b"job", REPLY_WANTED | HANDOVER_WANTED)
    assert client.told == []
    m = timed_core.held(worker)
    timed_core.core.delivered(worker, m)
    timed_core.core.delivered(worker, m)
    assert client.told == [("handed over", b"job")]
    assert timed_core.core.state_name(m) == "delivered"
    timed_core.core.lose(worker, 0)
    other = timed_core.worker(b"other")
    assert other.bodies() == [b"job"]
    timed_core.core.reply(other, m, b"done", False)
    assert client.told == [("handed over", b"job"), ("answered", b"job", b"done")]
    assert len(timed_core.facts("delivered")) == 1


def test_an_answer_without_a_confirmation_is_both(timed_core: TimedCore) -> None:
    worker = timed_core.peer(b"worker")
    worker.says_delivered = True
    timed_core.core.consume(worker, b"q", NORMAL, False)
    timed_core.core.ready(worker, 1)
    client = timed_core.peer(b"client")
    timed_core.submit(client, b"job", REPLY_WANTED | HANDOVER_WANTED)
    timed_core.core.reply(worker, timed_core.held(worker), b"done", False)
    assert client.told == [("handed over", b"job"), ("answered", b"job", b"done")]


def test_a_refusal_is_final_and_its_words_reach_the_client(timed_core: TimedCore) -> None:
    worker, other = timed_core.worker(b"worker"), timed_core.worker(b"other")
    client = timed_core.peer(b"client")
    timed_core.submit(client, b"job", retries=5)
    timed_core.core.reject(worker, timed_core.held(worker), b"not today")
    assert client.told == [("failed", b"job", REFUSED_BY_WORKER, b"not today")]
    assert other.told == []
    recount(timed_core.core)


def test_what_a_worker_returns_goes_to_another_while_retries_last(timed_core: TimedCore) -> None:
    worker, other = timed_core.worker(b"worker"), timed_core.worker(b"other")
    client = timed_core.peer(b"client")
    timed_core.submit(client, b"job", retries=1)
    timed_core.core.give_back(worker, timed_core.held(worker))
    assert other.bodies() == [b"job"]
    timed_core.core.give_back(other, timed_core.held(other))
    assert [words[0] for words in client.told] == ["failed"]
    recount(timed_core.core)


def test_what_a_worker_returns_ends_when_nobody_else_could_take_it(timed_core: TimedCore) -> None:
    worker = timed_core.worker(b"worker")
    client = timed_core.peer(b"client")
    timed_core.submit(client, b"job", retries=5)
    timed_core.core.give_back(worker, timed_core.held(worker))
    assert client.told == [("failed", b"job", RETURNED, b"")]


def test_a_held_message_expires_when_its_client_asked_for_that(timed_core: TimedCore) -> None:
    worker, client = timed_core.worker(b"worker", 2), timed_core.peer(b"client")
    timed_core.submit(client, b"mortal", REPLY_WANTED | EXPIRES_HELD, expires_s=3)
    timed_core.submit(client, b"patient", REPLY_WANTED, expires_s=3)
    timed_core.pass_time(3.5)
    assert client.told == [("failed", b"mortal", PAST_EXPIRY, b"")]
    assert ("withdraw", b"mortal", PAST_EXPIRY) in worker.told
    assert [m.body for m in worker.work.leases.values()] == [b"patient"]


def test_with_a_hand_over_wanted_a_message_expires_only_until_then(timed_core: TimedCore) -> None:
    worker, client = timed_core.worker(b"worker"), timed_core.peer(b"client")
    timed_core.submit(client, b"job", REPLY_WANTED | EXPIRES_HELD | HANDOVER_WANTED, expires_s=3)
    timed_core.pass_time(3.5)
    assert client.told == [("handed over", b"job")]
    assert worker.work.leases


def test_a_body_that_no_worker_can_encode_is_refused_on_submit_unless_another_kind_serves_the_queue(
    timed_core: TimedCore,
) -> None:
    strict, client = timed_core.peer(b"strict"), timed_core.peer(b"client")
    strict.is_strict, strict.body_constraint, strict.refuses = True, TAKES_NO_CONTROL_WORDS, {b"PONG"}
    timed_core.core.join(strict, [(10, b"q")])
    timed_core.core.ready(strict, 1)
    assert timed_core.submit(client, b"PONG") == INEXPRESSIBLE
    assert timed_core.submit(client, b"job") == TAKEN
    anything = timed_core.worker(b"anything")
    assert timed_core.submit(client, b"PONG") == TAKEN
    assert anything.bodies() == [b"PONG"]
    recount(timed_core.core)


def test_each_kind_of_picky_worker_judges_for_itself(timed_core: TimedCore) -> None:
    client = timed_core.peer(b"client")
    for body in (b"PONG", b"\xff", b"job"):
        timed_core.submit(client, body)
    words, text = timed_core.peer(b"words"), timed_core.peer(b"text")
    words.body_constraint, words.refuses = TAKES_NO_CONTROL_WORDS, {b"PONG"}
    text.body_constraint, text.refuses = TAKES_TEXT, {b"\xff"}
    for worker in (words, text):
        timed_core.core.join(worker, [(10, b"q")])
    timed_core.core.ready(words, 1)
    assert words.bodies() == [b"\xff"]
    timed_core.core.ready(text, 9)
    assert text.bodies() == [b"PONG", b"job"]
    recount(timed_core.core)


def test_a_client_that_got_the_outcome_of_everything_waits_for_nothing_any_more(timed_core: TimedCore) -> None:
    worker, client, other = timed_core.worker(b"worker"), timed_core.peer(b"client"), timed_core.peer(b"other")
    timed_core.submit(client, b"held")
    timed_core.submit(client, b"waiting")
    timed_core.submit(client, b"promised", 0)
    timed_core.submit(other, b"another's")
    assert timed_core.core.cancel_all(client, BROKER_STOPPED) == 2
    assert [words[1:3] for words in client.told] == [(b"held", BROKER_STOPPED), (b"waiting", BROKER_STOPPED)]
    assert ("withdraw", b"held", BROKER_STOPPED) in worker.told
    assert timed_core.core.state.queues[b"q"].waiting == 2
    recount(timed_core.core)


def test_one_topic_is_matched_exactly(timed_core: TimedCore) -> None:
    exact, prefix = timed_core.peer(b"exact"), timed_core.peer(b"prefix")
    timed_core.core.topics.subscribe_exactly(exact, b"news")
    timed_core.core.topics.subscribe(prefix, b"new")
    assert timed_core.core.publish(prefix, b"news", b"1") == 2
    assert timed_core.core.publish(prefix, b"newspaper", b"2") == 1
    timed_core.core.topics.unsubscribe_exactly(exact, b"news")
    assert timed_core.core.publish(prefix, b"news", b"3") == 1
    assert exact.told == [("news", b"news", b"1")]


def test_what_a_peer_publishes_on_a_reserved_topic_is_dropped_and_the_brokers_own_message_is_received(
    timed_core: TimedCore,
) -> None:
    listener = timed_core.peer(b"listener")
    timed_core.core.topics.subscribe(listener, b"")
    timed_core.core.topics.reserved.add(b"news")
    assert timed_core.core.publish(listener, b"news", b"forged") == 0
    assert timed_core.core.topics.publish(b"news", b"another dialect's", EMQP) == 0
    assert timed_core.core.topics.publish(b"news", b"true", RQ) == 1
    assert listener.told == [("news", b"news", b"true")]


def test_what_a_worker_returns_comes_back_to_it_only_after_a_pause_if_nobody_else_is_free(
    timed_core: TimedCore,
) -> None:
    worker, busy = timed_core.worker(b"worker", 2), timed_core.worker(b"busy", 0)
    client = timed_core.peer(b"client")
    timed_core.submit(client, b"job", retries=3)
    timed_core.core.give_back(worker, timed_core.held(worker))
    assert worker.bodies() == [b"job"]
    timed_core.core.ready(busy, 1)
    timed_core.pass_time(1.1)
    assert len(worker.bodies()) + len(busy.bodies()) == 2
    recount(timed_core.core)


def test_one_that_claims_its_queue_again_keeps_its_place(timed_core: TimedCore) -> None:
    only = timed_core.worker(b"only", 1, NORMAL, True)
    second = timed_core.worker(b"second", 1, NORMAL, True)
    assert timed_core.core.consume(only, b"q", HIGH, True) == TAKEN
    timed_core.core.ready(only, 1)
    timed_core.submit(timed_core.peer(b"client"), b"job")
    assert (only.bodies(), second.told) == ([b"job"], [])
    recount(timed_core.core)


def test_a_failure_is_sent_as_a_failure_to_a_client_that_was_away(timed_core: TimedCore) -> None:
    worker, client = timed_core.worker(b"worker"), timed_core.peer(b"client")
    client.address = b"\x01client"
    timed_core.submit(client, b"job")
    m = timed_core.held(worker)
    timed_core.core.goodbye(client)
    timed_core.core.reply(worker, m, b"boom", True)
    again = RecordingPeer(timed_core, b"client")
    again.told.clear()
    again.address = b"\x01client"
    timed_core.core.hello(again)
    assert [words[0] for words in again.told] == ["failed"]


def test_messages_on_disk_expire_by_their_line_however_many_lines_there_are() -> None:
    settings = CoreSettings()
    settings.head_max = 10
    broker = InMemoryBroker(settings)
    for n in range(300):
        m = Message(EMQP, b"q", b"%d" % n, b"x")
        m.address, m.flags, m.expires_ns = b"\x01%d" % (n % 50), REPLY_WANTED, broker.core.now_ns + SECOND_NS
        assert broker.core.submit(m) == TAKEN
    assert len(broker.core.state.messages) < 100
    broker.pass_time(1.3)
    assert len(broker.facts("closed")) == 300
    recount(broker.core)
