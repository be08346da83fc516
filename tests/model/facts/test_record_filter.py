"""Messages seen in records at fixed offsets, against what `model/facts/decode` makes of the same records, which shares no code with it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.model import enums
from dragoman.model.enums import DIALECT_NAMES, STATE_NAMES, shown
from dragoman.model.facts import layout
from dragoman.model.facts.decode import decode_block
from dragoman.model.facts.record_filter import ANY, ENDED, OPEN, Filter, find_listed, note_numbers
from dragoman.model.facts.records import FactLog
from dragoman.model.message import Message
from dragoman.model.peer import address_of, client_of, identities_of, is_client_in

NOW_NS = 1_700_000_000_000_000_000
FIRST_LSN = 100
IDENTITIES = [b"", b"alice", b"bob", b"\xff\x00"]
WORKERS = [1 << 40 | 1, 1 << 40 | 2, 1 << 40 | 3]

numbers = st.integers(1 << 40, (1 << 40) + 6)
kinds = st.sampled_from(["accepted", "leased", "closed", "taken away", "other", "carried"])
steps = st.lists(st.tuples(kinds, numbers, st.integers(0, 10_000)), max_size=40)


def message(number: int, choice: int) -> Message:
    m = Message(1 + choice % 5, b"queue", b"id" * (choice % 3), b"body" * (choice % 7))
    m.number, m.queue_no, m.accepted_ns = number, 1 + choice % 3, NOW_NS + choice % 100
    identity = IDENTITIES[choice % len(IDENTITIES)]
    m.address = b"\x03" + identity if identity else b"\x833.17"
    m.dedupe, m.headers = b"key" * (choice % 2), b"alice" * (choice % 2)
    return m


def written(story: list[tuple[str, int, int]]) -> bytes:
    log = FactLog()
    for kind, number, choice in story:
        m, worker = message(number, choice), WORKERS[choice % 3]
        if kind == "accepted":
            log.accepted(m)
        elif kind == "leased":
            log.leased(m, worker)
        elif kind == "closed":
            log.closed(m, worker if choice % 4 else 0, enums.EMQP, 3, 3 + choice % 4, enums.ANSWERED, 0)
        elif kind == "taken away":
            log.closed(m, 0, enums.EMQP, 0, 6, enums.BY_CLIENT, worker)
        elif kind == "carried":
            inner = FactLog()
            inner.accepted(m)
            log.carried(inner.take(), NOW_NS)
        else:
            log.numbered(layout.NOTED, choice, 0, b"alice")
    return log.take()


def judged(data: bytes, sought: Filter) -> dict[int, int]:
    """The same in the words of the page about facts."""
    found: dict[int, int] = {}
    lsn = FIRST_LSN
    for fact in decode_block(data):
        if lsn >= sought.before_lsn:
            break
        judge(fact, lsn, sought, found)
        lsn += fact["fact"] != "carried"
    return found


def judge(fact: dict[str, Any], lsn: int, sought: Filter, found: dict[int, int]) -> None:
    name = fact["fact"]
    if name in ("accepted", "closed"):
        is_like = sought.dialect == ANY or DIALECT_NAMES[sought.dialect] == fact["dialect"]
        is_like = is_like and (not sought.has_queue or fact["queue_no"] in sought.queue_nos)
    if name == "accepted":
        if sought.has_peer:
            is_seen = bool(sought.identities & identities_of(client_of(fact["address"])))
        else:
            is_seen = sought.state in (ANY, OPEN)
        if is_seen and is_like:
            found[fact["message_no"]] = lsn
    elif name == "leased" and sought.has_peer and fact["worker_no"] in sought.worker_nos:
        found[fact["message_no"]] = lsn
    elif name == "closed":
        is_end = sought.state in (ANY, ENDED) or (sought.state >= 0 and STATE_NAMES[sought.state] == fact["outcome"])
        if not is_like or not is_end:
            found.pop(fact["message_no"], None)
        elif sought.has_peer:
            if {fact["worker_no"], fact.get("holder_no", 0)} & sought.worker_nos:
                found[fact["message_no"]] = lsn
        elif sought.state != ANY or fact["accepted_ns"] < sought.since_ns:
            found[fact["message_no"]] = lsn


@settings(max_examples=3 * settings().max_examples, deadline=None)
@given(
    story=steps,
    state=st.sampled_from([ANY, OPEN, ENDED, 3, 4, 5, 6]),
    dialect=st.sampled_from([ANY, ANY, 1, 3]),
    queues=st.none() | st.sets(st.integers(1, 3)),
    peer=st.none() | st.tuples(st.sets(st.sampled_from(IDENTITIES[1:])), st.sets(st.sampled_from(WORKERS))),
    before=st.integers(FIRST_LSN, FIRST_LSN + 60),
    since=st.integers(0, 100),
)
def test_records_and_decoded_facts_show_the_same_messages(
    story: list[tuple[str, int, int]],
    state: int,
    dialect: int,
    queues: set[int] | None,
    peer: tuple[set[bytes], set[int]] | None,
    before: int,
    since: int,
) -> None:
    data = written(story)
    sought = Filter(state, dialect, queues is not None, peer is not None)
    sought.queue_nos = queues or set()
    sought.identities, sought.worker_nos = peer or (set(), set())
    sought.before_lsn, sought.since_ns = before, NOW_NS + since
    found: dict[int, int] = {}
    find_listed(data, FIRST_LSN, sought, found)
    assert found == judged(data, sought)


@settings(deadline=None)
@given(steps)
def test_the_queues_and_workers_of_a_block_are_noted(story: list[tuple[str, int, int]]) -> None:
    data = written(story)
    queue_nos: set[int] = set()
    worker_nos: set[int] = set()
    note_numbers(data, queue_nos, worker_nos)
    facts = decode_block(data)
    ends = [fact for fact in facts if fact["fact"] == "closed"]
    assert queue_nos == {fact["queue_no"] for fact in facts if fact["fact"] in ("accepted", "closed")}
    workers = {fact["worker_no"] for fact in facts if fact["fact"] in ("leased", "closed")}
    assert worker_nos == workers | {fact["holder_no"] for fact in ends if "holder_no" in fact}


def test_a_closed_record_of_an_older_journal_is_seen() -> None:
    whole = bytearray(written([("closed", 1 << 40, 1)]))[:73]
    whole[:4] = (73).to_bytes(4, "little")
    sought = Filter(ENDED, ANY, False, True)
    sought.worker_nos, sought.before_lsn = {WORKERS[1]}, 1 << 40
    found: dict[int, int] = {}
    find_listed(bytes(whole), FIRST_LSN, sought, found)
    assert found == {1 << 40: FIRST_LSN}


def test_ends_of_messages_accepted_elsewhere_are_remembered_where_open_ones_are_sought() -> None:
    sought = Filter(OPEN, ANY, False, False)
    sought.before_lsn = 1 << 40
    found: dict[int, int] = {}
    find_listed(written([("accepted", 7, 1), ("closed", 7, 1), ("closed", 8, 1)]), FIRST_LSN, sought, found)
    assert (found, sought.ended) == ({}, {8})


@pytest.mark.parametrize(
    ("text", "identities"),
    [
        ("", set()),
        ("alice", {b"alice"}),
        ("abcd", {b"abcd", b"\xab\xcd"}),
        ("abc", {b"abc"}),
        ("ab\\xffc", {b"ab\\xffc", b"ab\xffc"}),
        ("ab\\xg", {b"ab\\xg"}),
        ("\udcff", {b"\xff"}),
        ("ä", {"ä".encode()}),
    ],
)
def test_a_text_stands_for_the_identities_it_may_be_shown_for(text: str, identities: set[bytes]) -> None:
    assert identities_of(text) == identities


def test_a_client_of_the_longest_identity_is_found_by_it() -> None:
    identity = b"x" * 254 + b"\xff"
    address = address_of(3, identity, 1, 1)
    assert is_client_in(address, identities_of(shown(identity)))
    assert not is_client_in(address, identities_of("x" * 255))
    assert identities_of(shown(identity)) & identities_of(client_of(shown(address)))


def test_an_anonymous_client_has_no_identity() -> None:
    assert [client_of(address) for address in ("", "\x03alice", "\x03\\xff\\x00", "\\x833.17")] == [
        "",
        "alice",
        "\\xff\\x00",
        "",
    ]
