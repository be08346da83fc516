"""`make fuzz` runs every fuzzer there is, and tells when one finds something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.fuzz.__main__ import FUZZERS


def door(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *arguments], capture_output=True, text=True, check=False, timeout=120
    )


def test_every_program_with_a_door_of_its_own_is_behind_the_common_one() -> None:
    here = Path(__file__).parent
    programs = {path.stem for path in here.glob("[a-z]*.py") if "\nif __name__ == " in path.read_text()}
    assert programs == set(FUZZERS)


def test_the_door_runs_all_of_them_and_prints_the_seed() -> None:
    ran = door("--inputs", "300", "--seed", "5")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "seed 5" in ran.stdout
    assert f"{len(FUZZERS)} of {len(FUZZERS)} fuzzers found nothing" in ran.stdout
    assert "only documented errors" in ran.stdout


def test_an_unknown_fuzzer_is_named() -> None:
    ran = door("--only", "rq,morse")
    assert ran.returncode == 2
    assert "there is no fuzzer called morse" in ran.stderr
