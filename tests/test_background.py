"""The suite runs in a script's background and under `nohup`, where a shell starts programs with signals ignored."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHOWN = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"


def test_children_start_with_the_default_of_sigint() -> None:
    child = subprocess.run([sys.executable, "-c", SHOWN], capture_output=True, text=True, check=True)
    assert child.stdout == "True\n"


def test_children_of_a_run_in_the_background_start_with_the_default_of_sigint() -> None:
    test = f"{Path(__file__).relative_to(ROOT)}::test_children_start_with_the_default_of_sigint"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run = subprocess.Popen(command, cwd=ROOT, env=os.environ, stdout=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    out, _ = run.communicate()
    assert run.returncode == 0, out
