"""What is told of workers that have gone, with and without an index; and that the command line and the page say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.journal.journal import Journal
from dragoman.journal.settings import JournalSettings
from dragoman.journal.tools.indexer import Indexer
from dragoman.model import enums
from dragoman.model.facts import layout
from dragoman.model.facts.records import FactLog
from dragoman.model.phrases import number_text
from dragoman.model.units import SECOND_NS
from dragoman.runtime.search.trace import departed_worker_lines

START_NS = 1_700_000_000_000_000_000  # 22:13:20 UTC
LATER_NS = START_NS + 60 * SECOND_NS
FIRST, LAST = 1 << 40 | 5, 1 << 40 | 6
JOINED = b"emqp.worker\t127.0.0.1:9\t" + b"bob".hex().encode() + b"\t10 %s"


def journal_of(directory: Path, *blocks: tuple[int, list[tuple[int, int, int, bytes]]]) -> str:
    """Each block: seconds since the start, and facts as kind, number, small, text."""
    journal = Journal.open(JournalSettings(str(directory), "os"))
    log = FactLog()
    for seconds, facts in blocks:
        for kind, number, small, text in facts:
            log.numbered(kind, number, small, text)
        count = log.count
        journal.append(log.take_parts(), count, START_NS + seconds * SECOND_NS)
    journal.close()
    return str(directory)


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_worker_that_left_is_shown_with_what_it_served_last(tmp_path: Path, is_indexed: bool) -> None:
    directory = journal_of(
        tmp_path,
        (0, [(layout.STARTED, 1, 0, b"0.1.0"), (layout.WORKER_JOINED, FIRST, enums.EMQP, JOINED % b"mail")]),
        (10, [(layout.WORKER_JOINED, FIRST, enums.EMQP, JOINED % b"tab\tbed")]),
        (20, [(layout.WORKER_JOINED, LAST, enums.RQ, b"rq\t127.0.0.1:7\t")]),
        (30, [(layout.WORKER_LEFT, LAST, enums.WORKER_LEFT, b""), (layout.WORKER_LEFT, FIRST, enums.HEARTBEAT_LOST, b"")]),
        (40, [(layout.STARTED, 2, 0, b"0.1.0")]),
    )  # fmt: skip
    if is_indexed:
        Indexer(directory).work(is_last=True)
        assert list(tmp_path.glob("*.idx"))
    assert departed_worker_lines(directory, f"w{number_text(FIRST)}", LATER_NS) == [
        "left 22:13:50 UTC, 30.0 s ago (heartbeat lost)",
        "bob (emqp, from 127.0.0.1:9) joined 22:13:20 UTC and served `tab\tbed`",
    ]
    assert departed_worker_lines(directory, number_text(LAST), LATER_NS) == [
        "left 22:13:50 UTC, 30.0 s ago (it said goodbye)",
        "a worker without a name (rq, from 127.0.0.1:7) joined 22:13:40 UTC and served no queue",
    ]


def test_a_worker_that_was_cut_off_says_by_what(tmp_path: Path) -> None:
    started = (layout.STARTED, 1, 0, b"0.1.0")
    joined = (layout.WORKER_JOINED, FIRST, enums.EMQP, JOINED % b"mail")
    directory = journal_of(tmp_path / "stopped", (0, [started, joined]))
    first = departed_worker_lines(directory, f"w{number_text(FIRST)}", LATER_NS)[0]
    assert first.startswith("was connected when the journal last told of it")
    directory = journal_of(tmp_path / "again", (0, [started, joined]), (15, [(layout.STARTED, 2, 0, b"0.1.0")]))
    first = departed_worker_lines(directory, f"w{number_text(FIRST)}", LATER_NS)[0]
    assert first == "was connected until the broker started anew 22:13:35 UTC, 45.0 s ago"


def test_a_worker_whose_joining_is_no_longer_kept_still_says_how_it_went(tmp_path: Path) -> None:
    left = (layout.WORKER_LEFT, FIRST, enums.HEARTBEAT_LOST, b"")
    directory = journal_of(tmp_path, (0, [(layout.STARTED, 2, 0, b"0.1.0")]), (30, [left]))
    assert departed_worker_lines(directory, f"w{number_text(FIRST)}", LATER_NS) == [
        "left 22:13:50 UTC, 30.0 s ago (heartbeat lost)",
        "what it served is older than what is kept",
    ]
    assert departed_worker_lines(directory, f"w{number_text(LAST)}", LATER_NS) == []


@pytest.mark.parametrize("key", ["w1.99", "bob", "", "w", "w0.0", "w99999999.1"])
def test_an_unknown_worker_has_no_history(tmp_path: Path, key: str) -> None:
    directory = journal_of(tmp_path, (0, [(layout.STARTED, 1, 0, b"0.1.0")]))
    assert departed_worker_lines(directory, key, LATER_NS) == []
