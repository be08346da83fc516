"""The exporter against a real journal and a real collector, ended at any step: every span arrives, the same by its id as in one go."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from dragoman import limits
from dragoman.errors import CollectorAway
from dragoman.journal.journal import Journal
from dragoman.journal.reader import JournalReader
from dragoman.journal.settings import JournalSettings
from dragoman.model import enums
from dragoman.model.facts.layout import QUEUE_NAMED, WORKER_JOINED
from dragoman.model.facts.records import FactLog
from dragoman.model.message import Message
from dragoman.otel.collector import Collector
from dragoman.otel.cursor import Cursor, read_cursor, write_cursor
from dragoman.otel.exporter import Exporter
from dragoman.otel.otlp import Encoder, encode
from dragoman.otel.tracer import Tracer
from tests.otel.receiver import Receiver

BROKER_ID = bytes(range(16))
BOOT = 1 << 40
DONE = 3
BEGIN_NS = 1_767_225_600_000_000_000
OPEN_MAX = 1000


@contextmanager
def journal(data: Path) -> Iterator[Journal]:
    settings = JournalSettings(str(data / "journal"), "os", segment_size=limits.SEGMENT_SIZE_MIN)
    opened = Journal.open(settings, now_ns=BEGIN_NS, new_broker_id=BROKER_ID)
    try:
        yield opened
    finally:
        opened.close()


def live(log: FactLog, chance: random.Random, held: list[Message], numbers: Iterator[int], at_ns: int) -> None:
    """One more fact about a message that is new or held."""
    m = chance.choice(held) if held and chance.random() < 0.7 else None
    if m is None:
        m = Message(enums.EMQP, b"mail", b"id", b"b" * chance.randrange(300))
        m.number, m.queue_no, m.accepted_ns, m.flags = next(numbers), 1, at_ns, enums.REPLY_WANTED
        if chance.random() < 0.5:
            m.headers = b"traceparent:00-%032x-%016x-%02x" % (m.number, 7, chance.randrange(2))
        log.accepted(m)
        held.append(m)
    elif not m.leased_ns:
        m.attempt, m.leased_ns = m.attempt + 1, at_ns
        m.first_leased_ns = m.first_leased_ns or at_ns
        log.leased(m, 7)
    elif chance.random() < 0.4:
        log.released(m, 7, enums.EMQP, 1, 0, enums.TIMED_OUT, False)
        m.leased_ns = 0
    else:
        log.closed(m, 7, enums.EMQP, 5, DONE, enums.ANSWERED, 7)
        held.remove(m)


def fill(data: Path, seed: int, blocks: int) -> int:
    """A journal of that many blocks over several segments; its last lsn."""
    chance, log, held, numbers = random.Random(seed), FactLog(), [], iter(range(BOOT, BOOT + 10**6))
    last_lsn = 0
    with journal(data) as kept:
        log.numbered(QUEUE_NAMED, 1, 0, b"mail")
        log.numbered(WORKER_JOINED, 7, enums.EMQP, b"emqp.worker\tremote\t")
        for index in range(blocks):
            for _ in range(chance.randrange(1, 12)):
                live(log, chance, held, numbers, BEGIN_NS + index)
            if kept.wants_roll():
                kept.roll()
            count = log.count
            last_lsn = kept.append(log.take_parts(), count, BEGIN_NS + index)
    return last_lsn


def new_exporter(data: Path, sender: Collector, spans_max: int) -> Exporter:
    cursor = read_cursor(data)
    assert cursor is not None
    tracer = Tracer(BROKER_ID, 0.5, OPEN_MAX)
    tracer.queues[1], tracer.workers[7] = "mail", "remote"  # as the broker tells it
    reader = JournalReader(str(data / "journal"))
    return Exporter(data, cursor, reader, tracer, Encoder("dragoman", BROKER_ID), sender, spans_max)


def in_one_go(data: Path) -> dict[bytes, bytes]:
    tracer = Tracer(BROKER_ID, 0.5, OPEN_MAX)
    spans = [span for block in JournalReader(str(data / "journal")).read(0) for span in tracer.take(block, 0)]
    return {span.span_id: encode(span) for span in spans}


@pytest.mark.parametrize("seed", range(12))
def test_ended_at_any_step_it_reports_the_same_as_in_one_go(tmp_path: Path, collector: Receiver, seed: int) -> None:
    chance = random.Random(seed)
    last_lsn = fill(tmp_path, seed, 400)
    write_cursor(tmp_path, Cursor(BROKER_ID.hex(), 0))
    synced_lsn = ends = 0
    with closing(Collector(collector.endpoint, {})) as sender:
        exporter = new_exporter(tmp_path, sender, chance.randrange(1, 60))
        while exporter.exported_lsn < last_lsn:
            synced_lsn = min(synced_lsn + chance.randrange(1, 400), last_lsn)
            collector.answer = 503 if chance.random() < 0.2 else 200
            exporter.take(synced_lsn)
            if chance.random() < 0.8:
                with suppress(CollectorAway):
                    exporter.send()
                    if chance.random() < 0.6:
                        exporter.keep()
            if chance.random() < 0.1:
                exporter = new_exporter(tmp_path, sender, chance.randrange(1, 60))  # as after kill −9
                ends += 1
        collector.answer = 200
        exporter.send()
    assert ends > 0
    assert exporter.missed == 0
    arrived = collector.by_id()
    expected = in_one_go(tmp_path)
    assert len(expected) > 100
    assert arrived.keys() == expected.keys()
    assert {span_id: type(span).FromString(expected[span_id]) for span_id, span in arrived.items()} == arrived


def test_nothing_is_sent_before_it_is_synced(tmp_path: Path, collector: Receiver) -> None:
    last_lsn = fill(tmp_path, 1, 50)
    write_cursor(tmp_path, Cursor(BROKER_ID.hex(), 0))
    with closing(Collector(collector.endpoint, {})) as sender:
        exporter = new_exporter(tmp_path, sender, 10_000)
        exporter.take(last_lsn // 2)
        exporter.send()
    assert exporter.exported_lsn <= last_lsn // 2


def test_the_cursor_leads_back_to_the_oldest_message_that_is_open(tmp_path: Path, collector: Receiver) -> None:
    fill(tmp_path, 3, 60)
    write_cursor(tmp_path, Cursor(BROKER_ID.hex(), 0))
    with closing(Collector(collector.endpoint, {})) as sender:
        exporter = new_exporter(tmp_path, sender, 10_000)
        exporter.take(10**9)
        exporter.send()
        exporter.keep()
    cursor = read_cursor(tmp_path)
    assert cursor is not None
    assert 0 < cursor.open_lsn < cursor.lsn


def test_a_span_that_is_never_taken_costs_no_other(tmp_path: Path, collector: Receiver) -> None:
    fill(tmp_path, 4, 60)
    write_cursor(tmp_path, Cursor(BROKER_ID.hex(), 0))
    expected = in_one_go(tmp_path)
    collector.hated_ids = set(list(expected)[3:30:9])
    with closing(Collector(collector.endpoint, {})) as sender:
        exporter = new_exporter(tmp_path, sender, 10_000)
        exporter.take(10**9)
        exporter.send()
    assert collector.by_id().keys() == expected.keys() - collector.hated_ids
    assert (exporter.refused, exporter.sent) == (3, len(expected) - 3)


def test_what_was_taken_in_parts_before_a_failure_is_not_sent_again(tmp_path: Path, collector: Receiver) -> None:
    fill(tmp_path, 4, 60)
    write_cursor(tmp_path, Cursor(BROKER_ID.hex(), 0))
    expected = in_one_go(tmp_path)
    first_id = next(iter(expected))
    collector.spans_taken_max, collector.hated_ids, collector.away_after = 5, {first_id}, 20
    with closing(Collector(collector.endpoint, {})) as sender:
        exporter = new_exporter(tmp_path, sender, 10_000)
        exporter.take(10**9)
        with pytest.raises(CollectorAway, match="503"):
            exporter.send()
        assert 0 < len(collector.spans) < len(expected) - 1
        assert (exporter.sent, exporter.refused) == (len(collector.spans), 1)
        collector.away_after = 1_000_000
        exporter.send()
    assert len(collector.spans) == exporter.sent == len(expected) - 1, "none came twice"
    assert collector.by_id().keys() == expected.keys() - {first_id}
    assert exporter.refused == 1


def test_a_collector_that_refuses_everything_is_trouble_and_nothing_is_passed_over(
    tmp_path: Path, collector: Receiver
) -> None:
    fill(tmp_path, 4, 200)
    write_cursor(tmp_path, Cursor(BROKER_ID.hex(), 0))
    collector.answer = 400
    with closing(Collector(collector.endpoint, {})) as sender:
        exporter = new_exporter(tmp_path, sender, 10_000)
        exporter.take(10**9)
        with pytest.raises(CollectorAway, match="every span is refused, it answers 400"):
            exporter.send()
        assert len(collector.requests) < 100, "it is not asked for each of them"
        assert (exporter.refused, exporter.exported_lsn) == (0, 0)
        collector.answer = 200
        exporter.send()
    assert collector.by_id().keys() == in_one_go(tmp_path).keys()
