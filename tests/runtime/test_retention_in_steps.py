"""Which segments are in use is counted, and live records are carried, in steps between which all may change."""

from __future__ import annotations

from random import Random

import pytest

from dragoman.core import operator
from dragoman.core.core import Core
from dragoman.core.storage.live_walk import Carrier, LiveCount, live_count
from dragoman.journal.journal import Journal
from dragoman.model.enums import BY_OPERATOR
from dragoman.model.message import POSITION_SHIFT
from dragoman.runtime.upkeep import Upkeep
from dragoman.testing.disk import FakeDisk
from dragoman_lab.sim.checks.recount import recount
from tests.runtime.journaled_broker import JournaledBroker, bodies

LARGE = 300_000
STEP = 50_000


def segments_in_use(core: Core) -> dict[int, int]:
    """Of each open message by its number, as a simple look at the whole state finds it."""
    found = {number: m.position >> POSITION_SHIFT for number, m in core.state.messages.items()}
    for queue in core.state.queues.values():
        for lane in queue.lanes:
            for line in lane.lines.values():
                tail = line.tail
                found |= {
                    n: tail.positions[at] >> POSITION_SHIFT
                    for at, n in enumerate(tail.numbers)
                    if at >= tail.head and n > 0
                }
    return found


def filled(disk: FakeDisk, head_max: int = 2, count: int = 12) -> JournaledBroker:
    """Some messages in each of four segments."""
    broker = JournaledBroker(disk, head_max=head_max)
    client = broker.client()
    for segment in range(4):
        for number in range(count):
            client.request(b"mail", b"%d %d" % (segment, number))
        broker.checkpoint()
    return broker


def test_a_count_in_steps_is_the_count_at_once() -> None:
    broker = filled(FakeDisk())
    whole = live_count(broker.core.state)
    assert sorted(whole.counts.values()) == [12, 12, 12, 12]
    count = LiveCount(broker.core.state)
    steps = 1
    while count.walk(3):
        steps += 1
    assert steps >= 16
    assert count.counts == whole.counts
    assert {no: len(positions) for no, positions in count.samples.items()} == dict.fromkeys(whole.counts, 8)


def test_a_message_that_comes_into_memory_during_a_count_is_not_missed() -> None:
    broker = filled(FakeDisk())
    state = broker.core.state
    before = segments_in_use(broker.core)
    count = LiveCount(state)
    assert count.walk(1)
    for number in sorted(before):  # out of the tail, before the walk has come to any but one of them
        state.take(number)
    while count.walk(1):
        pass
    assert set(count.counts) == set(before.values())
    assert sum(count.counts.values()) >= len(before)


@pytest.mark.parametrize("seed", range(30))
def test_a_count_misses_no_segment_of_what_was_open_all_the_while(seed: int) -> None:
    chance = Random(seed)
    broker = filled(FakeDisk(), head_max=chance.choice([1, 2, 5]), count=chance.randint(1, 3))
    state = broker.core.state
    client, worker = broker.client(b"other"), broker.serve(slots=0)
    before = segments_in_use(broker.core)
    count, filling_no = LiveCount(state), broker.journal.segments()[-1].segment_no
    is_open = True
    while is_open:
        is_open = count.walk(chance.randint(1, 2))
        what = chance.choice(["ready", "reply", "request", "cancel", "take", "take", "roll"])
        if what == "ready":
            worker.ready(chance.randint(1, 5))
        elif what == "reply":
            for job in worker.jobs()[:2]:
                worker.reply(job)
        elif what == "request":
            client.request(b"mail", b"new")
        elif what == "cancel":
            message = state.take(chance.choice(sorted(before)))
            if message is not None:
                broker.core.cancel(message, BY_OPERATOR)
        elif what == "take":
            state.take(chance.choice(sorted(before)))
        elif what == "roll":
            broker.checkpoint()
        broker.commit()
    used = {no for no in segments_in_use(broker.core).values() if no < filling_no}
    assert used <= set(count.counts)
    recount(broker.core)


def large_house(size: int = LARGE) -> JournaledBroker:
    broker = JournaledBroker(FakeDisk(), head_max=1)
    client = broker.client()
    for number in range(3):
        client.request(b"mail", b"%d " % number + b"x" * (size if number == 1 else 10))
    broker.checkpoint()
    return broker.restarted()


def carrier_of(broker: JournaledBroker) -> Carrier:
    return Carrier(broker.core.state, broker.core.log, broker.core.quarantine, 1)


def test_a_large_record_is_carried_piece_by_piece() -> None:
    broker = large_house()
    carrier = carrier_of(broker)
    kept = broker.core.state.stored
    steps, is_open = 0, True
    while is_open:
        read_cost = kept.read_cost
        is_open = carrier.step(1000, STEP)
        assert kept.read_cost - read_cost < 2 * STEP
        broker.commit()
        steps += 1
    assert steps >= LARGE // STEP
    assert set(live_count(broker.core.state).counts) == {broker.journal.segments()[-1].segment_no}
    broker = broker.restarted()
    broker.disk.unlink(broker.segment(1))
    assert sorted(body.split()[0] for body in bodies(broker.serve())) == [b"0", b"1", b"2"]


def test_a_message_that_ends_while_its_record_is_carried_is_not_carried() -> None:
    broker = large_house()
    carrier = carrier_of(broker)
    for _ in range(3):
        assert carrier.step(1000, STEP)
    assert operator.purge(broker.core, b"mail", 100)
    size = broker.core.log.size()
    assert not carrier.step(1000, STEP)
    assert broker.core.log.size() == size
    recount(broker.core)


def test_a_large_record_that_is_damaged_while_it_is_carried_stays_and_its_message_is_set_aside() -> None:
    broker = large_house()
    carrier = carrier_of(broker)
    assert carrier.step(1000, STEP)
    disk = broker.disk
    assert isinstance(disk, FakeDisk)
    disk.damage(broker.segment(1), 200_000)
    while carrier.step(1000, STEP):
        pass
    (m,) = broker.core.state.quarantine.values()
    assert m.position >> POSITION_SHIFT == 1
    recount(broker.core)


def test_a_segment_stays_whose_only_message_came_into_memory_while_it_was_looked_for() -> None:
    """Retention as a whole, one message a sweep."""
    broker = filled(FakeDisk(), head_max=1, count=1)
    journal: Journal = broker.journal
    upkeep = Upkeep(broker.core, journal, set())
    upkeep.live_step = 1
    object.__setattr__(journal.settings, "age_max_s", 1)
    now_ns = broker.now_ns + 10**12
    before = {info.segment_no for info in journal.segments()}
    upkeep.sweep(now_ns)
    for number in sorted(segments_in_use(broker.core)):
        broker.core.state.take(number)
    for _ in range(20):
        now_ns += 10**8
        upkeep.sweep(now_ns)
    used = set(segments_in_use(broker.core).values())
    assert used <= {info.segment_no for info in journal.segments()} <= before
    assert used
    upkeep.close()
