"""The simulator's own worlds as incidents: everything that can go wrong does, in all dialects, and what is exported of it comes out again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.runtime.config import Config
from dragoman_lab.replay.command import unusual
from dragoman_lab.replay.export.history import History, Wanted
from dragoman_lab.replay.export.page import write_page
from dragoman_lab.replay.export.script import Script, Writer, play, prove
from dragoman_lab.sim.world import World, quiet_logs
from tests.examples import at_most

SEEDS = (2, 3, 5, 8, 9, 11, 12, 16, 18, 19, 22, 23)
# Worlds are wild: whole seconds without a word, disks that stand still, clocks that jump. A real journal has less of it.
CHECKED_PART_MIN = 0.9
REQUESTS_MAX = 200
OUT_BUFFER_SIZE = 64 * 2**20


def exported(seed: int, part: float) -> Script:
    """What `dragoman export-test` makes of a world, from a part of its time on."""
    world = World(seed)
    # More leases than one step makes at a time, by count or by bytes, go in an order that no story tells.
    config = replace(world.plan.config, limits=replace(world.plan.config.limits, out_buffer_max=OUT_BUFFER_SIZE))
    world.plan = replace(world.plan, requests_max=min(world.plan.requests_max, REQUESTS_MAX), config=config)
    with quiet_logs():
        world.run()
    blocks = world.chronicle.blocks
    from_ns = blocks[0].time_ns + int(world.plan.seconds * part * 1_000_000_000) if part else 0
    history = History(Wanted(from_ns, blocks[-1].time_ns + 1), {})
    history.read(blocks, 0, lambda done, total: None)
    return Writer(history, world.plan.config, settings_of(world.plan.config)).write()


def settings_of(config: Config) -> dict[str, object]:
    """A world's settings, as `dragoman up` would take them: it insists on more than one heartbeat."""
    return unusual(config) | {"emqp.heartbeat_s": 1.0}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("part", [0.0, 0.5])
def test_nine_of_ten_lives_of_wild_worlds_come_out_again(part: float) -> None:
    lives = left_out = 0
    for seed in SEEDS[: at_most(len(SEEDS))]:
        script = exported(seed, part)
        prove(script)
        lives += len(script.lives)
        left_out += len(script.left_out)
        play(script).check_lives(script.lives)  # what is checked holds, each time it is played
    assert lives / (lives + left_out) >= CHECKED_PART_MIN


def test_the_same_story_is_played_the_same_way() -> None:
    script = exported(5, 0.0)
    first, second = play(script), play(script)
    assert first.lives
    assert (first.lives, first.leases, first.troubles) == (second.lives, second.leases, second.troubles)


def test_the_file_of_a_world_is_python_and_checks_what_it_names(tmp_path: Path) -> None:
    script = exported(9, 0.0)
    prove(script)
    text = write_page(script, "A world", [])
    names: dict[str, object] = {}
    exec(compile(text, str(tmp_path / "test_world.py"), "exec"), names)
    assert names["LIVES"] == script.lives
    assert names["STORY"] == script.story
    test = names["test_the_same_lives_come_out"]
    assert callable(test)
    test()
    some = next(iter(script.lives))
    script.lives[some].append("requeued")
    with pytest.raises(AssertionError, match="should be 'requeued', and did not come"):
        play(script).check_lives(script.lives)


def test_nothing_to_check_is_no_success() -> None:
    script = exported(5, 0.0)
    with pytest.raises(AssertionError, match="nothing would be checked"):
        play(script).check_lives({})


def test_a_name_that_looks_like_python_stays_a_name(tmp_path: Path) -> None:
    """Names come from peers, and the file is run."""
    script = exported(5, 0.0)
    hostile = '"""\nraise SystemExit("taken over")\n"""\\'
    script.left_out[hostile] = hostile
    script.cast.clients[hostile] = {"dialect": "emqp", "identity": hostile}
    names: dict[str, object] = {}
    exec(compile(write_page(script, hostile, [hostile]), str(tmp_path / "test_world.py"), "exec"), names)
    clients = names["CLIENTS"]
    assert isinstance(clients, dict)
    assert clients[hostile]["identity"] == hostile
    assert str(names["__doc__"]).count(hostile) == 4
