"""Injected failures and their timing: crashes at any instant and any disk operation, full, slow and failing disks, clock jumps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.model.units import SECOND_NS
from dragoman_lab.sim.machine.disk import PowerCut
from dragoman_lab.sim.machine.loop import MS_NS

if TYPE_CHECKING:
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
    """Fill the disk for a while."""
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
