"""A life drawn and told: bars on a line of time, and the frames of each dialect."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.dialects.description import Frame
from dragoman.model.enums import DIALECT_NAMES
from dragoman.runtime.search.lives import MessageHistory
from dragoman.web.formatting import body_lines, joined, printable, rate, span, ticks, url
from dragoman.web.pages import message
from dragoman.web.pages.message import ENDS_SHOWN, ends, timeline
from dragoman.web.rendering import paths, spark, thinned

SECOND_NS = 10**9


def fact(name: str, at_s: float, **fields: Any) -> dict[str, Any]:
    return {"fact": name, "time_ns": int(at_s * SECOND_NS), **fields}


def accepted(dialect: str) -> dict[str, Any]:
    return fact(
        "accepted",
        1,
        dialect=dialect,
        client_id="c-1",
        message_no=7,
        headers="priority:1",
        body_size=3,
        flags=["reply_wanted"],
    )


def frames(of: dict[str, Any], begin: dict[str, Any], lease_dialect: str = "", digits: str = "") -> list[Frame]:
    return message.frames(of, MessageHistory(7, queue="mail", worker_id=digits), [], begin, lease_dialect)


@pytest.mark.parametrize("dialect", DIALECT_NAMES[1:])
def test_every_dialect_has_frames_for_each_of_its_hops(dialect: str) -> None:
    request = accepted(dialect)
    sent = frames(request, request)
    assert any("3 bytes" in text for _, text in sent)
    for digits in ("8c6fa548454e028b", ""):
        received = frames(fact("leased", 2, attempt=1), request, dialect, digits)
        assert any("3 bytes" in text for _, text in received)
        if dialect in ("scale0", "ebus"):
            assert any((digits or "an id of the broker's own") in text for _, text in received)
    closed = fact("closed", 3, reason="answered", worker_dialect=dialect, reply_size=9)
    assert frames(closed, request)[1][1] == "(9 bytes, not stored)"


def test_a_message_of_the_brokers_own_has_no_sender() -> None:
    request = accepted("internal")
    assert frames(request, request) == []


def test_a_line_of_time_has_a_row_for_each_attempt() -> None:
    facts = [
        fact("accepted", 0, due_ns=0),
        fact("leased", 2, attempt=1, worker="w"),
        fact("released", 4, attempt=1, due_ns=5 * SECOND_NS),
        fact("leased", 6, attempt=2, worker=""),
        fact("closed", 10),
    ]
    drawn = timeline(facts, 99 * SECOND_NS)
    assert drawn is not None
    assert drawn.rows == ["in the queue", "attempt 1", "attempt 2"]
    assert [(bar.row, bar.kind, bar.begin, bar.end) for bar in drawn.bars] == [
        (0, "waits", 0.0, 0.2),
        (1, "works", 0.2, 0.4),
        (0, "delayed", 0.4, 0.6),
        (2, "works", 0.6, 1.0),
    ]
    assert drawn.bars[1].text == "works 2.0 s at w"


def test_of_a_message_with_countless_attempts_the_first_and_the_last_are_shown() -> None:
    facts = [fact("accepted", 0, due_ns=0)]
    for attempt in range(1, 1001):
        facts.append(fact("leased", 2 * attempt, attempt=attempt, worker=""))
        facts.append(fact("released", 2 * attempt + 1, attempt=attempt, due_ns=0))
    kept, left_out = ends(facts, lambda one: one["fact"] == "leased")
    told = [one["attempt"] for one in kept if one["fact"] == "leased"]
    assert told == [*range(1, ENDS_SHOWN + 1), *range(1001 - ENDS_SHOWN, 1001)]
    assert [one["attempt"] for one in kept if one["fact"] == "released"] == told
    assert left_out == 1000 - 2 * ENDS_SHOWN
    assert ends(facts[: 4 * ENDS_SHOWN], lambda one: one["fact"] == "leased") == (facts[: 4 * ENDS_SHOWN], 0)
    drawn = timeline(facts, 2002 * SECOND_NS)
    assert drawn is not None
    assert len(drawn.bars) <= 4 * ENDS_SHOWN + 1
    assert max(bar.end - bar.begin for bar in drawn.bars) < 0.01, "no bar stands for what is left out"


def test_an_open_life_goes_on_until_now_and_no_facts_draw_nothing() -> None:
    drawn = timeline([fact("accepted", 0, due_ns=0)], 5 * SECOND_NS)
    assert drawn is not None
    assert drawn.span_ns == 5 * SECOND_NS
    assert timeline([], 0) is None


def test_a_chart_keeps_its_peaks_and_breaks_where_nothing_is_known() -> None:
    assert thinned([1, 5, 2, 3, None, None], 3) == [5, 3, None]
    line, area = paths([0, 1, None, 1], 1, 30, 10)
    assert line.count("M") == area.count("Z") == 2
    assert paths([], 1, 30, 10) == ("", "")


def test_a_single_point_is_seen_wherever_it_stands() -> None:
    for values in ([None, None, 1], [1, None, None], [1]):
        line, _ = paths(values, 1, 30, 10)
        begin, end = (float(place.split()[0]) for place in line.removeprefix("M").split("L"))
        assert 0 <= begin < end <= 30, values


def test_a_label_cannot_leave_its_attribute() -> None:
    assert '"><script>' not in spark([1], '"><script>')


def test_texts_of_peers_show_their_control_characters() -> None:
    assert printable("a\u202eb\x00") == "a\\u202eb\\x00"
    assert ticks("queue `<b>` waits") == "queue <code>&lt;b&gt;</code> waits"
    assert ticks("one ` alone <") == "one ` alone &lt;"
    assert url("/queue", name="a&b=\r\n/…", empty="") == "/queue?name=a%26b%3D%0D%0A%2F%E2%80%A6"


def test_bodies_are_shown_by_their_kind() -> None:
    assert body_lines(b'{"a":1}') == ["{", '  "a": 1', "}"]
    assert body_lines(b"plain\ntext") == ["plain", "text"]
    assert body_lines(b"\xff\x00A")[0].startswith("000000  ff 00 41")
    assert len(body_lines(b"\n" * 10_000)) == 200
    assert body_lines(b"[" * 100_000) == ["[" * 100_000]


def test_numbers_are_short() -> None:
    assert [rate(value) for value in (None, 0.0, 0.05, 3.14, 12345.6)] == ["–", "0", "<0.1", "3.1", "12\u202f346"]
    assert [span(value) for value in (None, -5, 1500, 2_000_000)] == ["–", "0 µs", "1 µs", "2.0 ms"]
    assert joined(["a", "b", "c"]) == "a, b and c"
