"""What goes wrong, and when: crashes at any instant and any disk operation, full and failing disks, clocks that jump."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.testing.sim.disk import PowerCut
from dragoman.testing.sim.loop import MS_NS, SECOND_NS

if TYPE_CHECKING:
    from dragoman.testing.sim.world import World

MINUTE_NS = 60 * SECOND_NS


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
    for _ in range(world.plan.troubles):
        trouble = chance.choice((fill_disk, fail_syncs, fail_writes, jump_clock, jump_clock))
        world.timeline.at(chance.randint(0, end_ns), lambda trouble=trouble: trouble(world))  # type: ignore[misc]


def pull_the_plug(world: World) -> None:
    if world.life is not None and not world.is_healing:
        raise PowerCut


def fill_disk(world: World) -> None:
    """No room for a while."""
    if world.is_healing:
        return
    world.say("the disk is full")
    world.disk.capacity = world.disk.used() + world.chance.choice((0, 3000, 70_000))
    world.timeline.after(world.chance.randint(10, 4000) * MS_NS, world.clear_disk)


def fail_syncs(world: World) -> None:
    if not world.is_healing:
        world.say("syncs fail")
        world.disk.fail_syncs(world.chance.choice((1, 1, 2, 5)))


def fail_writes(world: World) -> None:
    if not world.is_healing:
        world.say("writes fail")
        world.disk.fail_writes(world.chance.choice((1, 1, 2, 5)))


def jump_clock(world: World) -> None:
    world.set_clock(world.chance.choice((-90, -3, 3, 65, 300)) * SECOND_NS)
    world.say(f"the wall clock jumps to {world.wall_jump_ns / SECOND_NS:+.0f} s")
