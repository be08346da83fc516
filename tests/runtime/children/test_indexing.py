"""The indexer beside the broker: what is kept is soon found by index, whoever dies; and it is nobody's burden."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from dragoman.cli.root import run
from dragoman.client.app import App
from dragoman.journal.segment_views import segment_views
from dragoman.runtime.search.trace import find_lives
from tests.runtime.conftest import NewBroker
from tests.runtime.daemon import Daemon
from tests.runtime.search.histories import trace
from tests.waiting import wait_for

INDEXED_S = 100.0  # the indexer runs when nobody else wants to
MODULE = "dragoman.journal.tools.indexer"
pytestmark = pytest.mark.timeout(240)


def send(daemon: Daemon, count: int, size: int = 2000) -> None:
    with App(f"file:{daemon.data}") as app:
        for number in range(count):
            app.send_sync("mail", b"%d" % number + b"x" * size)


def journal_of(daemon: Daemon) -> str:
    return str(daemon.data / "journal")


def indexers_of(daemon: Daemon) -> list[psutil.Process]:
    def is_indexer(process: psutil.Process) -> bool:
        try:
            return MODULE in process.cmdline()
        except psutil.Error:  # ended a moment ago
            return False

    return [process for process in psutil.Process(daemon.pid).children() if is_indexer(process)]


def indexer_of(daemon: Daemon) -> psutil.Process:
    found: list[psutil.Process] = wait_for("the indexer's process", lambda: indexers_of(daemon), INDEXED_S)
    return found[0]


def wait_sealed_indexed(daemon: Daemon) -> None:
    """Until every segment but the newest has its index."""

    def is_indexed() -> bool:
        segments = segment_views(journal_of(daemon))
        return len(segments) > 1 and all(view.index is not None for view in segments[:-1])

    wait_for("indexes of all sealed segments", is_indexed, INDEXED_S)


def test_sealed_segments_are_indexed_without_being_asked(new_broker: NewBroker) -> None:
    daemon = new_broker("journal.segment_size=128KiB").start()
    send(daemon, 200)
    wait_sealed_indexed(daemon)
    found = find_lives(journal_of(daemon), "1.100")
    assert found
    assert found == trace(journal_of(daemon), "1.100")


def test_the_indexer_runs_when_nobody_else_wants_to(new_broker: NewBroker) -> None:
    indexer = indexer_of(new_broker().start())
    wait_for("its low priority", lambda: os.sched_getscheduler(indexer.pid) == os.SCHED_IDLE, INDEXED_S)


@pytest.mark.long
def test_a_killed_indexer_is_replaced_and_goes_on(new_broker: NewBroker) -> None:
    daemon = new_broker("journal.segment_size=128KiB").start()
    send(daemon, 100)
    first = indexer_of(daemon)
    os.kill(first.pid, signal.SIGKILL)
    wait_for("another indexer", lambda: indexer_of(daemon).pid != first.pid, INDEXED_S)
    send(daemon, 100)
    wait_sealed_indexed(daemon)


@pytest.mark.long
def test_an_indexer_in_trouble_says_why_until_it_is_over(
    new_broker: NewBroker, capfd: pytest.CaptureFixture[str]
) -> None:
    daemon = new_broker("journal.segment_size=128KiB")
    in_the_way = daemon.data / "journal" / "0000000001.idx"
    in_the_way.mkdir(parents=True)
    daemon.start()
    send(daemon, 100)

    def trouble() -> str:
        words: str = daemon.ask("status")["index"]["trouble"]
        return words

    wait_for("trouble", trouble, INDEXED_S)
    assert "Is a directory" in trouble()
    assert run(["status", "--data", str(daemon.data)]) == 0
    assert f"index: {trouble()}" in capfd.readouterr().out
    in_the_way.rmdir()
    wait_for("the trouble to be over", lambda: not trouble(), INDEXED_S)
    wait_sealed_indexed(daemon)
    told = [line for line in daemon.lines() if line["event"] == "the journal cannot be indexed"]
    assert [line["code"] for line in told] == ["DATA_DIRECTORY_UNUSABLE"], "once for each time"


def test_an_indexer_ends_with_a_broker_that_was_killed(new_broker: NewBroker) -> None:
    daemon = new_broker().start()
    indexer = indexer_of(daemon)
    daemon.kill()
    indexer.wait(INDEXED_S)
    assert not indexer.is_running()


@pytest.mark.parametrize("options", [{"durability": "memory"}, {"flags": ("--set=journal.index=off",)}])
def test_no_indexer_where_nothing_is_kept_or_none_is_wanted(new_broker: NewBroker, options: dict[str, Any]) -> None:
    daemon = new_broker(**options).start()
    daemon.wait_line("ready")
    assert indexers_of(daemon) == []
    assert daemon.ask("status")["index"] is None


def test_indexes_are_made_by_hand_without_a_broker(new_broker: NewBroker, capfd: pytest.CaptureFixture[str]) -> None:
    daemon = new_broker("journal.segment_size=128KiB", "journal.index=off").start()
    send(daemon, 150)
    assert daemon.stop() == 0
    assert all(view.index is None for view in segment_views(journal_of(daemon)))
    assert run(["journal", "index", "--data", str(daemon.data)]) == 0
    segments = segment_views(journal_of(daemon))
    assert all(view.index is not None for view in segments)
    assert all(list(view.rest()) == [] for view in segments), "a journal that was closed is covered to its end"
    assert f"{len(segments)} indexes" in capfd.readouterr().out


def test_no_journal_is_no_place_for_indexes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["journal", "index", "--data", str(tmp_path)]) == 5
    assert "no journal to index" in capfd.readouterr().err


def test_a_dropped_segment_leaves_no_index_behind(new_broker: NewBroker) -> None:
    daemon = new_broker("journal.segment_size=128KiB", "journal.size_max=1MiB").start()

    def is_trimmed() -> bool:
        send(daemon, 60, 4000)
        daemon.ask("purge", queue="mail")
        names = {path.name for path in (daemon.data / "journal").iterdir()}
        return "0000000001.seg" not in names and any(name.endswith(".idx") for name in names)

    def has_orphans() -> bool:
        names = {path.name for path in (daemon.data / "journal").iterdir()}
        return any(name.endswith(".idx") and name.replace(".idx", ".seg") not in names for name in names)

    wait_for("old segments to go", is_trimmed, INDEXED_S)
    wait_for("their indexes to go", lambda: not has_orphans(), INDEXED_S)
