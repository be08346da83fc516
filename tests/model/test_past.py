"""What happened before a start: every fact counted once, and as its decoded form says."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from dragoman.limits import PAST_QUEUES_MAX
from dragoman.model.buckets import bucket_of, counts_of
from dragoman.model.decode import decode_block
from dragoman.model.histogram import Histogram
from dragoman.model.message import Message
from dragoman.model.past import Past
from dragoman.model.records import STARTED, FactLog
from dragoman.model.words import ANSWERED, DIALECT_NAMES, DIALECTS, EMQP, NOBODY, ROW_SIZE, RQ
from tests.model.lives import BEGIN_NS, DONE, Block, lived

SEEDS = range(20)


def counted(blocks: list[Block], boot_no: int) -> Past:
    past = Past(boot_no)
    for records, time_ns in blocks:
        past.add(records, time_ns)
    return past


def facts_before(blocks: list[Block], boot_no: int) -> list[tuple[dict[str, Any], int]]:
    found: list[tuple[dict[str, Any], int]] = []
    for records, time_ns in blocks:
        for fact in decode_block(records):
            if fact["fact"] == "started" and fact["boot_no"] == boot_no:
                return found
            found.append((fact, time_ns))
    raise AssertionError("the boot never began")


def spread(histogram: Histogram) -> dict[int, int]:
    return counts_of(histogram.pairs())


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_counted_is_what_the_facts_say(seed: int) -> None:
    blocks = lived(seed, 20, 30, 20).blocks
    past, facts = counted(blocks, 3), facts_before(blocks, 3)
    accepted = Counter(fact["dialect"] for fact, _ in facts if fact["fact"] == "accepted")
    assert [cell.count for cell in past.accepted] == [accepted[name] for name in DIALECT_NAMES]
    closed = [(fact, at_ns) for fact, at_ns in facts if fact["fact"] == "closed"]
    settled = Counter((fact["dialect"], fact["worker_dialect"] if fact["worker_no"] else "") for fact, _ in closed)
    assert sum(settled.values()) > 20
    for client in range(DIALECTS):
        for worker in range(ROW_SIZE):
            name = "" if worker == NOBODY else DIALECT_NAMES[worker]
            assert past.settled[client * ROW_SIZE + worker].count == settled[DIALECT_NAMES[client], name]
    for queue_no, spans in past.queues.items():
        own = [(fact, at_ns) for fact, at_ns in closed if fact["queue_no"] == queue_no]
        assert spread(spans.total) == Counter(int(bucket_of(at_ns - fact["accepted_ns"])) for fact, at_ns in own)
        waits = [
            fact["first_leased_ns"] - max(fact["accepted_ns"], fact["due_ns"]) for fact, _ in own if fact["attempt"]
        ]
        assert spread(spans.wait) == Counter(int(bucket_of(wait_ns)) for wait_ns in waits)
    assert set(past.queues) == {fact["queue_no"] for fact, _ in closed}


def test_what_follows_the_start_is_not_counted_even_at_the_same_instant() -> None:
    log = FactLog()
    log.accepted(Message(EMQP, b"q", b"", b""))
    log.numbered(STARTED, 2, 0, b"1.0")
    log.accepted(Message(RQ, b"q", b"", b""))
    same = log.take()
    past = counted([(same, BEGIN_NS), (same, BEGIN_NS)], 2)
    assert past.is_over
    assert [past.accepted[EMQP].count, past.accepted[RQ].count] == [1, 0]


def test_an_earlier_start_is_no_border() -> None:
    blocks = lived(1, 10, 10).blocks
    assert not counted(blocks, 3).is_over
    assert counted(blocks, 2).is_over


def test_one_queue_too_many_is_not_counted_and_that_is_known() -> None:
    log = FactLog()
    for queue_no in (*range(1, PAST_QUEUES_MAX + 2), 1):
        m = Message(EMQP, b"q", b"", b"")
        m.queue_no, m.accepted_ns = queue_no, BEGIN_NS
        log.closed(m, 5, EMQP, 0, DONE, ANSWERED, 5)
    past = counted([(log.take(), BEGIN_NS)], 2)
    assert (len(past.queues), past.is_cut) == (PAST_QUEUES_MAX, True)
    assert spread(past.queues[1].total) == {0: 2}
    assert past.settled[EMQP * ROW_SIZE + EMQP].count == PAST_QUEUES_MAX + 2
