"""Log lines of the broker and of the programs beside it: bounded, and free of what acts on a terminal."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest

from dragoman.limits import ERROR_TEXT_SIZE_MAX, LOG_LINE_SIZE_MAX, LOG_VALUE_SIZE_MAX, TRACEBACK_SIZE_MAX
from dragoman.log_lines import PrintableFormatter
from dragoman.runtime.process import logs


def logged(message: str, *args: object, error: BaseException | None = None) -> str:
    """What a program would write."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(PrintableFormatter("%(levelname)s %(message)s"))
    where = (type(error), error, error.__traceback__) if error is not None else None
    handler.handle(logging.LogRecord("test", logging.WARNING, __file__, 1, message, args, where))
    return out.getvalue()


def test_a_programs_line_is_escaped_and_cut() -> None:
    assert logged("a\x1b[2J %s", "\x9b\u202e") == "WARNING a\\x1b[2J \\x9b\\u202e\n"
    assert len(logged("%s", "x" * 10_000_000)) < LOG_LINE_SIZE_MAX + 100


def test_a_programs_traceback_is_escaped_and_cut() -> None:
    try:
        raise ValueError("\x1b[2J" + "x" * 10_000_000)
    except ValueError as error:
        text = logged("failed", error=error)
    assert text.startswith("WARNING failed\nTraceback")
    assert "ValueError: \\x1b[2J" in text
    assert len(text) < ERROR_TEXT_SIZE_MAX + 2000


def line_of(**event: Any) -> str:
    """What the broker writes off a terminal."""
    fields = logs.with_printable_values(None, "", logs.with_traceback(None, "", dict(event)))
    return logs.json_line(None, "", fields)


def test_the_brokers_values_are_escaped_and_cut() -> None:
    line = line_of(event="x", peer="a\x1b\x9b\x7f", names=["\u202e", 7, None], long="y" * 1_000_000)
    assert line.isprintable()
    found = json.loads(line)
    assert found["peer"] == "a\\x1b\\x9b\\x7f"
    assert found["names"] == ["\\u202e", 7, None]
    assert len(found["long"]) < LOG_VALUE_SIZE_MAX + 100
    assert len(json.loads(line_of(event="x", many=["z"] * 1_000_000))["many"]) <= 1000


@pytest.mark.parametrize("form", ["error", "true", "triple"])
def test_the_brokers_tracebacks_are_cut(form: str) -> None:
    try:
        raise ValueError("\x1b" + "x" * 10_000_000)
    except ValueError as error:
        given = {"error": error, "true": True, "triple": (ValueError, error, error.__traceback__)}[form]
        line = line_of(event="internal fault", exc_info=given)
    found = json.loads(line)["exception"]
    assert found.startswith("Traceback")
    assert "ValueError: \\x1bx" in found
    assert len(found) < TRACEBACK_SIZE_MAX + 1000


def test_an_exception_that_is_a_value_is_cut_too() -> None:
    assert len(line_of(event="x", error=ValueError("x" * 1_000_000))) < ERROR_TEXT_SIZE_MAX + 200
