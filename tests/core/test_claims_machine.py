"""The core against workers of every sort: ranks, exclusive claims, picky ones, confirming ones; and what their clients are told.

No dialect here: the peers are doubles that note what the core says to them and check each word as it comes. `Book` is the model:
who counts, who is free, what waits in which order.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dragoman.core.settings import CoreSettings
from dragoman.model.enums import (
    BY_CLIENT,
    CONNECTION_ENDED,
    EBUS,
    EXPIRES_HELD,
    HANDOVER_WANTED,
    REPLY_WANTED,
    RQ,
    TAKEN,
)
from dragoman.model.message import Message
from dragoman.model.peer import TAKES_ANYTHING, TAKES_NO_CONTROL_WORDS, TAKES_TEXT, Peer
from dragoman.model.units import SECOND_NS
from dragoman.version import build_flavour
from dragoman_lab.sim.checks.recount import recount
from tests.core.harness import InMemoryBroker
from tests.core.replaying import check_replay

if build_flavour() == "compiled":
    pytest.skip("the doubles inherit from Peer, which compiled code does not allow", allow_module_level=True)

MAIL = b"mail"
BODIES = {b"{}": 0, b"PONG": TAKES_NO_CONTROL_WORDS, b"\xff": TAKES_TEXT}  # body → the kind that cannot take it
EXPIRES_S = 2.0


class CheckedClient(Peer):
    """A client that expects each word once, and in order."""

    def __init__(self, name: bytes) -> None:
        super().__init__(EBUS, "ebus.client")
        self.address = b"\x0b" + name
        self.told: dict[int, list[str]] = {}

    def tell(self, message: Message, word: str) -> None:
        told = self.told.setdefault(message.number, [])
        assert told in ([], ["handed over"]), f"{word} after {told}"
        assert word != "handed over" or not told, "handed over twice"
        told.append(word)

    def handed_over(self, message: Message) -> None:
        self.tell(message, "handed over")

    def answered(self, message: Message, value: bytes) -> None:
        assert value == b"answer to %d" % message.number
        self.tell(message, "answered")

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        assert value in (b"", b"no to %d" % message.number)
        self.tell(message, "failed")


class ExpectedState:
    """What should be: written by the workers as they are given work, and by the rules."""

    def __init__(self) -> None:
        self.workers: list[CheckedWorker] = []  # in the order of their claims
        self.returned: list[Message] = []
        self.fresh: list[Message] = []
        self.turned_down: set[int] = set()  # by a picky worker: they wait in lines of their own, in the order of that

    @property
    def waiting(self) -> list[Message]:
        return [*self.returned, *self.fresh]

    def remove(self, message: Message) -> None:
        """By its number: what comes back from disk is another object."""
        self.returned = [m for m in self.returned if m.number != message.number]
        self.fresh = [m for m in self.fresh if m.number != message.number]

    def add(self, worker: CheckedWorker) -> None:
        counting = [h for h in self.workers if h.counts]
        worker.counts = not counting or not (worker.is_exclusive or counting[0].is_exclusive)
        self.workers.append(worker)

    def drop(self, worker: CheckedWorker) -> None:
        self.workers.remove(worker)
        if self.workers and not any(h.counts for h in self.workers):
            first = self.workers[0]
            for h in [first] if first.is_exclusive else [h for h in self.workers if not h.is_exclusive]:
                h.counts = h.is_expecting_promotion = True


class CheckedWorker(Peer):
    """A worker that knows what it may be given."""

    def __init__(
        self, expected: ExpectedState, rank: int, is_exclusive: bool, body_constraint: int, confirms: bool
    ) -> None:
        super().__init__(RQ, "rq")
        self.expected, self.rank, self.is_exclusive = expected, rank, is_exclusive
        self.body_constraint, self.says_delivered = body_constraint, confirms
        self.counts = False
        self.free = 0
        self.jobs: dict[int, Message] = {}
        self.ends_itself = 0  # the message it ends by its own word: nothing is withdrawn from it then
        self.is_expecting_promotion = False

    def can_take(self, message: Message) -> bool:
        return not BODIES[message.body] & self.body_constraint

    def is_due(self, message: Message) -> bool:
        return self.counts and self.rank > 0 and self.free > 0 and self.can_take(message)

    def accepts(self, message: Message) -> bool:
        if self.can_take(message):
            message.fit |= self.body_constraint
        else:
            message.unfit |= self.body_constraint
            self.expected.turned_down.add(message.number)
        return self.can_take(message)

    def deliver(self, message: Message) -> None:
        assert self.is_due(message), "given to one who is not free, or cannot take it"
        better = [h for h in self.expected.workers if h.is_due(message) and h.rank > self.rank]
        better = [h for h in better if h.ends_itself != message.number]  # who returns it comes behind all others
        assert not better, f"a worker of rank {better[0].rank} is free, and rank {self.rank} got it"
        numbers = [m.number for m in self.expected.waiting]
        ahead = self.expected.waiting[: numbers.index(message.number)]
        passed_over = [m for m in ahead if self.can_take(m) and m.number not in self.expected.turned_down]
        assert not passed_over or message.number in self.expected.turned_down, "out of turn"
        self.expected.remove(message)
        self.free -= 1
        self.jobs[message.number] = message

    def withdraw(self, message: Message, reason: int) -> None:
        assert message.number in self.jobs, "withdrawn from one who does not hold it"
        assert message.number != self.ends_itself, "withdrawn from the one who ended it"
        del self.jobs[message.number]

    def promoted(self, queue: bytes) -> None:
        assert self.is_expecting_promotion, "promoted out of turn"
        self.is_expecting_promotion = False


class ClaimsMachine(RuleBasedStateMachine):
    @initialize(head_max=st.sampled_from([1, 3, 100]))
    def begin(self, head_max: int) -> None:
        core_settings = CoreSettings()
        core_settings.head_max = head_max
        core_settings.quarantine_after = 0
        core_settings.backoff_initial_ns = 0
        core_settings.backoff_max_ns = 0
        self.broker = InMemoryBroker(core_settings)
        self.core = self.broker.core
        self.expected = ExpectedState()
        self.clients = [CheckedClient(b"a"), CheckedClient(b"b")]
        for client in self.clients:
            self.core.hello(client)
        self.open: dict[int, Message] = {}

    # -- clients --------------------------------------------------------------------------------------------------------

    @rule(
        body=st.sampled_from(sorted(BODIES)),
        retries=st.sampled_from([-1, 0, 1]),
        expires=st.booleans(),
        handover=st.booleans(),
        count=st.integers(1, 3),
    )
    def submit(self, body: bytes, retries: int, expires: bool, handover: bool, count: int) -> None:
        for _ in range(count):
            m = Message(EBUS, MAIL, b"", body)
            m.flags = REPLY_WANTED | (HANDOVER_WANTED if handover else 0) | (EXPIRES_HELD if expires else 0)
            m.expires_ns = self.core.now_ns + int(EXPIRES_S * SECOND_NS) if expires else 0
            m.retries_left = retries
            m.client, m.address = self.clients[0], self.clients[0].address
            self.expected.fresh.append(m)
            assert self.core.submit(m) == TAKEN
            self.open[m.number] = m
            self.settle()

    @precondition(lambda self: len(self.open) > 5)
    @rule()
    def the_client_takes_everything_back(self) -> None:
        count = self.core.cancel_all(self.clients[0], BY_CLIENT)
        assert count == len(self.open)
        self.settle()
        assert not self.open

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.open)))
        assert self.core.cancel(self.open[number], BY_CLIENT) == TAKEN
        self.settle()
        assert number not in self.open

    # -- workers --------------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.expected.workers) < 4)
    @rule(
        rank=st.sampled_from([0, 10, 20, 30]),
        is_exclusive=st.booleans(),
        body_constraint=st.sampled_from([TAKES_ANYTHING, TAKES_ANYTHING, TAKES_NO_CONTROL_WORDS, TAKES_TEXT]),
        confirms=st.booleans(),
        slots=st.integers(0, 4),
    )
    def consume(self, rank: int, is_exclusive: bool, body_constraint: int, confirms: bool, slots: int) -> None:
        worker = CheckedWorker(self.expected, rank, is_exclusive, body_constraint, confirms)
        self.expected.add(worker)
        assert self.core.consume(worker, MAIL, rank, is_exclusive) == TAKEN
        assert worker.work.serves[0].is_waiting == (not worker.counts)
        self.more(worker, slots)

    @precondition(lambda self: self.expected.workers)
    @rule(data=st.data(), slots=st.integers(1, 3))
    def ready(self, data: st.DataObject, slots: int) -> None:
        self.more(data.draw(st.sampled_from(self.expected.workers)), slots)

    def more(self, worker: CheckedWorker, slots: int) -> None:
        worker.free += slots
        self.core.ready(worker, slots)
        self.settle()

    def a_lease(self, data: st.DataObject) -> tuple[CheckedWorker, Message]:
        worker = data.draw(st.sampled_from([h for h in self.expected.workers if h.jobs]))
        return worker, worker.jobs[data.draw(st.sampled_from(sorted(worker.jobs)))]

    @precondition(lambda self: any(h.jobs for h in self.expected.workers))
    @rule(data=st.data())
    def confirm(self, data: st.DataObject) -> None:
        worker, m = self.a_lease(data)
        self.core.delivered(worker, m)
        assert not m.flags & HANDOVER_WANTED or "handed over" in self.clients[0].told[m.number]
        self.settle()

    @precondition(lambda self: any(h.jobs for h in self.expected.workers))
    @rule(data=st.data(), how=st.sampled_from(["reply", "fail", "reject", "give back"]))
    def end(self, data: st.DataObject, how: str) -> None:
        worker, m = self.a_lease(data)
        worker.ends_itself = m.number
        may_return = how in ("fail", "give back")
        if may_return and not self.is_stale(m):
            self.expected.returned.append(m)
        del worker.jobs[m.number]
        if how == "reply":
            self.core.reply(worker, m, b"answer to %d" % m.number, False)
        elif how == "fail":
            self.core.reply(worker, m, b"no to %d" % m.number, True)
        elif how == "reject":
            self.core.reject(worker, m, b"no to %d" % m.number)
        else:
            self.core.give_back(worker, m)
        worker.ends_itself = 0
        self.settle()
        assert may_return or m.number not in self.open

    @precondition(lambda self: self.expected.workers and self.open)
    @rule(data=st.data(), how=st.sampled_from(["reply", "reject", "confirm", "give back"]))
    def speak_of_what_it_does_not_hold(self, data: st.DataObject, how: str) -> None:
        """Only a success or a refusal of what somebody held once counts."""
        worker = data.draw(st.sampled_from(self.expected.workers))
        m = self.core.state.messages.get(data.draw(st.sampled_from(sorted(self.open))))
        if m is None or m.number in worker.jobs:
            return
        was_held = m.attempt > 0
        if how == "reply":
            self.core.reply(worker, m, b"answer to %d" % m.number, False)
        elif how == "reject":
            self.core.reject(worker, m, b"no to %d" % m.number)
        elif how == "confirm":
            self.core.delivered(worker, m)
        else:
            self.core.give_back(worker, m)
        self.settle()
        assert (m.number in self.open) == (how not in ("reply", "reject") or not was_held)

    @precondition(lambda self: self.expected.workers)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(self.expected.workers))
        self.expected.drop(worker)
        worker.counts = False
        jobs = [m for m in self.core_order(worker) if m.retries_left != 0 and not self.is_stale(m)]
        self.expected.returned.extend(jobs)
        worker.jobs.clear()
        self.core.lose(worker, CONNECTION_ENDED)
        assert not any(h.is_expecting_promotion for h in self.expected.workers), "somebody waits for nobody"
        self.settle()

    def is_stale(self, m: Message) -> bool:
        """Past its expiry it is not tried again."""
        return 0 < m.expires_ns <= self.core.now_ns

    def core_order(self, worker: CheckedWorker) -> list[Message]:
        return list(worker.work.leases.values())

    @rule(seconds=st.sampled_from([0.1, 1.0, 3.0]))
    def pass_time(self, seconds: float) -> None:
        self.broker.pass_time(seconds)
        self.settle()
        for m in self.open.values():
            if m.expires_ns and m.expires_ns + SECOND_NS // 5 < self.core.now_ns:
                told = self.clients[0].told.get(m.number, [])
                assert told == ["handed over"], f"{m.number} has outlived its expiry: {told}"

    # -- what must hold -------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """What ended leaves the book; each end was told."""
        for fact in self.broker.facts("closed")[getattr(self, "seen", 0) :]:
            number = fact["message_no"]
            assert isinstance(number, int)
            m = self.open.pop(number)
            self.expected.remove(m)
            told = self.clients[0].told[number]
            assert told[-1] in ("answered", "failed"), told
            if told[-1] == "answered" and m.flags & HANDOVER_WANTED:
                assert told == ["handed over", "answered"]
        self.seen = len(self.broker.facts("closed"))
        for m in self.expected.waiting:
            idle = [h for h in self.expected.workers if h.is_due(m)]
            assert not idle, "a free worker beside a message it could take"
        assert not self.clients[1].told, "somebody else was told"

    @invariant()
    def the_counts_are_right_and_the_facts_tell_the_same(self) -> None:
        if not hasattr(self, "broker"):
            return
        recount(self.core)
        check_replay(self.broker)
        queue = self.core.state.queues.get(MAIL)
        if queue is not None:
            held = sum(len(h.jobs) for h in self.expected.workers)
            assert (queue.waiting, queue.leased) == (len(self.expected.waiting), held)


TestClaimsMachine = ClaimsMachine.TestCase
TestClaimsMachine.settings = settings.get_profile("machine")
