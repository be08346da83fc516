"""A generated world: its facts are lawful, the same for the same seed, and have in them what a real broker's would."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field

import pytest

from dragoman.core.core import Core
from dragoman.core.lifecycle import LEASED, QUARANTINED, WAITING
from dragoman.core.settings import CoreSettings
from dragoman.core.state.state import State
from dragoman.core.storage.replay import Replay
from dragoman.model.facts.decode import decode_block
from dragoman.model.facts.layout import FACT_NAMES
from dragoman.model.units import SECOND_NS
from dragoman_lab.generate.broker import DAY_NS, Plan
from dragoman_lab.generate.services import UNSERVED, services_of
from dragoman_lab.generate.world import World
from dragoman_lab.sim.checks.facts import Chronicle

PLAN = Plan(facts=25_000, seed=7, days=6)
DIALECTS = ("scale0", "pingpong", "emqp", "ebus", "rq")


@dataclass
class GeneratedRun:
    """A world's run as its facts tell it, read by the simulator's judge."""

    chronicle: Chronicle = field(default_factory=Chronicle)
    facts: list[tuple[int, dict[str, object]]] = field(default_factory=list)
    state: State | None = None

    def take(self, records: bytes, first_lsn: int, count: int, time_ns: int) -> None:
        assert first_lsn == self.chronicle.next_lsn
        self.chronicle.append(records, count, time_ns)
        self.facts += [(time_ns, fact) for fact in decode_block(records)]

    def of(self, name: str) -> list[dict[str, object]]:
        return [fact for _, fact in self.facts if fact["fact"] == name]


@pytest.fixture(scope="module")
def run() -> GeneratedRun:
    print(f"seed {PLAN.seed}")
    run = GeneratedRun()
    world = World(PLAN)
    world.run(run.take)
    run.state = world.broker.core.state
    return run


def lives(state: State) -> dict[int, tuple[int, ...]]:
    return {m.number: (m.state, m.attempt, m.retries_left, m.due_ns, m.accepted_ns) for m in state.messages.values()}


def digest(plan: Plan) -> str:
    seen = hashlib.sha256()
    World(plan).run(lambda records, first, count, at: seen.update(b"%d %d %d %s" % (first, count, at, records)))
    return seen.hexdigest()


def test_the_same_seed_makes_the_same_bytes_and_another_seed_others() -> None:
    small = Plan(facts=2_500, seed=3, days=2)
    assert digest(small) == digest(small)
    assert digest(small) != digest(Plan(facts=2_500, seed=4, days=2))
    assert digest(small) != digest(Plan(facts=2_500, seed=3, days=2, broker=1))


def test_there_are_as_many_facts_as_asked_for_and_they_fill_the_days(run: GeneratedRun) -> None:
    assert PLAN.facts <= len(run.facts) < PLAN.facts + 200
    last_ns = run.facts[-1][0]
    assert 0.95 * PLAN.span_ns < last_ns - PLAN.start_ns <= PLAN.span_ns + 3600 * SECOND_NS


def test_every_kind_of_fact_occurs(run: GeneratedRun) -> None:
    """But for the forgetting of queues: that takes a week without a message, and a generated world's queues are busy."""
    assert {str(fact["fact"]) for _, fact in run.facts} == set(FACT_NAMES) - {"", "queue_forgotten"}


def test_attempts_end_in_every_usual_way(run: GeneratedRun) -> None:
    released = {fact["reason"] for fact in run.of("released")}
    assert released >= {"failed", "worker_lost", "worker_left", "timed_out", "returned", "broker_started"}
    outcomes = {fact["outcome"] for fact in run.of("closed")}
    assert outcomes == {"done", "rejected", "expired", "cancelled"}
    assert {fact["reason"] for fact in run.of("worker_left")} >= {"connection_ended", "heartbeat_lost"}
    assert {fact["reason"] for fact in run.of("quarantined")} == {"workers_died"}


def test_a_lost_workers_releases_are_deaths_and_a_restarts_are_not(run: GeneratedRun) -> None:
    deaths = Counter((fact["reason"], fact["is_death"]) for fact in run.of("released"))
    assert deaths["worker_lost", True] > 0
    assert deaths["worker_lost", False] == 0
    assert deaths["broker_started", True] == 0


def test_all_dialects_ask_and_work(run: GeneratedRun) -> None:
    crossings = {(fact["dialect"], fact["worker_dialect"]) for fact in run.of("closed") if fact["reason"] == "answered"}
    assert {client for client, _ in crossings} >= set(DIALECTS)
    assert {worker for _, worker in crossings} == set(DIALECTS)
    assert ("internal", "ebus") in crossings  # what a schedule fired
    assert len(crossings) > 15


def test_only_rq_workers_say_that_they_have_begun(run: GeneratedRun) -> None:
    began = [fact for fact in run.of("closed") if fact["delivered_ns"]]
    assert began
    assert {fact["worker_dialect"] for fact in began if fact["reason"] == "answered"} == {"rq"}


def test_days_are_busier_than_nights_and_weekdays_than_weekends(run: GeneratedRun) -> None:
    hours: Counter[int] = Counter()
    days: Counter[int] = Counter()
    for time_ns, fact in run.facts:
        if fact["fact"] == "accepted":
            hours[time_ns % DAY_NS // (3600 * SECOND_NS)] += 1
            days[(time_ns - PLAN.start_ns) // DAY_NS] += 1
    day = sum(hours[hour] for hour in range(11, 17))
    night = sum(hours[hour] for hour in (23, 0, 1, 3, 4, 5))
    assert day > 1.5 * night
    assert days[5] < min(days[day] for day in range(5))  # the first day is a Monday, the sixth a Saturday


def test_messages_of_every_state_are_open_at_the_end(run: GeneratedRun) -> None:
    assert run.state is not None
    states = Counter(m.state for m in run.state.messages.values())
    assert states[WAITING] > 0
    assert states[LEASED] > 0
    assert states[QUARANTINED] > 0
    assert any(m.due_ns > run.facts[-1][0] for m in run.state.messages.values()), "one is delayed"
    assert set(run.chronicle.open) == set(run.state.messages)


def test_a_broker_that_replays_the_facts_has_the_same_open_messages(run: GeneratedRun) -> None:
    """The restarts of the generator are those of a real broker, which knows nothing but its facts."""
    assert run.state is not None
    core = Core(CoreSettings(), lambda place: b"")
    replay = Replay(core)
    place = 1
    for block in run.chronicle.blocks:
        replay.block(block.records, place, block.time_ns)
        place += len(block.records)
    assert lives(core.state) == lives(run.state)
    assert core.state.next_number == run.state.next_number


def test_one_queue_is_served_by_nobody(run: GeneratedRun) -> None:
    numbers = {fact["queue_no"] for fact in run.of("queue_named") if fact["queue"] == UNSERVED.name}
    of_it = {fact["message_no"] for fact in run.of("accepted") if fact["queue_no"] in numbers}
    assert of_it
    assert not of_it & {fact["message_no"] for fact in run.of("leased")}


@pytest.mark.parametrize("queues", [4, 12, 40])
def test_queues_have_names_of_their_own_and_share_all_messages(queues: int) -> None:
    services = services_of(Plan(facts=100_000, queues=queues))
    assert len({service.name for service in services}) == queues
    assert sum(service.share for service in services) == pytest.approx(1)


@pytest.mark.parametrize(
    "plan",
    [Plan(facts=1_000, days=30), Plan(facts=8_000, days=0.05, seed=2), Plan(facts=3_000, queues=4, open_share=0.4)],
)
def test_small_dense_and_lopsided_worlds_keep_the_invariants_too(plan: Plan) -> None:
    chronicle = Chronicle()
    World(plan).run(lambda records, first, count, at: chronicle.append(records, count, at))
    assert chronicle.next_lsn > plan.facts
