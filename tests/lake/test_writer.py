"""Blocks of facts become files: cut by date and by lsn, read back with the types and values of the schema."""

from __future__ import annotations

import datetime
from hashlib import blake2b
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from dragoman.lake import schema
from dragoman.lake.arrow import ARROW_TYPES
from dragoman.lake.layout import INCOMING
from dragoman.lake.store import Lake
from dragoman.lake.writer import Bodies, LakeWriter
from dragoman.model import enums
from dragoman.model.facts.records import FactLog
from dragoman.model.message import Message
from tests.lake.journals import BROKER, BROKER_ID, DAY_NS, NOON_NS, facts, read_all, values

DONE = 3


def writer(root: Path, bodies: Bodies = "hash", **more: int) -> LakeWriter:
    return LakeWriter(Lake(str(root)), BROKER_ID, bodies, **more)


def names(lake: Lake) -> list[tuple[str, int, int]]:
    return [(part.date.isoformat(), part.first_lsn, part.last_lsn) for part in lake.parts(INCOMING)]


def test_blocks_that_follow_each_other_make_one_file(tmp_path: Path) -> None:
    w = writer(tmp_path)
    w.add(facts(1, 3), 1, 3, NOON_NS)
    w.add(facts(4, 2), 4, 2, NOON_NS + 1)
    [written] = w.flush()
    path = tmp_path / written.part.path(INCOMING)
    assert path.stat().st_size == written.size
    assert names(w.lake) == [("2026-01-01", 1, 5)]
    assert values(w.lake, "lsn") == [1, 2, 3, 4, 5]
    assert values(w.lake, "message_no") == [1, 2, 3, 4, 5]


def test_midnight_begins_a_new_file(tmp_path: Path) -> None:
    w = writer(tmp_path)
    midnight_ns = NOON_NS + DAY_NS // 2
    w.add(facts(1, 3), 1, 3, midnight_ns - 1)
    w.add(facts(4, 2), 4, 2, midnight_ns)
    w.add(facts(6, 1), 6, 1, midnight_ns - 1)  # the clock was put back
    assert len(w.flush()) == 3
    assert sorted(names(w.lake)) == [("2026-01-01", 1, 3), ("2026-01-01", 6, 6), ("2026-01-02", 4, 5)]


def test_a_jump_in_lsns_begins_a_new_file(tmp_path: Path) -> None:
    w = writer(tmp_path)
    w.add(facts(1, 3), 1, 3, NOON_NS)
    w.add(facts(10, 2), 10, 2, NOON_NS)
    w.flush()
    assert names(w.lake) == [("2026-01-01", 1, 3), ("2026-01-01", 10, 11)]


def test_what_the_lake_has_already_is_passed_over_even_inside_a_block(tmp_path: Path) -> None:
    w = writer(tmp_path, next_lsn=3)
    w.add(facts(1, 2), 1, 2, NOON_NS)
    assert w.rows == 0
    w = writer(tmp_path, next_lsn=5)
    w.add(facts(4, 4), 4, 4, NOON_NS)
    w.flush()
    assert names(w.lake) == [("2026-01-01", 5, 7)]
    assert values(w.lake, "message_no") == [5, 6, 7]


def test_lsns_never_go_back(tmp_path: Path) -> None:
    w = writer(tmp_path)
    w.add(facts(1, 3), 1, 3, NOON_NS)
    with pytest.raises(AssertionError, match="fact 2 comes after fact 3"):
        w.add(facts(2, 3), 2, 3, NOON_NS)


def test_a_block_must_have_as_many_facts_as_it_says(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="a block of 4 facts has 3"):
        writer(tmp_path).add(facts(1, 3), 1, 4, NOON_NS)


def test_enough_rows_make_it_full(tmp_path: Path) -> None:
    w = writer(tmp_path, rows_max=5)
    w.add(facts(1, 4), 1, 4, NOON_NS)
    assert not w.is_full
    w.add(facts(5, 1), 5, 1, NOON_NS + DAY_NS)
    assert w.is_full
    w.flush()
    assert (w.rows, w.is_full) == (0, False)


def test_large_bodies_make_it_full_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.limits.LAKE_FILE_BYTES", 1000)
    sizes = {"hash": False, "full": True}
    for bodies, is_full in sizes.items():
        w = writer(tmp_path, bodies)  # type: ignore[arg-type]
        log = FactLog()
        log.accepted(Message(enums.EMQP, b"q", b"id", bytes(1000)))
        w.add(log.take(), 1, 1, NOON_NS)
        assert w.is_full is is_full


def life() -> bytes:
    """Three facts of one message whose numbers are all different, so that no column can pass for another."""
    m = Message(enums.RQ, b"q", (258).to_bytes(4, "big"), b"the body")
    m.number, m.queue_no, m.flags, m.priority, m.retries_left = (1 << 40) + 5, 7, 3, 9, -1
    m.timeout_ns, m.expires_ns, m.due_ns, m.schedule_no = 30_000_000_999, NOON_NS + 5_000, NOON_NS + 6_000, 44
    log = FactLog()
    log.accepted(m)
    log.leased(m, 99)
    m.attempt, m.accepted_ns, m.first_leased_ns, m.leased_ns = 1, NOON_NS - 9_999, NOON_NS - 7_000, NOON_NS - 6_000
    m.delivered_ns, m.body_size, m.asked_due_ns = 0, 8, 0
    log.closed(m, 99, enums.EBUS, 17, DONE, enums.ANSWERED, 99)
    return log.take()


def at(offset_us: int = 0) -> datetime.datetime:
    noon = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
    return noon + datetime.timedelta(microseconds=offset_us)


def test_rows_say_what_their_facts_say_and_nothing_else(tmp_path: Path) -> None:
    w = writer(tmp_path)
    w.add(life(), 1, 3, NOON_NS + 1_999)
    w.flush()
    body_hash = int.from_bytes(blake2b(b"the body", digest_size=8).digest(), "little", signed=True)
    message_no = (1 << 40) + 5
    common = {"broker_id": int(BROKER, 16), "at": at(1), "message_no": message_no}
    said = [{k: v for k, v in row.items() if v is not None} for row in read_all(w.lake).to_pylist()]
    assert said == [
        {
            **common, "lsn": 1, "kind": 5, "queue_no": 7, "schedule_no": 44, "client_dialect": enums.RQ, "priority": 9,
            "flags": 3, "timeout_us": 30_000_000, "expires_at": at(5), "due_at": at(6), "body_size": 8, "body_hash": body_hash,
            "client_id": "258",
        },
        {**common, "lsn": 2, "kind": 6, "worker_no": 99, "attempt": 1},
        {
            **common, "lsn": 3, "kind": 9, "worker_no": 99, "queue_no": 7, "attempt": 1, "client_dialect": enums.RQ,
            "worker_dialect": enums.EBUS, "outcome": DONE, "reason": enums.ANSWERED, "accepted_at": at(-10),
            "first_leased_at": at(-7), "leased_at": at(-6), "body_size": 8, "reply_size": 17,
        },
    ]  # fmt: skip


def test_a_file_has_the_columns_and_types_of_the_schema(tmp_path: Path) -> None:
    w = writer(tmp_path)
    w.add(life(), 1, 3, NOON_NS)
    [written] = w.flush()
    found = parquet.read_schema(tmp_path / written.part.path(INCOMING))
    assert [(f.name, f.type, f.nullable) for f in found] == [
        (column.name, ARROW_TYPES[column.type], not column.is_required) for column in schema.COLUMNS
    ]
    assert found.field("at").type == pa.timestamp("us", "UTC")
    assert found.metadata[b"dragoman.schema_version"] == str(schema.VERSION).encode()
    assert found.metadata[b"dragoman.broker_id"] == BROKER_ID.hex().encode()


@pytest.mark.parametrize(
    ("bodies", "has_hash", "body"), [("none", False, None), ("hash", True, None), ("full", True, b"")]
)
def test_bodies_go_along_as_far_as_asked(tmp_path: Path, bodies: Bodies, has_hash: bool, body: bytes | None) -> None:
    w = writer(tmp_path, bodies)
    log = FactLog()
    for text in (b"", b"second"):
        log.accepted(Message(enums.EMQP, b"q", b"id", text))
    w.add(log.take(), 1, 2, NOON_NS)
    w.flush()
    assert values(w.lake, "body_size") == [0, 6]
    assert [value is not None for value in values(w.lake, "body_hash")] == [has_hash, has_hash]
    assert values(w.lake, "body") == ([b"", b"second"] if body is not None else [None, None])


def test_ids_that_are_no_text_are_shown_with_escapes(tmp_path: Path) -> None:
    w = writer(tmp_path)
    log = FactLog()
    for client_id in (b"", b"a\0b", b"\xff\xfe", "žluť".encode(), b"plain"):
        log.accepted(Message(enums.EMQP, b"q", client_id, b""))
    w.add(log.take(), 1, 5, NOON_NS)
    w.flush()
    assert values(w.lake, "client_id") == [None, "a\0b", "\\xff\\xfe", "žluť", "plain"]


def test_duckdb_reads_what_was_written(tmp_path: Path) -> None:
    """Another reader of Parquet than the one that wrote it, over the layout as it lies there."""
    w = writer(tmp_path)
    w.add(life(), 1, 3, NOON_NS)
    w.add(facts(4, 500), 4, 500, NOON_NS + DAY_NS)
    w.flush()
    found = duckdb.sql(
        f"""
        select date::varchar, kind, count(*), min(lsn), max(lsn), min(broker_id), max(epoch_us("at")), count(worker_no),
               min(client_id), count(distinct body_hash)
        from read_parquet('{tmp_path}/facts/incoming/**/*.parquet', hive_partitioning = true) group by all order by all
        """
    ).fetchall()
    broker, noon_us = int(BROKER, 16), NOON_NS // 1000
    assert found == [
        ("2026-01-01", 5, 1, 1, 1, broker, noon_us, 0, "258", 1),
        ("2026-01-01", 6, 1, 2, 2, broker, noon_us, 1, None, 0),
        ("2026-01-01", 9, 1, 3, 3, broker, noon_us, 1, None, 0),
        ("2026-01-02", 5, 500, 4, 503, broker, noon_us + DAY_NS // 1000, 0, "id-10", 500),
    ]


def test_nothing_to_write_writes_nothing(tmp_path: Path) -> None:
    w = writer(tmp_path / "lake")
    assert w.flush() == []
    assert not (tmp_path / "lake").exists()
