"""The demo's last act: what just happened, as tables and a report, made by the data pipeline from the lake the broker wrote."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

from dragoman.cli.demo.screen import Screen


async def tell_in_tables(data: Path, screen: Screen) -> int:
    """Run the pipeline on the stopped broker's lake; 0 when its report is there and says that all is well."""
    if importlib.util.find_spec("pyspark") is None:
        screen.say("For a report of all this: pip install 'dragoman[spark]', and run it again.")
        return 0
    screen.say("\nThe same in tables: the data pipeline reads the facts of it all (dragoman pipeline run).")
    # Not in the demo's own folder, which goes: the report is for looking at afterwards.
    report = Path(tempfile.mkdtemp(prefix="dragoman-report-")) / "report.html"
    command = [sys.executable, "-m", "dragoman", "pipeline", "run", "--data", str(data), "--report", str(report)]
    ended = await asyncio.to_thread(subprocess.run, command, stdin=subprocess.DEVNULL, check=False)
    if ended.returncode or not report.exists():
        screen.say(f"The pipeline failed (exit code {ended.returncode}).", "bold red")
        return 1
    screen.say(f"The report: {report}", "bold green")
    return 0
