"""The SDK as a type checker sees it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="the type checker is not installed")

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@pytest.mark.slow
def test_calls_are_checked_against_the_functions_they_stand_for(tmp_path: Path) -> None:
    files = [HERE / "typed" / "right.py", HERE / "typed" / "wrong.py"]
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "--no-error-summary"]
    environ = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    done = subprocess.run([*command, *map(str, files)], cwd=tmp_path, env=environ, capture_output=True, text=True)
    found = {int(line) for line in re.findall(r"wrong\.py:(\d+): error", done.stdout)}
    wanted = {n for n, line in enumerate(files[1].read_text().splitlines(), 1) if line.endswith("# wrong")}
    assert "right.py" not in done.stdout, done.stdout
    assert found == wanted, done.stdout + done.stderr
