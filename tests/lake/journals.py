"""What the lake's tests share: journals of real facts, and the rows a reader of the lake sees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from dragoman import limits
from dragoman.journal.journal import Journal
from dragoman.journal.settings import JournalSettings
from dragoman.lake.layout import HISTORY, INCOMING, cover
from dragoman.lake.store import Lake
from dragoman.model import enums
from dragoman.model.facts.records import FactLog
from dragoman.model.message import Message

BROKER_ID = bytes(range(0x80, 0x90))
BROKER = "0081828384858687"  # the top bit is cleared
DAY_NS = 86_400 * 1_000_000_000
NOON_NS = 1_767_225_600_000_000_000 + DAY_NS // 2  # 2026-01-01 12:00 UTC


def facts(first_no: int, count: int, dialect: int = enums.EMQP) -> bytes:
    """So many leased facts in one block, message numbers from `first_no` on."""
    log = FactLog()
    for number in range(first_no, first_no + count):
        m = Message(dialect, b"q", b"id-%d" % number, b"body %d" % number)
        m.number, m.queue_no, m.attempt = number, 1, 1
        log.accepted(m)
    return log.take()


@contextmanager
def journal(data: Path, segment_size: int = limits.SEGMENT_SIZE_MIN) -> Iterator[Journal]:
    settings = JournalSettings(str(data / "journal"), "os", segment_size=segment_size)
    opened = Journal.open(settings, now_ns=NOON_NS, new_broker_id=BROKER_ID)
    try:
        yield opened
    finally:
        opened.close()


def append(log: Journal, count: int, time_ns: int = NOON_NS, blocks: int = 1) -> int:
    """Blocks of `count` facts each, fact n about message n; the last lsn."""
    last = log.next_lsn - 1
    for _ in range(blocks):
        if log.wants_roll():
            log.roll()
        last = log.append([facts(last + 1, count)], count, time_ns)
    return last


def read_all(lake: Lake) -> pa.Table:
    """Every fact of the lake once, as its readers choose files."""
    tables = []
    for share in cover(lake.parts(INCOMING), lake.parts(HISTORY)):
        table = lake.read(share.part, share.tier)
        tables.append(table.slice(share.first_lsn - share.part.first_lsn, share.last_lsn - share.first_lsn + 1))
    return pa.concat_tables(tables) if tables else None


def values(lake: Lake, column: str) -> list[Any]:
    table = read_all(lake)
    return table.column(column).to_pylist() if table is not None else []
