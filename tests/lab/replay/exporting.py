"""`dragoman export-test` as a person uses it: the command, then pytest on the file it wrote, as a process of its own."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import dragoman
from dragoman.cli.root import run

PYTEST_S = 120.0


@dataclass
class Verdict:
    """How pytest ended, and all that it printed."""

    code: int
    text: str


class Exported:
    """One exported test."""

    def __init__(self, data: Path, *arguments: str) -> None:
        self.file = data.parent / "test_incident.py"
        assert run(["export-test", "--data", str(data), "--out", str(self.file), *arguments]) == 0
        self.text = self.file.read_text(encoding="utf-8")

    def edit(self, before: str, after: str) -> None:
        """Change it, as somebody would who wants to see whether it notices."""
        assert self.text.count(before) >= 1, f"{before!r} is not in\n{self.text}"
        self.text = self.text.replace(before, after)
        self.file.write_text(self.text, encoding="utf-8")

    def run(self) -> Verdict:
        """By pytest, as a process of its own."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", self.file.name]
        env = os.environ | {
            "PYTHONPATH": str(Path(dragoman.__file__).parents[1])
        }  # what is under test, from any directory
        found = subprocess.run(
            command, cwd=self.file.parent, env=env, capture_output=True, text=True, timeout=PYTEST_S, check=False
        )
        return Verdict(found.returncode, found.stdout + found.stderr)

    def play(self) -> str:
        """Here, which is quicker: what its test says of a failure, or nothing."""
        names = runpy.run_path(str(self.file))
        try:
            names["test_the_same_lives_come_out"]()
        except AssertionError as failure:
            return str(failure)
        return ""
