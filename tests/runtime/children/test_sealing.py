"""The sealer beside the broker: what is committed reaches the lake, whoever dies; and the journal waits for it, within bounds."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from dragoman.client.app import App
from dragoman.lake.store import Lake
from tests.runtime.daemon import Daemon
from tests.waiting import wait_for

SEALED_S = 100.0  # the sealer runs when nobody else wants to, and four tests at once want to most of the time
pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(tmp_path / "data", "lake.mode=on", "lake.interval_s=0.2", "journal.segment_size=1MiB")
    yield made
    if made.program is not None:
        made.kill()


def send(daemon: Daemon, count: int) -> None:
    with App(f"file:{daemon.data}") as app:
        for number in range(count):
            app.send_sync("mail", b"%d" % number)


def lake_of(daemon: Daemon) -> dict[str, Any]:
    found: dict[str, Any] = daemon.ask("status")["lake"]
    return found


def sealer_of(daemon: Daemon) -> psutil.Process:
    def is_sealer(process: psutil.Process) -> bool:
        try:
            return "dragoman.lake.process" in process.cmdline()
        except psutil.Error:  # killed a moment ago, and not yet buried
            return False

    def find() -> list[psutil.Process]:
        return [process for process in psutil.Process(daemon.pid).children() if is_sealer(process)]

    found: list[psutil.Process] = wait_for("the sealer's process", find, SEALED_S)
    return found[0]


def sealed_lsns(daemon: Daemon) -> list[int]:
    """Every lsn that a reader of the lake meets, in order."""
    lake = Lake(str(daemon.data / "lake"))
    tables = [lake.read(part, "incoming") for part in lake.parts("incoming")]
    return [lsn for table in tables for lsn in table["lsn"].to_pylist()]


def wait_sealed(daemon: Daemon) -> int:
    def is_level() -> int:
        status = daemon.ask("status")
        last_lsn: int = status["journal"]["next_lsn"] - 1
        return last_lsn if status["lake"]["sealed_lsn"] == last_lsn else 0

    return wait_for("the lake to be level with the journal", is_level, SEALED_S)


def test_what_is_committed_reaches_the_lake_without_being_asked(daemon: Daemon) -> None:
    daemon.start()
    send(daemon, 20)
    last_lsn = wait_sealed(daemon)
    assert last_lsn > 20
    assert sealed_lsns(daemon) == list(range(1, last_lsn + 1))
    assert lake_of(daemon)["trouble"] == ""


def test_a_stop_brings_the_last_facts_to_the_lake(daemon: Daemon) -> None:
    daemon.start()
    sealer_of(daemon)
    wait_sealed(daemon)
    send(daemon, 5)
    last_lsn = daemon.ask("status")["journal"]["next_lsn"] - 1
    assert daemon.stop() == 0
    assert sealed_lsns(daemon) == list(range(1, last_lsn + 1))


def test_a_killed_sealer_is_replaced_and_no_row_is_lost_or_doubled(daemon: Daemon) -> None:
    daemon.start()
    send(daemon, 5)
    wait_sealed(daemon)
    first = sealer_of(daemon)
    os.kill(first.pid, signal.SIGKILL)
    send(daemon, 5)
    wait_for("another sealer", lambda: sealer_of(daemon).pid != first.pid, SEALED_S)
    last_lsn = wait_sealed(daemon)
    assert sealed_lsns(daemon) == list(range(1, last_lsn + 1))


def test_a_sealer_ends_with_a_broker_that_was_killed_and_the_next_goes_on(daemon: Daemon) -> None:
    daemon.start()
    send(daemon, 5)
    wait_sealed(daemon)
    sealer = sealer_of(daemon)
    daemon.kill()
    sealer.wait(SEALED_S)
    daemon.start()
    send(daemon, 5)
    last_lsn = wait_sealed(daemon)
    assert sealed_lsns(daemon) == list(range(1, last_lsn + 1))


def test_a_broker_that_keeps_nothing_has_no_lake(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path / "data", "lake.mode=on", durability="memory").start()
    assert lake_of(daemon) is None
    daemon.kill()


def test_the_journal_waits_for_a_lake_that_cannot_be_written_but_not_for_ever(tmp_path: Path) -> None:
    blocked = tmp_path / "not-a-directory"
    blocked.write_text("in the way")
    daemon = Daemon(
        tmp_path / "data",
        "lake.mode=on",
        f"lake.root={blocked}/lake",
        "lake.interval_s=0.2",
        "journal.segment_size=1MiB",
        "journal.size_max=4MiB",
    ).start()
    try:
        wait_for("the lake's trouble", lambda: lake_of(daemon)["trouble"], SEALED_S)
        [finding] = daemon.ask("stuck")["findings"]
        assert finding["kind"] == "lake_behind"
        assert finding["line"].startswith("the lake is not written: ")
        sizes = []
        with App(f"file:{daemon.data}") as app:
            for _ in range(30):
                for _ in range(10):
                    app.send_sync("mail", b"x" * 50_000)
                daemon.ask("purge", queue="mail")
                sizes.append(daemon.ask("status")["journal"]["size"])
        assert max(sizes) > 6 * 2**20, "segments went although the lake did not have them"
        wait_for("old segments to go", lambda: daemon.ask("status")["journal"]["size"] < 9 * 2**20, SEALED_S)
        assert daemon.lines("segments go before the lake has them")
    finally:
        daemon.kill()
