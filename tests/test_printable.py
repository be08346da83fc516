"""Text of strangers, made safe to show: nothing in it acts on a terminal, a log or a reader, and none of it is without bound."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.limits import ERROR_TEXT_SIZE_MAX, TRACEBACK_SIZE_MAX
from dragoman.printable import (
    cut,
    error_text,
    printable,
    printable_bytes,
    printable_json,
    printable_lines,
    traceback_text,
)

ACTING = {"Cc", "Cf", "Cs", "Zl", "Zp"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, grün, 漢字", "plain, grün, 漢字"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\x9b31mb", "a\\x9b31mb"),
        ("a\x7fb", "a\\x7fb"),
        ("a\r\nb", "a\\r\\nb"),
        ("a\u202eb\u2066c", "a\\u202eb\\u2066c"),
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("\udc9b", "\\udc9b"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_acts_is_escaped_and_what_shows_is_kept(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_no_character_of_unicode_passes_that_is_not_printable() -> None:
    for number in range(sys.maxunicode + 1):
        char = chr(number)
        if unicodedata.category(char) in ACTING:
            assert printable(char).isprintable(), hex(number)
            assert printable_json(char).isprintable() or char == "\n", hex(number)


def test_a_long_text_is_cut_and_says_by_how_much() -> None:
    assert cut("abc", 3) == "abc"
    assert printable("x" * 1005, 5) == "xxxxx… (1000 more characters)"
    assert printable_bytes(b"\xff\x1bab" * 1000, 6).startswith("\\xff\\x1b"[:6])
    assert len(printable_bytes(b"\xff" * 1_000_000, 100)) < 200


def test_lines_of_a_traceback_stay_lines() -> None:
    assert printable_lines("a\n\tb\x1b\r") == "a\n\tb\\x1b\\r"


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_json_means_the_same_and_holds_nothing_that_acts(value: object) -> None:
    text = printable_json(json.dumps(value, indent=2, ensure_ascii=False))
    assert json.loads(text) == value
    assert all(c.isprintable() or c == "\n" for c in text)


def test_json_escapes_c1_and_what_needs_two_escapes() -> None:
    assert printable_json('"\x80\x9b\x7f"') == '"\\u0080\\u009b\\u007f"'
    assert printable_json('"\U000e0041"') == '"\\udb40\\udc41"'


def test_the_text_of_an_exception_is_bounded_and_never_raises() -> None:
    class Rude(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    assert error_text(Rude()) == "its text cannot be made: ValueError"
    assert error_text(ValueError("a\x1bb")) == "a\\x1bb"
    assert len(error_text(ValueError("x" * 1_000_000))) < ERROR_TEXT_SIZE_MAX + 100


def raised(depth: int) -> BaseException:
    """An exception of many frames and many causes, each with a long text."""
    error: BaseException = ValueError("\x1bfirst" + "x" * 100_000)
    for number in range(depth):
        try:
            try:
                raise error
            except BaseException as before:
                raise KeyError(f"cause {number}\n" * 10_000) from before
        except BaseException as after:
            error = after
    return error


def test_a_traceback_is_bounded_and_ends_with_the_exception_itself() -> None:
    text = traceback_text(raised(200))
    assert len(text) <= 2 * TRACEBACK_SIZE_MAX
    assert "cause 199" in text
    assert "\x1b" not in text


def test_a_deep_recursion_is_reported_by_its_innermost_frames() -> None:
    def deeper(left: int) -> None:
        if left == 0:
            raise RuntimeError("at the bottom")
        deeper(left - 1)

    with pytest.raises(RuntimeError) as found:
        deeper(500)
    text = traceback_text(found.value)
    assert text.splitlines()[-1] == "RuntimeError: at the bottom"
    assert len(text) < TRACEBACK_SIZE_MAX
