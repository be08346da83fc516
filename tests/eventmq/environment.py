"""The virtual environment in which the original EventMQ lives, apart from dragoman's own.

It is made once and kept under `.venv`; a stamp names what is in it, so that a change of interpreter or of a version
makes it anew. When it cannot be made the tests fail: a suite that skips itself proves nothing.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

EVENTMQ = "eventmq==0.3.13"
HERE = Path(__file__).parent
ROOT = HERE.parent.parent
ENVIRONMENT = ROOT / ".venv" / "eventmq"
REQUIREMENTS = HERE / "requirements.txt"
INSTALL_TIMEOUT_S = 240


def make_environment() -> Path:
    """Return the directory of the environment's programs, making the environment when it is missing or stale."""
    ENVIRONMENT.parent.mkdir(exist_ok=True)
    wanted = f"{sys.version}\n{ENVIRONMENT}\n{EVENTMQ}\n{REQUIREMENTS.read_text()}"
    stamp = ENVIRONMENT / ".complete"
    with open(ENVIRONMENT.parent / ".eventmq.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs may start at once
        if not stamp.exists() or stamp.read_text() != wanted:
            shutil.rmtree(ENVIRONMENT, ignore_errors=True)
            run([sys.executable, "-m", "venv", str(ENVIRONMENT)])
            pip = [
                str(ENVIRONMENT / "bin" / "python"),
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ]
            run([*pip, "-r", str(REQUIREMENTS)])
            run([*pip, "--no-deps", EVENTMQ])
            stamp.write_text(wanted)
    return ENVIRONMENT / "bin"


def run(command: list[str]) -> None:
    # Our own constraints are about our own dependencies; an inherited PYTHONPATH would shadow what is installed here.
    kept = {name: value for name, value in os.environ.items() if name not in ("PIP_CONSTRAINT", "PYTHONPATH")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, env=kept, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the EventMQ environment cannot be made: {' '.join(command)}\n{done.stdout}{done.stderr}")
