"""The last stretch of single queues: counted backwards from now, the levels are those that really were."""

from __future__ import annotations

import pytest

from dragoman.model.decode import decode_block
from dragoman.model.message import Message
from dragoman.model.records import FactLog
from dragoman.model.steps import Steps
from dragoman.model.units import SECOND_NS
from dragoman.model.words import ANSWERED, EMQP
from dragoman.web.trails import past_of
from tests.model.lives import DONE, QUEUES, WORKER_NO, World, lived

STEPS = 60
SEEDS = range(20)


def stepped(world: World, until_ns: int) -> Steps:
    """The last minute before `until_ns`, of a world that may have gone on."""
    begin_ns = (until_ns // SECOND_NS - STEPS + 1) * SECOND_NS
    steps = Steps(list(QUEUES), begin_ns, SECOND_NS, STEPS, until_ns)
    for m in world.leased:
        steps.hold(m.number, m.queue_no, m.leased_ns)
    for records, time_ns in world.blocks:
        steps.add(records, time_ns)
    steps.end()
    return steps


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("boots_s", [(200,), (100, 20, 15), (40, 3)])
def test_levels_of_every_second_are_found_again(seed: int, boots_s: tuple[int, ...]) -> None:
    world = lived(seed, *boots_s)
    now_ns, depths = world.levels[-1]
    steps = stepped(world, now_ns)
    begin_ns = (now_ns // SECOND_NS - STEPS + 1) * SECOND_NS
    for queue_no in QUEUES:
        past = past_of(steps.queues[queue_no], begin_ns, world.levels[0][0], depths[queue_no])
        assert len(past.depths) >= 40
        assert past.depths == [(end_ns, level_at(world, queue_no, end_ns)) for end_ns, _ in past.depths]
        facts = [
            (fact, time_ns)
            for records, time_ns in world.blocks
            for fact in decode_block(records)
            if time_ns >= begin_ns
        ]
        for step in range(STEPS):
            names = [
                fact["fact"]
                for fact, time_ns in facts
                if fact.get("queue_no") == queue_no and (time_ns - begin_ns) // SECOND_NS == step
            ]
            assert steps.queues[queue_no].accepted[step] == names.count("accepted")
            assert steps.queues[queue_no].settled[step] == names.count("closed")


def level_at(world: World, queue_no: int, at_ns: int) -> int:
    return [depths[queue_no] for time_ns, depths in world.levels if time_ns <= at_ns][-1]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_happens_while_the_journal_is_read_changes_nothing(seed: int) -> None:
    world = lived(seed, 100)
    now_ns, depths = world.levels[-1]
    before = {no: stepped(world, now_ns).queues[no].waiting for no in QUEUES}
    world.live(5)
    assert {no: stepped(world, now_ns).queues[no].waiting for no in QUEUES} == before
    assert depths


def test_a_lease_that_ended_after_it_was_told_is_counted_once() -> None:
    begin_ns = 1000 * SECOND_NS
    m = Message(EMQP, b"q", b"", b"")
    m.number, m.queue_no, m.accepted_ns, m.leased_ns, m.attempt = 9, 1, begin_ns, begin_ns + SECOND_NS, 1
    log = FactLog()
    log.closed(m, WORKER_NO, EMQP, 0, DONE, ANSWERED, WORKER_NO)
    steps = Steps([1], begin_ns, SECOND_NS, 4, begin_ns + 3 * SECOND_NS)
    steps.hold(m.number, m.queue_no, m.leased_ns)
    steps.add(log.take(), begin_ns + 4 * SECOND_NS)
    steps.end()
    assert steps.queues[1].waiting == [0, -1, 0, 0]
    assert steps.queues[1].settled == [0, 0, 0, 0]


def test_queues_that_nobody_follows_cost_nothing() -> None:
    world = lived(3, 20)
    steps = Steps([], world.levels[0][0], SECOND_NS, STEPS, world.now_ns)
    for records, time_ns in world.blocks:
        steps.add(records, time_ns)
    assert steps.queues == {}
