"""The sealer as a child process: what it hears, what it says, and how it ends."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.lake.layout import HISTORY, INCOMING
from dragoman.lake.store import Lake
from tests.lake.journals import append, journal, values

# Each child loads Arrow, which takes a moment; where many share a machine, half a minute.
WAIT_S = 100.0

pytestmark = pytest.mark.timeout(240)


class Child:
    """`python -m dragoman.lake.process` and the lines it says."""

    def __init__(self, data: Path, root: str | None = None, **options: float) -> None:
        told = {"journal": str(data / "journal"), "root": root or str(data / "lake"), **options}
        command = [sys.executable, "-m", "dragoman.lake.process", json.dumps(told)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ)
        )
        self._rest = b""

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def hear(self) -> str:
        """The next line."""
        assert self.process.stdout is not None
        ends = time.monotonic() + WAIT_S
        while b"\n" not in self._rest:
            readable, _, _ = select.select([self.process.stdout], [], [], max(ends - time.monotonic(), 0))
            assert readable, "the sealer said nothing"
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, "the sealer ended without a word"
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def hear_words(self) -> list[str]:
        return self.hear().split(maxsplit=2)

    def end(self) -> int:
        """Close its input, as a parent that died; the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(WAIT_S)


@contextmanager
def child(data: Path, root: str | None = None, **options: float) -> Iterator[Child]:
    started = Child(data, root, **options)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.process.kill()
        started.process.wait(WAIT_S)
        for pipe in (started.process.stdin, started.process.stdout):
            assert pipe is not None
            pipe.close()


def test_it_seals_what_is_synced_and_says_so(tmp_path: Path) -> None:
    with journal(tmp_path) as log, child(tmp_path, interval_s=0.2) as sealer:
        last = append(log, 5, blocks=3)
        sealer.say("synced 10")
        assert sealer.hear() == "sealed 0 0 0"
        assert sealer.hear_words()[:2] == ["sealed", "10"]
        sealer.say(f"synced {last}")
        word, lsn, rest = sealer.hear_words()
        assert (word, lsn, rest.split()[0]) == ("sealed", "15", "5")
        assert values(Lake(str(tmp_path / "lake")), "lsn") == list(range(1, 16))
        sealer.say("stop")
        assert sealer.process.wait(WAIT_S) == 0


def test_when_its_parent_dies_it_flushes_what_it_may_and_ends(tmp_path: Path) -> None:
    with journal(tmp_path) as log, child(tmp_path, interval_s=1000) as sealer:
        append(log, 5, blocks=3)
        sealer.say("synced 12")
        assert sealer.hear() == "sealed 0 0 0"
        assert sealer.end() == 0
        assert values(Lake(str(tmp_path / "lake")), "lsn") == list(range(1, 11))


def test_enough_rows_are_sealed_before_their_time_and_joined(tmp_path: Path) -> None:
    with journal(tmp_path) as log, child(tmp_path, interval_s=1000, rows_max=20) as sealer:
        last = append(log, 10, blocks=10)
        sealer.say(f"synced {last}")
        told = [sealer.hear_words()[1] for _ in range(6)]
        assert told == ["0", "20", "40", "60", "80", "100"]
        assert sealer.end() == 0
    lake = Lake(str(tmp_path / "lake"))
    assert [part.rows for part in lake.parts(INCOMING)] == [20] * 5
    assert lake.parts(HISTORY) == [] or [part.rows for part in lake.parts(HISTORY)] == [100]


def test_a_killed_sealer_is_followed_by_one_that_goes_on(tmp_path: Path) -> None:
    with journal(tmp_path) as log:
        with child(tmp_path, interval_s=0.05) as sealer:
            sealer.say(f"synced {append(log, 5, blocks=20)}")
            sealer.hear()
            sealer.process.kill()
            sealer.process.wait(WAIT_S)
        last = append(log, 5, blocks=20)
        with child(tmp_path, interval_s=0.05) as sealer:
            sealer.say(f"synced {last}")
            assert sealer.hear_words()[0] == "sealed"
            assert sealer.end() == 0
    assert values(Lake(str(tmp_path / "lake")), "lsn") == list(range(1, last + 1))


def test_a_second_sealer_of_the_same_journal_ends_at_once(tmp_path: Path) -> None:
    with journal(tmp_path) as log, child(tmp_path) as first:
        first.say(f"synced {append(log, 5)}")
        assert first.hear() == "sealed 0 0 0"
        with child(tmp_path) as second:
            assert second.hear_words()[:2] == ["trouble", "SEALER_BUSY"]
            assert second.process.wait(WAIT_S) == 1
        assert first.end() == 0


def test_a_failing_store_is_logged_and_does_not_delay_the_end(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("in the way")
    with journal(tmp_path) as log, child(tmp_path, interval_s=0.05) as sealer:
        sealer.say(f"synced {append(log, 5)}")
        assert sealer.hear() == "sealed 0 0 0"
        assert sealer.hear_words()[:2] == ["trouble", "LAKE_UNREACHABLE"]
        assert sealer.end() == 1


def test_trouble_with_tidying_ends_without_a_new_fact(tmp_path: Path) -> None:
    in_the_way = tmp_path / "lake" / "facts" / HISTORY / "date=2026-01-01"
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("in the way")
    with journal(tmp_path) as log, child(tmp_path, interval_s=0.05) as sealer:
        sealer.say(f"synced {append(log, 5)}")
        assert [sealer.hear_words()[1] for _ in range(2)] == ["0", "5"]
        assert sealer.hear_words()[:2] == ["trouble", "LAKE_UNREACHABLE"]
        in_the_way.unlink()
        while (words := sealer.hear())[:7] == "trouble":
            pass  # it had tried again before we came
        assert words == "sealed 5 0 0"
        assert sealer.end() == 0


def test_a_journal_behind_its_lake_is_refused_for_good(tmp_path: Path) -> None:
    with journal(tmp_path) as log, child(tmp_path, interval_s=0.05) as sealer:
        sealer.say(f"synced {append(log, 5, blocks=2)}")
        assert [sealer.hear_words()[1] for _ in range(2)] == ["0", "10"]
        assert sealer.end() == 0
    with child(tmp_path) as sealer:
        sealer.say("synced 5")
        assert sealer.hear_words()[:2] == ["trouble", "LAKE_AHEAD"]
        assert sealer.process.wait(WAIT_S) == 1


def test_a_journal_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    with child(tmp_path, interval_s=0.05) as sealer:
        sealer.say("synced 1")
        assert sealer.hear_words()[:2] == ["trouble", "DATA_DIRECTORY_UNUSABLE"]
        assert sealer.process.poll() is None
    with child(tmp_path / "nowhere") as sealer:
        assert sealer.hear_words()[:2] == ["trouble", "DATA_DIRECTORY_UNUSABLE"]
        assert sealer.process.wait(WAIT_S) == 1


@pytest.mark.parametrize("words", ["synced", "synced x", "hello there", ""])
def test_words_it_does_not_know_change_nothing(tmp_path: Path, words: str) -> None:
    with journal(tmp_path) as log, child(tmp_path, interval_s=0.05) as sealer:
        sealer.say(words)
        sealer.say(f"synced {append(log, 5)}")
        assert [sealer.hear_words()[1] for _ in range(2)] == ["0", "5"]
        assert sealer.end() == 0
