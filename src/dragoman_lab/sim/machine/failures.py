"""Injected failures and their timing: crashes at any instant and any disk operation, full, slow and failing disks, clock jumps, and bits
that flip on disk.

A bit flips in the record of a waiting message, while the broker runs or while it is down, in a segment before the newest checkpoint: every
start verifies what is after the checkpoint, or cuts it as a torn tail where no sync had covered it, and `make damage` tests that. What must
follow: no worker ever gets bytes that were not sent; only that message is quarantined, or (where a power loss removed the newest
checkpoint) the start fails with the name of the file, and the operator restores the bytes; all other messages are processed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dragoman.core.core import Core
from dragoman.core.lifecycle import WAITING
from dragoman.errors import JournalDamaged
from dragoman.journal.format import segment_name, split_position
from dragoman.model.facts.layout import HEAD_SIZE
from dragoman.model.facts.records import flaw_of
from dragoman.model.units import SECOND_NS
from dragoman_lab.sim.checks.facts import token_in
from dragoman_lab.sim.machine.disk import PowerCut
from dragoman_lab.sim.machine.loop import MS_NS
from dragoman_lab.sim.plan import DIRECTORY

if TYPE_CHECKING:
    from dragoman_lab.sim.machine.life import BrokerRun
    from dragoman_lab.sim.world import World

HOUR_S = 3600
DAY_S = 24 * HOUR_S


def plan_troubles(world: World, end_ns: int) -> None:
    chance = world.chance
    for _ in range(world.plan.crashes):
        at_ns = chance.randint(0, end_ns)
        kind = chance.random()
        if kind < 0.4:
            world.timeline.at(at_ns, lambda: pull_the_plug(world))
        elif kind < 0.85:
            operations = chance.randint(0, 30)
            world.timeline.at(at_ns, lambda operations=operations: world.disk.cut_after(operations))  # type: ignore[misc]
        else:
            world.timeline.at(at_ns, world.stop_in_order)
    for _ in range(world.plan.corruptions):
        world.timeline.at(chance.randint(0, end_ns), world.corrupt)
    for _ in range(world.plan.troubles):
        trouble = chance.choice((fill_disk, fail_syncs, fail_writes, slow_disk, jump_clock, jump_clock))
        world.timeline.at(chance.randint(0, end_ns), lambda trouble=trouble: trouble(world))  # type: ignore[misc]


def pull_the_plug(world: World) -> None:
    if world.life is not None and not world.is_healing:
        raise PowerCut


def fill_disk(world: World) -> None:
    if world.is_healing:
        return
    world.say("the disk is full")
    left = world.disk.used() + world.chance.choice((0, 3000, 70_000))
    world.disk.capacity = min(left, world.disk_size or left)
    world.timeline.after(world.chance.randint(10, 4000) * MS_NS, world.clear_disk)


def fail_syncs(world: World) -> None:
    if not world.is_healing:
        world.say("syncs fail")
        world.disk.fail_syncs(world.chance.choice((1, 1, 2, 5)))


def fail_writes(world: World) -> None:
    if not world.is_healing:
        world.say("writes fail")
        world.disk.fail_writes(world.chance.choice((1, 1, 2, 5)))


def slow_disk(world: World) -> None:
    """Delay the work of disk threads by up to 3 s for a while."""
    if not world.is_healing:
        world.disk.pause_ms = world.chance.choice((300, 1000, 3000))
        world.say(f"the disk takes {world.disk.pause_ms} ms longer")
        world.timeline.after(world.chance.randint(500, 6000) * MS_NS, world.clear_disk)


def jump_clock(world: World) -> None:
    """Set the clock by a small correction, or far off for a while."""
    chance = world.chance
    by_s = chance.choice((-90, -3, 3, 65, 300, HOUR_S, -HOUR_S, 2 * DAY_S, -2 * DAY_S))
    if by_s > HOUR_S and world.plan.config.schedules.catch_up == "all":
        by_s = HOUR_S // 60  # else the schedules make a message for every instant of two days
    world.set_clock(by_s * SECOND_NS)
    world.say(f"the wall clock jumps to {world.wall_jump_ns / SECOND_NS:+.0f} s")
    if abs(by_s) >= HOUR_S and chance.random() < 0.7:
        world.timeline.after(chance.randint(200, 5000) * MS_NS, lambda: world.set_clock(-by_s * SECOND_NS))


@dataclass(frozen=True, slots=True)
class Flip:
    path: str
    offset: int
    xor: int
    value: int  # of the byte since then


@dataclass
class Corruption:
    """Everything that was damaged in one world."""

    numbers: set[int] = field(default_factory=set)  # of the messages whose records were hit
    flips: list[Flip] = field(default_factory=list)

    def strike(self, world: World, life: BrokerRun) -> None:
        """Flip a bit in the record of one waiting message, as known to the broker that runs or ran last."""
        before_no = life.journal.checkpoint_no or 0
        found = [row for row in waiting_records(life.core) if split_position(row[1])[0] < before_no]
        if not found:
            return
        number, ref = world.chance.choice(found)
        segment_no, offset = split_position(ref)
        path = f"{DIRECTORY}/{segment_name(segment_no)}"
        if not world.disk.exists(path):
            return
        data = world.disk.content(path)[offset:]
        record = data[: int.from_bytes(data[:4], "little")]
        if len(record) <= HEAD_SIZE or flaw_of(record, number, False):
            return  # its record has moved, or was hit before
        at, xor = world.chance.randrange(len(record)), 1 << world.chance.randrange(8)
        flip = Flip(path, offset + at, xor, record[at] ^ xor)
        world.disk.flip(flip.path, flip.offset, flip.xor)
        world.say(f"bit rot in the record of message {number}: {flip}")
        self.flips.append(flip)
        self.numbers.add(number)
        request = world.ledger.requests.get(token_in(record))
        if request is not None:
            request.is_corrupted = True

    def restore(self, world: World, refusal: JournalDamaged) -> None:
        """After a start failed: check that it was for something damaged, and restore the bytes as an operator."""
        assert any(flip.path == refusal.file for flip in self.flips), f"refused without reason: {refusal}"
        for flip in self.flips:
            if world.disk.exists(flip.path) and world.disk.content(flip.path)[flip.offset] == flip.value:
                world.disk.flip(flip.path, flip.offset, flip.xor)
        self.flips.clear()

    def check(self, damaged: set[int]) -> None:
        """Check that nothing else is quarantined as damaged."""
        assert damaged <= self.numbers, f"sound messages are called damaged: {sorted(damaged - self.numbers)}"


def waiting_records(core: Core) -> list[tuple[int, int]]:
    """Number and record reference of each message whose record may have to be read again."""
    found = [(m.number, m.position) for m in core.state.messages.values() if m.state == WAITING and m.position]
    for queue in core.state.queues.values():
        for lane in queue.lanes:
            for line in lane.lines.values():
                tail = line.tail
                found += [(n, tail.positions[at]) for at, n in enumerate(tail.numbers) if at >= tail.head and n > 0]
    return found
