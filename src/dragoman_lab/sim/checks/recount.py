"""A recount of the core: every counter, index and line against every message, and no idle worker beside a message it could take."""

from __future__ import annotations

from dragoman.core.core import Core
from dragoman.core.lifecycle import LEASED, QUARANTINED, WAITING
from dragoman.core.state.lines import Lane, Line
from dragoman.core.state.queue import Queue
from dragoman.model.enums import STATE_NAMES
from dragoman.model.message import IN_DELAYED, IN_FRESH, NOWHERE, Message
from dragoman.model.peer import Peer
from dragoman.runtime.memory import MemoryBudget
from dragoman_lab.sim.checks.facts import Chronicle

MEMORY_SLACK_PART = 4


def recount(core: Core) -> None:
    """Check everything that must hold between two events."""
    in_lines: dict[int, Message] = {}
    for queue in core.state.queues.values():
        count_queue(core, queue, in_lines)
    in_memory = sum(len(m.body) for m in core.state.messages.values() if m.is_loaded)
    assert core.state.bodies_size == in_memory, f"{core.state.bodies_size} bytes are counted, {in_memory} are there"
    for number, m in core.state.messages.items():
        check_message(core, number, m, in_lines)
    assert set(core.state.quarantine) == {n for n, m in core.state.messages.items() if m.state == QUARANTINED}
    for peer in core.workers.values():
        check_worker(peer)
    for queue in core.state.queues.values():
        check_servings(queue)
        check_nobody_sleeps(core, queue)


def count_queue(core: Core, queue: Queue, in_lines: dict[int, Message]) -> None:
    waiting = 0
    unfit_lanes = [lane for group in queue.unfit for lane in group.lanes]
    for lane in [*queue.lanes, *unfit_lanes]:
        assert len(lane.ring) == len(lane.lines)
        for line in lane.lines.values():
            waiting += count_line(line, in_lines)
    mine = [m for m in core.state.messages.values() if m.queue_no == queue.number]
    assert queue.waiting == waiting, f"{queue.name!r} counts {queue.waiting} waiting messages, and {waiting} do"
    assert queue.leased == sum(m.state == LEASED for m in mine)
    assert queue.delayed == sum(m.where == IN_DELAYED for m in mine)
    assert queue.quarantined == sum(m.state == QUARANTINED for m in mine)
    priorities = [lane.priority for lane in queue.lanes]
    assert priorities == sorted(set(priorities), reverse=True)


def count_line(line: Line, in_lines: dict[int, Message]) -> int:
    here = [*line.returned_live(), *(m for m in line.fresh if m.where == IN_FRESH and m.line is line)]
    for m in here:
        assert m.number not in in_lines, f"{m.number} is in two lines"
        in_lines[m.number] = m
    live = len(here)
    assert line.stale == len(line.returned) + len(line.fresh) - live, "stale entries are counted"
    tail = line.tail
    on_disk = [n for n in tail.numbers[tail.head :] if n > 0]
    assert tail.live == len(on_disk)
    rising = [abs(n) for n in tail.numbers]
    assert rising == sorted(set(rising)), "numbers rise along a tail"
    assert line.size == live + len(on_disk), f"a line counts {line.size}, and there are {live} + {len(on_disk)}"
    return line.size


def check_message(core: Core, number: int, m: Message, in_lines: dict[int, Message]) -> None:
    assert m.number == number
    assert core.state.find(core.ids.of(m)) is m, "a worker's answer would miss it"
    name = STATE_NAMES[m.state]
    if m.state == WAITING:
        assert (m.where == IN_DELAYED) != (in_lines.get(number) is m), f"{number} waits nowhere, or twice"
        assert m.worker is None
    elif m.state == LEASED:
        assert m.where == NOWHERE
        assert m.worker is not None
        assert m.worker.work.leases.get(number) is m, f"{number} is leased to a worker that does not have it"
    else:
        assert m.state == QUARANTINED, f"{number} is {name} and still among the open"
        assert m.worker is None


def check_worker(peer: Peer) -> None:
    assert peer.work.slots >= 0
    assert peer.is_connected, "a worker whose connection ended is no worker"
    assert peer.work.timed_leases == sum(m.lease_until_ns != 0 for m in peer.work.leases.values())
    for number, m in peer.work.leases.items():
        assert m.worker is peer, f"{number} is leased to two"
        assert m.state == LEASED


def check_servings(queue: Queue) -> None:
    """An exclusive worker is the only one of its queue, and the others wait in order."""
    counting = [serving for serving in queue.servings if not serving.is_waiting]
    waiting = [serving for serving in queue.servings if serving.is_waiting]
    assert sorted(map(id, queue.applicants)) == sorted(map(id, waiting))
    assert len(counting) == 1 or not any(serving.is_exclusive for serving in counting), (
        "an exclusive worker is not alone"
    )
    assert counting or not waiting, "workers wait although no other serves"
    assert queue.strict == sum(serving.peer.is_strict for serving in queue.servings)
    assert queue.chosen_by_load == sum(serving.peer.is_chosen_by_load for serving in queue.servings)
    ranks = [line.rank for line in queue.idle_lines]
    assert ranks == sorted(set(ranks), reverse=True)
    for line in queue.idle_lines:
        for serving in line.line:
            assert serving.is_active, "a worker that left stands in an idle line"
            assert serving.takes(), "a worker without a claim stands in an idle line"
            assert serving.rank == line.rank


def check_nobody_sleeps(core: Core, queue: Queue) -> None:
    """A free slot and a message that fits never wait at the same time."""
    if queue.is_paused or core.dispatch.is_stopped or core.dispatch.load is not None:
        return
    fit = lanes_size(queue.lanes)
    idle = {id(serving) for rank in queue.idle_lines for serving in rank.line}
    assert queue.idle == len(idle) == sum(serving.is_idle for serving in queue.servings)
    for serving in queue.servings:
        peer = serving.peer
        if peer.work.slots > 0 and not peer.work.is_leaving and not peer.is_blocked and serving.takes():
            assert serving.is_idle, f"a free worker of {queue.name!r} is in no idle line"
            assert id(serving) in idle
            assert fit == 0, f"{fit} wait in {queue.name!r} beside a free worker"
            for group in queue.unfit:
                unfit = lanes_size(group.lanes)
                assert unfit == 0 or group.kinds & peer.body_constraint, (
                    f"{unfit} wait in {queue.name!r} beside a free worker that takes them"
                )


def lanes_size(lanes: list[Lane]) -> int:
    return sum(line.size for lane in lanes for line in lane.lines.values())


def agree(core: Core, chronicle: Chronicle) -> None:
    """The core's state and the facts agree."""
    state = core.state
    known = {number: STATE_NAMES[m.state] for number, m in state.messages.items()}
    for queue in state.queues.values():
        for lane in queue.lanes:
            for line in lane.lines.values():
                known |= {n: "waiting" for n in line.tail.numbers[line.tail.head :] if n > 0}
    recorded = {number: life.state for number, life in chronicle.open.items()}
    assert known == recorded, f"core and facts differ: {sorted(set(known.items()) ^ set(recorded.items()))[:6]}"
    assert {q.number for q in state.queues.values() if q.is_paused} == chronicle.paused
    assert {q.number for q in state.queues.values() if q.is_draining} == chronicle.draining
    assert state.accepted == len(chronicle.open) + len(chronicle.closed)
    assert state.settled == len(chronicle.closed)


def check_memory(budget: MemoryBudget) -> None:
    """Memory used for peers is within the budget, except for what came between two checks of it."""
    sizes = budget.sizes()
    used, most = sum(sizes.values()), budget.size_max + budget.size_max // MEMORY_SLACK_PART
    assert used <= most, f"{used} bytes are used, and the budget is {budget.size_max}: {sizes}"


def check_bounds(core: Core) -> None:
    """Settled messages leave nothing that grows."""
    state = core.state
    tails = sum(line.tail.live for q in state.queues.values() for lane in q.lanes for line in lane.lines.values())
    alive = len(state.messages) + tails
    assert len(state.by_wire_id) == sum(m.is_named for m in state.messages.values())
    assert len(state.delayed) <= 2 * alive + 1100, "the heap of delays keeps what is long settled"
    assert state.expiries.watched <= 2 * alive + 1100, "the expiries keep what is long settled"
