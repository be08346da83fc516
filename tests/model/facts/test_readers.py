"""Every reader of facts against every kind: it handles the kind, or the table of what it ignores names it.

A reader passes over kinds that it does not know. So a block whose records of one kind are given a kind that no version defines reads like the
block itself exactly if the reader does not handle that kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from librt.vecs import vec
from mypy_extensions import i64

from dragoman.cli.inspect.history import note
from dragoman.core.core import Core
from dragoman.core.settings import CoreSettings
from dragoman.core.storage.replay import Replay
from dragoman.core.storage.snapshot import encode
from dragoman.lake.lookup import EPOCH, fact_of
from dragoman.lake.schema import COLUMNS
from dragoman.model import enums
from dragoman.model.enums import STATE_NAMES
from dragoman.model.facts import layout, record_filter, sampling
from dragoman.model.facts.decode import decode, decode_block
from dragoman.model.facts.fields import RecordWalk
from dragoman.model.facts.index import index_block
from dragoman.model.facts.layout import FACT_NAMES, FACTS
from dragoman.model.facts.records import FactLog, fired_text, schedule_text
from dragoman.model.message import Message
from tests.model.facts.test_columns import split

UNDEFINED = 199  # the last number of a fact
NOW_NS = 1_700_000_000_000_000_000
PLACE = 1 << 32
QUEUE_A, QUEUE_B, QUEUE_C = 1, 2, 3
STAYED, LEFT = 101, 102  # workers
FIRST, SECOND = 201, 202  # schedules
NUMBERS = set(range(1, 300))

# What each reader ignores, and nothing else.
OF_SCHEDULES = {"scheduled", "unscheduled"}
COUNTS = {"published", "clock_stepped", "noted"}
OF_QUEUES = {"paused", "resumed"}
IGNORED: dict[str, set[str]] = {
    "replay": COUNTS | {"late"},
    "decode": set(),
    "columns": set(),
    "index": COUNTS | OF_QUEUES | OF_SCHEDULES | {"queue_forgotten"},
    "filter": COUNTS | OF_QUEUES | OF_SCHEDULES | {"queue_forgotten"},
    "search": set(FACT_NAMES) - {"accepted", "leased", "closed"},
    "sampling": COUNTS | OF_QUEUES | OF_SCHEDULES | {"started", "worker_left", "leased", "fired", "late"},
    "lake lookup": COUNTS | OF_QUEUES | OF_SCHEDULES | {"worker_left"},
    "note": COUNTS | OF_QUEUES | OF_SCHEDULES | {"queue_named", "queue_forgotten", "worker_joined", "worker_left"}
    | {"leased", "delivered", "requeued"},
}  # fmt: skip


def message(number: int) -> Message:
    m = Message(enums.EMQP, b"a", b"client-%d" % number, b"body")
    m.number, m.queue_no, m.address, m.retries_left, m.accepted_ns = number, QUEUE_A, b"\x01who", 3, NOW_NS
    return m


def leased(log: FactLog, m: Message) -> None:
    log.leased(m, STAYED)
    m.attempt, m.leased_ns = m.attempt + 1, NOW_NS


def every_effect() -> bytes:
    """One block with every kind, in which no later fact hides the effect of one of each kind."""
    log = FactLog()
    log.base_position = PLACE
    log.numbered(layout.STARTED, 3, 0, b"1.2.3")
    for queue_no, name in ((QUEUE_A, b"a"), (QUEUE_B, b"b"), (QUEUE_C, b"c")):
        log.numbered(layout.QUEUE_NAMED, queue_no, 0, name)
    log.numbered(layout.QUEUE_FORGOTTEN, QUEUE_C, enums.BY_OPERATOR, b"c")
    for worker_no in (STAYED, LEFT):
        log.numbered(layout.WORKER_JOINED, worker_no, enums.EMQP, b"emqp.worker\t127.0.0.1:5\t6162\t1 a")
    log.numbered(layout.WORKER_LEFT, LEFT, enums.HEARTBEAT_LOST, b"")
    waits, runs, returned, done, isolated, retried = messages = [message(number) for number in range(1, 7)]
    for m in messages:
        log.accepted(m)
    for m in messages[1:]:
        leased(log, m)
    log.delivered(runs, STAYED)
    log.released(returned, STAYED, enums.EMQP, 2, 0, enums.WORKER_LOST, True)
    log.closed(done, STAYED, enums.EMQP, 5, STATE_NAMES.index("done"), enums.ANSWERED, 0)
    for m in (isolated, retried):
        log.quarantined(m, STAYED, enums.EMQP, enums.FAILED, 0)
    log.requeued(retried, False)
    for schedule_no in (FIRST, SECOND):
        template = message(0)
        template.dedupe = b"key-%d" % schedule_no
        log.numbered(layout.SCHEDULED, schedule_no, NOW_NS, schedule_text(template, 1000, "", -1))
    log.numbered(layout.UNSCHEDULED, SECOND, enums.BY_OPERATOR, b"")
    log.numbered(layout.FIRED, FIRST, NOW_NS, fired_text(waits.number, NOW_NS + 1000, -1))
    log.numbered(layout.PAUSED, QUEUE_A, 0, b"")
    log.numbered(layout.RESUMED, QUEUE_B, enums.DRAINS, b"")
    log.numbered(layout.PUBLISHED, 12, 0, b"news")
    log.numbered(layout.CLOCK_STEPPED, 5_000, 1, b"")
    log.numbered(layout.LATE, STAYED, enums.EMQP, b"client-1")
    log.numbered(layout.NOTED, 2, 0, b"EMQP_VERSION")
    return log.take()


def without(block: bytes, kind: int) -> bytes:
    """The block, with another kind in the records of this kind."""
    changed = bytearray(block)
    walk = RecordWalk(block)
    while walk.step():
        if walk.kind == kind:
            changed[walk.at + layout.KIND] = UNDEFINED
    return bytes(changed)


def nameless(facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in fact.items() if key != "fact"} for fact in facts]


def in_replay(block: bytes) -> object:
    def read_record(position: int, number: int) -> bytes:
        at = position - PLACE
        return block[at : at + int.from_bytes(block[at : at + 4], "little")]

    core = Core(CoreSettings(), read_record)
    Replay(core).block(block, PLACE, NOW_NS)
    # A checkpoint leaves out `delivered_ns`.
    return encode(core.state, None), {m.number: m.delivered_ns for m in core.state.messages.values()}


def in_decode(block: bytes) -> object:
    return nameless(decode_block(block))


def in_columns(block: bytes) -> object:
    return [{name: value for name, value in row.items() if name != "kind"} for row in split(block)]


def in_index(block: bytes) -> object:
    """The keys of each record alone: several records have the same."""
    walk = RecordWalk(block)
    found = []
    while walk.step():
        found.append(list(index_block(block[walk.at : walk.at + walk.size], 0, vec[i64]([]))))
    return found


def in_filter(block: bytes) -> object:
    found: list[tuple[int, int]] = []
    record_filter.find_matches(block, set(NUMBERS), b"", found)
    return found


def in_search(block: bytes) -> object:
    """A search for any message, for closed ones, and for those of a worker."""
    answers = []
    for state, has_peer in ((record_filter.ANY, False), (record_filter.ENDED, False), (record_filter.ANY, True)):
        wanted = record_filter.Filter(state, record_filter.ANY, False, has_peer)
        wanted.worker_nos, wanted.before_lsn = {STAYED}, 1_000
        found: dict[int, int] = {}
        record_filter.find_listed(block, 1, wanted, found)
        answers.append(found)
    return answers


def in_sampling(block: bytes) -> object:
    found: list[tuple[int, int]] = []
    sampling.find_traced(block, sampling.SAMPLES, NUMBERS, found)
    return found


def in_lake_lookup(block: bytes) -> object:
    """A row with all columns for each record: `FIELDS` chooses among them by the kind."""
    samples = {"timestamp": EPOCH, "string": "\t\t", "boolean": True}
    row = {column.name: samples.get(column.type, 1) for column in COLUMNS}
    walk = RecordWalk(block)
    found = []
    while walk.step():
        found.append(fact_of(row | {"kind": walk.kind}))
    return nameless(found)


def in_note(block: bytes) -> object:
    walk = RecordWalk(block)
    found = []
    while walk.step():
        found.append(note(decode(block, walk.at) | {"time_ns": NOW_NS}))
    return found


READERS: dict[str, Callable[[bytes], object]] = {
    "replay": in_replay,
    "decode": in_decode,
    "columns": in_columns,
    "index": in_index,
    "filter": in_filter,
    "search": in_search,
    "sampling": in_sampling,
    "lake lookup": in_lake_lookup,
    "note": in_note,
}


def test_the_block_has_every_kind() -> None:
    """A new fact is added to `every_effect` first."""
    assert {fact["fact"] for fact in decode_block(every_effect())} == {fact.name for fact in FACTS}


@pytest.mark.parametrize("kind", [fact.kind for fact in FACTS], ids=FACT_NAMES[1:])
@pytest.mark.parametrize("reader", READERS)
def test_a_reader_handles_a_kind_or_is_listed_to_ignore_it(reader: str, kind: int) -> None:
    block, name = every_effect(), FACT_NAMES[kind]
    is_handled = READERS[reader](block) != READERS[reader](without(block, kind))
    if name in IGNORED[reader]:
        assert not is_handled, f"{reader} handles `{name}`: remove it from IGNORED"
    else:
        assert is_handled, f"{reader} does not handle `{name}`: add a branch there, or list it in IGNORED"
