"""The core against a queue small enough to be obviously right: random commands, and the same lives in both."""

from __future__ import annotations

from collections import deque
from typing import cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dragoman.core.operator import set_paused
from dragoman.core.settings import CoreSettings
from dragoman.limits import LOAD_STEP_SIZE, NO_BOUND
from dragoman.model.enums import BY_OPERATOR
from dragoman_lab.sim.checks.recount import recount
from tests.core.harness import Client, InMemoryBroker, Worker
from tests.core.replaying import check_replay, restart

FAILURE = b'{"error": {"type": "Failed", "message": "no"}}'
PRIORITIES = (9, 5, 0)


class ModelQueue:
    """One queue: lanes by priority, in each what came back before what is fresh."""

    def __init__(self) -> None:
        self.returned: dict[int, deque[bytes]] = {p: deque() for p in PRIORITIES}
        self.fresh: dict[int, deque[bytes]] = {p: deque() for p in PRIORITIES}
        self.priority: dict[bytes, int] = {}
        self.retries: dict[bytes, int] = {}
        self.held: dict[bytes, int] = {}  # id → worker's number
        self.free = 0  # slots of all workers together
        self.given: deque[bytes] = deque()  # leases that are due, in their order
        self.ends: dict[bytes, str] = {}
        self.is_paused = False

    def accept(self, message_id: bytes, priority: int, retries: int) -> None:
        self.priority[message_id], self.retries[message_id] = priority, retries
        self.fresh[priority].append(message_id)
        self.give_out()

    def give_out(self) -> None:
        """Free slots meet what waits."""
        while self.free and not self.is_paused and (line := self.first_line()):
            self.free -= 1
            self.given.append(line.popleft())

    def first_line(self) -> deque[bytes] | None:
        for priority in PRIORITIES:
            for line in (self.returned[priority], self.fresh[priority]):
                if line:
                    return line
        return None

    def give_back(self, message_id: bytes, *, counts: bool) -> None:
        """An attempt failed, or with a lost worker."""
        del self.held[message_id]
        if counts and self.retries[message_id] == 0:
            self.ends[message_id] = "rejected"
            return
        if counts and self.retries[message_id] > 0:
            self.retries[message_id] -= 1
        self.returned[self.priority[message_id]].append(message_id)
        self.give_out()

    def remove(self, message_id: bytes, end: str) -> None:
        self.held.pop(message_id, None)
        for line in (self.returned[self.priority[message_id]], self.fresh[self.priority[message_id]]):
            if message_id in line:
                line.remove(message_id)
        self.ends[message_id] = end

    def restart(self, numbers: dict[bytes, int], *, by_checkpoint: bool) -> None:
        """Leases come back behind what had come back; a checkpoint knows the order of acceptance only."""
        for priority, line in self.returned.items():
            if by_checkpoint:
                self.returned[priority] = deque(sorted(line, key=numbers.__getitem__))
        for message_id in sorted(self.held, key=numbers.__getitem__):
            self.returned[self.priority[message_id]].append(message_id)
        self.held.clear()
        self.free = 0

    @property
    def open(self) -> list[bytes]:
        return [m for m in self.priority if m not in self.ends]


class CoreMachine(RuleBasedStateMachine):
    """One client, a few workers, one queue."""

    @initialize(
        head_max=st.sampled_from([1, 2, 100]),
        load_step_size=st.sampled_from([LOAD_STEP_SIZE, 1, 30]),
        bodies_max=st.sampled_from([NO_BOUND, 0, 100]),
    )
    def begin(self, head_max: int, load_step_size: int, bodies_max: int) -> None:
        self.model = ModelQueue()
        core_settings = CoreSettings()
        core_settings.head_max = head_max
        core_settings.load_step_size = load_step_size
        core_settings.bodies_max = core_settings.large_bodies_max = bodies_max
        core_settings.quarantine_after = 0
        core_settings.backoff_initial_ns = 0
        self.is_stepping = load_step_size < LOAD_STEP_SIZE
        self.broker = InMemoryBroker(core_settings)
        if self.is_stepping:
            self.broker.read_whole_size = 150
        self.client: Client = self.broker.client()
        self.workers: dict[int, Worker] = {}
        self.slots: dict[int, int] = {}  # free ones by worker
        self.numbers: dict[bytes, int] = {}
        self.seen = 0
        self.count = 0
        self.had_checkpoint = False

    def compare_leases(self) -> None:
        """Every lease since the last look is the one that the model would have given."""
        self.broker.go_on()
        for fact in self.broker.facts("accepted"):
            self.numbers[str(fact["client_id"]).encode()] = cast(int, fact["message_no"])
        ids = {number: message_id for message_id, number in self.numbers.items()}
        leases = self.broker.facts("leased")
        for fact in leases[self.seen :]:
            message_id, worker_no = ids[cast(int, fact["message_no"])], cast(int, fact["worker_no"])
            assert self.model.given, "a lease that nobody expected"
            assert message_id == self.model.given.popleft()
            assert self.slots[worker_no] > 0
            self.slots[worker_no] -= 1
            self.model.held[message_id] = worker_no
        self.seen = len(leases)
        assert not self.model.given, "a free slot beside a waiting message"

    @rule(priority=st.sampled_from(PRIORITIES), retries=st.sampled_from([-1, 0, 1]), count=st.integers(1, 4))
    def submit(self, priority: int, retries: int, count: int) -> None:
        for _ in range(count):
            self.count += 1
            message_id = b"m%d" % self.count
            if (
                self.is_stepping
            ):  # while a body is read for it, a worker may be given what is more urgent: the model knows no such while
                priority = 0
            headers = b"priority:%d" % priority + (b",retry-count:%d" % retries if retries >= 0 else b"")
            self.client.request(b"mail", b"{}" + b" " * (self.count * 37 % 100), headers, message_id)
            self.model.accept(message_id, priority, retries)
            self.compare_leases()

    @precondition(lambda self: len(self.workers) < 3)
    @rule(slots=st.integers(0, 3))
    def join(self, slots: int) -> None:
        worker = self.broker.worker(b"worker")
        worker.inform((10, b"mail"))
        number = worker.session.number
        self.workers[number] = worker
        self.slots[number] = 0
        self.more_slots(number, slots)

    def more_slots(self, number: int, slots: int) -> None:
        for _ in range(slots):
            self.slots[number] += 1
            self.model.free += 1
            self.model.give_out()
            self.workers[number].ready()
            self.compare_leases()

    @precondition(lambda self: self.workers)
    @rule(data=st.data(), slots=st.integers(1, 3))
    def ready(self, data: st.DataObject, slots: int) -> None:
        self.more_slots(data.draw(st.sampled_from(sorted(self.workers))), slots)

    @precondition(lambda self: self.model.held)
    @rule(data=st.data(), ok=st.booleans())
    def reply(self, data: st.DataObject, ok: bool) -> None:
        message_id = data.draw(st.sampled_from(sorted(self.model.held)))
        worker = self.workers[self.model.held[message_id]]
        if ok:
            self.model.remove(message_id, "done")
        elif self.model.retries[message_id] < 0:
            self.model.remove(message_id, "rejected")
        else:
            self.model.give_back(message_id, counts=True)
        worker.reply(message_id, b'{"value": 1}' if ok else FAILURE)
        self.compare_leases()

    @precondition(lambda self: self.workers and self.model.open)
    @rule(data=st.data())
    def answer_out_of_turn(self, data: st.DataObject) -> None:
        """A success from whoever held it once counts at any time; one that nobody ever held does not."""
        message_id = data.draw(st.sampled_from(sorted(self.model.open)))
        worker = self.workers[data.draw(st.sampled_from(sorted(self.workers)))]
        message = self.broker.core.lookup(message_id)
        assert message is not None
        if message.attempt > 0:
            self.model.remove(message_id, "done")
        worker.reply(message_id)
        self.compare_leases()

    @precondition(lambda self: self.workers)
    @rule(data=st.data(), in_order=st.booleans())
    def part(self, data: st.DataObject, in_order: bool) -> None:
        number = data.draw(st.sampled_from(sorted(self.workers)))
        worker = self.workers.pop(number)
        self.model.free -= self.slots.pop(number)
        if in_order:
            worker.say(b"KBYE", b"bye")
        order = [m.client_id for m in worker.session.work.leases.values()]
        assert sorted(order) == sorted(m for m, holder in self.model.held.items() if holder == number)
        for message_id in order:  # one by one, and another worker may take each at once
            self.model.give_back(message_id, counts=not in_order)
        worker.leave()
        self.compare_leases()

    @precondition(lambda self: self.model.open)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        message_id = data.draw(st.sampled_from(sorted(self.model.open)))
        message = self.broker.core.lookup(message_id)
        assert message is not None
        self.broker.core.cancel(message, BY_OPERATOR)
        self.model.remove(message_id, "cancelled")
        self.compare_leases()

    @precondition(lambda self: b"mail" in self.broker.core.state.queues)
    @rule(is_paused=st.booleans())
    def pause(self, is_paused: bool) -> None:
        set_paused(self.broker.core, b"mail", is_paused)
        self.model.is_paused = is_paused
        self.model.give_out()
        self.compare_leases()

    @rule(by_checkpoint=st.booleans())
    def restart(self, by_checkpoint: bool) -> None:
        """A broker reads facts from its newest checkpoint on: once one was used, those before it are not read again."""
        self.had_checkpoint = by_checkpoint = by_checkpoint or self.had_checkpoint
        self.broker = restart(self.broker, by_checkpoint=by_checkpoint)
        self.model.restart(self.numbers, by_checkpoint=by_checkpoint)
        self.workers.clear()
        self.slots.clear()
        self.client = self.broker.client()
        self.compare_leases()

    @rule(seconds=st.sampled_from([0.1, 1.0, 4.0]))
    def pass_time(self, seconds: float) -> None:
        for worker in self.workers.values():
            worker.heartbeat()
        self.broker.pass_time(seconds)
        self.compare_leases()

    @invariant()
    def the_counts_are_right_and_the_facts_tell_the_same(self) -> None:
        if not hasattr(self, "broker"):
            return
        core = self.broker.core
        recount(core)
        check_replay(self.broker)
        queue = core.state.queues.get(b"mail")
        if queue is not None:
            waiting = sum(map(len, [*self.model.returned.values(), *self.model.fresh.values()]))
            assert (queue.waiting, queue.leased) == (waiting, len(self.model.held))
        closed = {fact["message_no"]: fact["outcome"] for fact in self.broker.facts("closed")}
        assert closed == {self.numbers[m]: end for m, end in self.model.ends.items()}


TestCoreMachine = CoreMachine.TestCase
TestCoreMachine.settings = settings.get_profile("machine")
