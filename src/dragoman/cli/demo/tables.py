"""The demo's last step: the data pipeline turns the lake that the broker wrote into tables and a report."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

from dragoman.cli.demo.screen import Screen


async def tell_in_tables(data: Path, screen: Screen) -> int:
    """Run the pipeline on the stopped broker's lake; return 0 if it wrote a report and found no problem."""
    if importlib.util.find_spec("pyspark") is None:
        screen.say("For a report of all this: pip install 'dragoman[spark]', and run it again.")
        return 0
    screen.say("\nThe same in tables: the data pipeline reads the facts of it all (dragoman pipeline run).")
    # Not in the demo's own directory, which is removed: the report is for reading afterwards.
    report = Path(tempfile.mkdtemp(prefix="dragoman-report-")) / "report.html"
    command = [sys.executable, "-m", "dragoman", "pipeline", "run", "--data", str(data), "--report", str(report)]
    ended = await asyncio.to_thread(subprocess.run, command, stdin=subprocess.DEVNULL, check=False)
    if ended.returncode or not report.exists():
        screen.say(f"The pipeline failed (exit code {ended.returncode}).", "bold red")
        return 1
    screen.say(f"The report: {report}", "bold green")
    return 0
