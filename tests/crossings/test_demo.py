"""`dragoman demo`, as `make demo` runs it, only shorter."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.dialects.crossing import DIALECTS
from dragoman.model.enums import DIALECT_NAMES

END_S = 150.0


def test_the_demo_crosses_everything_loses_nothing_and_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dragoman", "demo", "--seconds", "4", "--no-report"]
    env = os.environ | {"TMPDIR": str(tmp_path)}
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=END_S, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = ended.stdout.splitlines()
    counts = {}
    for line in lines:
        words = line.split()
        if words and words[0] in DIALECT_NAMES and len(words) == 1 + len(DIALECTS):
            counts[words[0]] = [int(word) for word in words[1:]]
    assert list(counts) == [DIALECT_NAMES[dialect] for dialect in DIALECTS]
    assert all(count > 0 for row in counts.values() for count in row)
    assert any(line.startswith("kill -9 ") for line in lines)
    books = re.search(r"(\d+) accepted, (\d+) settled, 0 open", ended.stdout)
    assert books is not None
    assert books[1] == books[2]
    assert "the broker started again (boot 2)" in ended.stdout, "the trace of a message that lived through the kill"
    assert lines[-1].startswith("Nothing was lost")
    assert list(tmp_path.iterdir()) == []
    for pid in re.findall(r"\(process (\d+)\)", ended.stdout):
        assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_demo_that_is_interrupted_leaves_nothing_behind(tmp_path: Path, number: int) -> None:
    command = [sys.executable, "-u", "-m", "dragoman", "demo", "--seconds", "40"]
    env = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True) as demo:
        assert demo.stdout is not None
        first = demo.stdout.readline()
        found = re.search(r"\(process (\d+)\)", first)
        assert found is not None, first
        demo.send_signal(number)
        assert demo.wait(END_S) == 130
    assert list(tmp_path.iterdir()) == []
    assert not Path(f"/proc/{found[1]}").exists()
