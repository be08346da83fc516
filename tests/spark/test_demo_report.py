"""The whole way at once: messages in five dialects, a kill, the lake, the pipeline, the report."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

END_S = 800.0
# A few facts: compiling well costs more than it gains.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seconds", ["2", pytest.param("40", marks=pytest.mark.soak)])
def test_the_demo_ends_with_a_report_of_what_it_did(tmp_path: Path, seconds: str) -> None:
    command = [sys.executable, "-m", "dragoman", "demo", "--seconds", seconds]
    env = os.environ | {"TMPDIR": str(tmp_path), "JDK_JAVA_OPTIONS": JAVA_OPTIONS}
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=END_S, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    accepted = re.search(r"(\d+) accepted, (\d+) settled, 0 open", ended.stdout)
    assert accepted is not None, ended.stdout
    path = re.search(r"The report: (\S+)", ended.stdout)
    assert path is not None, ended.stdout
    page = Path(path[1]).read_text()
    assert f"{int(accepted[1]):,}" in page, f"the report does not tell of {accepted[1]} messages"
