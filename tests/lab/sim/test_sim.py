"""The short run of the simulator; `make sim` has the long one. A failure tells its seed and the command that shows it again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from dragoman_lab.sim.world import Verdict, run_seed
from tests.examples import at_most

PARTS = range(3)
SEEDS_PER_PART_MAX = 100
SEEDS_PER_PART = at_most(SEEDS_PER_PART_MAX)
# What hundreds of seeds must have met, or the simulator has grown too tame.
DIALECTS = ("scale0", "pingpong", "emqp", "ebus", "rq")
MET = {
    "accepted", "leased", "delivered", "started", "queue_named", "worker_joined", "paused", "resumed", "scheduled", "fired", "late",
    "noted", "published", "clock_stepped", "requeued", "carried", "worker_left connection_ended", "worker_left heartbeat_lost",
    "worker_left worker_left", "released worker_lost", "released worker_left", "released timed_out", "released failed",
    "released returned", "closed answered", "closed answered_late", "closed failed", "closed timed_out", "closed retries_used_up",
    "closed past_expiry", "closed purged", "closed by_operator", "closed by_client", "closed dropped", "closed reply_undeliverable",
    "closed refused_by_worker", "closed returned", "closed broker_stopped", "quarantined workers_died", "quarantined damaged", "unscheduled none",
    "unscheduled by_operator", "unscheduled by_client", "step of a load", *(f"crossed {client} to {worker}" for client in DIALECTS for worker in DIALECTS),
}  # fmt: skip


def told(verdict: Verdict) -> str:
    return f"seed {verdict.seed}\n{verdict.failure}\nshow it again with: {verdict.replay}"


@pytest.fixture
def shared_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """One folder for all processes of this run."""
    folder = tmp_path_factory.getbasetemp()
    return folder if worker_id == "master" else folder.parent


@pytest.mark.timeout(240)
@pytest.mark.parametrize("part", PARTS)
def test_every_promise_holds_over_many_seeds_and_they_meet_everything(part: int, shared_folder: Path) -> None:
    """Every kind of fact, every way to end, every crossing. The parts run side by side; the last one that ends judges what all have met."""
    tally: Counter[str] = Counter()
    for seed in range(1 + part * SEEDS_PER_PART, 1 + (part + 1) * SEEDS_PER_PART):
        verdict = run_seed(seed)
        tally.update(verdict.tally)
        assert not verdict.failure, told(verdict)
    write_tally(shared_folder, part, tally)
    tallies = [path for number in PARTS if (path := tally_path(shared_folder, number)).exists()]
    if len(tallies) == len(PARTS) and SEEDS_PER_PART == SEEDS_PER_PART_MAX:
        assert MET - {name for path in tallies for name in json.loads(path.read_text())} == set()


def tally_path(folder: Path, part: int) -> Path:
    return folder / f"simulator-tally-{part}.json"


def write_tally(folder: Path, part: int, tally: Counter[str]) -> None:
    """Whole or not at all: another process may look for it."""
    unfinished = tally_path(folder, part).with_suffix(".unfinished")
    unfinished.write_text(json.dumps(tally))
    unfinished.rename(tally_path(folder, part))


def test_the_same_seed_is_the_same_run() -> None:
    for seed in range(7001, 7011):
        first, again = run_seed(seed), run_seed(seed)
        assert (first.digest, first.facts) == (again.digest, again.facts), f"seed {seed}"


def test_a_seed_is_the_same_run_in_another_process() -> None:
    script = "from dragoman_lab.sim.world import run_seed; print(run_seed(7020).digest)"
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }
    assert digests == {run_seed(7020).digest}


def test_different_seeds_are_different_runs() -> None:
    assert len({run_seed(seed).digest for seed in range(7030, 7036)}) == 6


def test_the_door_prints_the_seed_and_the_one_command_that_shows_a_failure_again() -> None:
    verdict = Verdict(17, "", 0, 0, 0, Counter(), "AssertionError: lost")
    assert verdict.replay == "python -m dragoman_lab.sim --seed 17 --verbose"
    assert "--seed 17" in told(verdict)


def test_the_door_runs_seeds_and_says_how_many() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "dragoman_lab.sim", "--seeds", "3", "--first", "40"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "3 seeds in" in ran.stdout
    assert "0 failed" in ran.stdout
