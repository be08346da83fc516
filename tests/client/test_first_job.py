"""The first page a user reads does what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from dragoman.testing.broker import RunningBroker

PAGE = Path(__file__).parent.parent.parent / "docs" / "start" / "first-job.md"


def test_the_page_of_the_first_job_works_as_written(broker: RunningBroker, tmp_path: Path) -> None:
    module, client = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert "emqp://127.0.0.1" in module
    (tmp_path / "mail.py").write_text(module.replace("emqp://127.0.0.1", broker.url))
    (tmp_path / "client.py").write_text(client)
    command = [sys.executable, "-m", "dragoman", "worker", "mail:app"]
    with (tmp_path / "log").open("w") as log:
        worker = subprocess.Popen(
            command, cwd=tmp_path, stdout=log, stderr=log, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )
    try:
        run = [sys.executable, "client.py"]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)
    finally:
        worker.terminate()
        assert worker.wait(20) == 0
    assert done.returncode == 0, done.stderr
    assert "the worker answered 5" in done.stdout
    assert "kept as" in done.stdout
    assert "sending to a@b.c" in (tmp_path / "log").read_text()
