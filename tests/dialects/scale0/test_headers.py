"""A header is read by offset where it is plain and by a JSON reader where it is not: both see the same."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects.scale0.headers import (
    Header,
    HeaderCache,
    names_of,
    plain_end,
    read_header,
    read_slowly,
    text_of,
    token_of,
    walk,
)

CHARS = 'ab0 "\\/\n\x00\x7fé\u2028😀\ud800{}[],:'
KEYS = st.sampled_from(
    ["id", "service", "services", "time", "config_version", "configversion", "heartbeat_interval", "busy", "identity",
     "config_type", "code", "reason", "broker", "traceparent", "other", "ids", "tim", ""]
)  # fmt: skip
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.text(CHARS, max_size=6),
    st.integers(),
    st.integers(0, 2**40),
    st.floats(allow_nan=False),
    st.floats(0, 1e10),
    st.booleans(),
    st.none(),
    st.sampled_from(["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-ab-cd-01"]),
    st.lists(st.text(CHARS, max_size=4), max_size=3),
    st.dictionaries(st.text('a"', max_size=2), st.integers(), max_size=2),
)
HEADERS = st.builds(
    lambda members, indent, ascii_only: json.dumps(members, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass"),
    st.dictionaries(KEYS, VALUES, max_size=6),
    st.sampled_from([None, 0, 2]),
    st.booleans(),
)  # fmt: skip
FIELDS = [
    "problem", "service", "services", "version", "interval_s", "is_busy", "identity", "config_type", "code", "reason",
    "broker", "traceparent",
]  # fmt: skip


def fields(h: Header) -> dict[str, Any]:
    return {name: getattr(h, name) for name in FIELDS} | {"id": h.id_token()}


def check(text: bytes) -> None:
    by_offset, slowly = Header(), Header()
    if not walk(text, by_offset):
        return
    read_slowly(text or b"{}", slowly)
    assert fields(by_offset) == fields(slowly)
    assert abs(by_offset.time_ms - slowly.time_ms) <= 1


@given(HEADERS)
def test_both_ways_of_reading_see_the_same(text: bytes) -> None:
    check(text)


@given(st.text(alphabet='{}[]":,\\ \ntrufalse0123456789.eE-id', max_size=24).map(str.encode), st.binary(max_size=3))
def test_what_the_quick_way_takes_is_json(text: bytes, noise: bytes) -> None:
    for candidate in (
        text,
        b"{" + text + b"}",
        b'{"id":' + text + b"}",
        b'{"time":1' + text + b"}",
        b'{"a":"' + noise + b'"}',
    ):
        check(candidate)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 16, 21])
def test_a_plain_text_ends_at_its_quote_whatever_its_length(size: int) -> None:
    assert plain_end(b"x" * size + b'"', 0, size + 1) == size
    assert plain_end(b"~ " + b"x" * size + b'"yyyyyyyyy"', 2, size + 12) == size + 2
    assert plain_end(b"x" * size, 0, size) == -1
    assert plain_end(b"x" * size + b'"', 0, size) == -1, "the quote is behind the end"


@pytest.mark.parametrize("place", range(20))
def test_each_byte_that_is_not_plain_is_found_at_each_place(place: int) -> None:
    for char in range(256):
        text = bytearray(b"x" * 20 + b'"')
        text[place] = char
        is_plain = 0x20 <= char <= 0x7E and char != 0x5C
        expected = -1 if not is_plain else place if char == 0x22 else 20
        assert plain_end(bytes(text), 0, len(text)) == expected


@given(st.lists(st.text(CHARS, max_size=30), min_size=1, max_size=4), st.integers(0, 40))
def test_long_ids_change_nothing_in_what_the_memory_reads(ids: list[str], padding: int) -> None:
    memory = HeaderCache()
    for value in ids:
        text = b'{"id":%s,"service":"%s","time":12}' % (token_of(value.encode("utf-8", "replace")), b"m" * padding)
        for again in (text, text.replace(b"m", b"n", 1), text.replace(b"12}", b"13}")):
            fresh = read_header(again)
            found = memory.read(again)
            assert fields(found) == fields(fresh)
            assert found.time_ms == fresh.time_ms


@pytest.mark.parametrize(
    "text",
    [
        b'{"id":"a1","service":"mail","time":1794774107.25,"config_version":"abc"}',
        b'{"services": ["a", "b"], "busy": true}',
        b"{}",
        b"{ }",
        b"",
    ],
)
def test_the_usual_headers_go_the_quick_way(text: bytes) -> None:
    assert walk(text, Header())


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        (b'{"time":12}', 12_000), (b'{"time":12.5}', 12_500), (b'{"time":12.0009}', 12_000), (b'{"time":"12.5"}', 12_500),
        (b'{"time":-5}', 0), (b'{"time":1e3}', 1_000_000), (b'{"time":null}', -1), (b"{}", -1),
    ],
)  # fmt: skip
def test_a_time_is_read_to_the_millisecond(text: bytes, time_ms: int) -> None:
    assert read_header(text).time_ms == time_ms


MEMBERS = ['"id": "%s"', '"service": "mail"', '"time": 12', '"config_version": "%s"', '"id":7']


@given(
    st.lists(
        st.tuples(st.permutations(MEMBERS), st.integers(1, 4), st.sampled_from(["a", "bb", "", 'x"', "é", "a\\"])),
        max_size=6,
    )
)
def test_remembering_the_last_header_changes_nothing(said: list[tuple[list[str], int, str]]) -> None:
    memory = HeaderCache()
    for members, count, value in said:
        text = ("{" + ", ".join(members[:count]).replace("%s", value) + "}").encode()
        for again in (text, text.replace(b"a", b"c"), text.replace(b"bb", b'b"b'), text[:-1]):
            fresh = read_header(again)
            found = memory.read(again)
            assert fields(found) == fields(fresh)
            assert found.time_ms == fresh.time_ms


def test_services_are_a_list_or_a_text_with_commas() -> None:
    assert names_of(b'["a","b","a",3,""]') == [b"a", b"b"]
    assert names_of(b'"a, b,,a"') == [b"a", b"b"]
    assert names_of(b"") == names_of(b"7") == []


@given(st.text(CHARS))
def test_a_text_survives_being_written_and_read(text: str) -> None:
    raw = text.encode("utf-8", "replace")
    assert text_of(token_of(raw)) == raw


def test_very_many_services_are_read_without_comparing_each_with_all() -> None:
    names = [f"{number:04x}" for number in range(9000)]
    began_s = time.thread_time()
    assert names_of(json.dumps(names + names).encode()) == [name.encode() for name in names]
    assert time.thread_time() - began_s < 1.0
