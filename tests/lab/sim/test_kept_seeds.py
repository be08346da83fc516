"""Seeds that once failed, run again. Their meaning changes when the simulator grows; `dragoman_lab.sim.steps` keeps failures as explicit steps."""

from __future__ import annotations

import pytest

from dragoman_lab.sim.world import World, quiet_logs


@pytest.mark.parametrize(
    "seed",
    [
        771003632,  # output of several workers together took more than a small memory budget
        2688,  # a block that the journal could not store yet was counted as new work when it was stored
    ],
)
def test_a_seed_that_failed_once_passes(seed: int) -> None:
    with quiet_logs():
        world = World(seed)
        world.run()
    assert world.chronicle.blocks, "the world ran"
