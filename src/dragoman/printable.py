"""Makes texts of peers and exceptions safe to show: on a terminal, in a log line, in an error, in JSON.

A character that is printable by Unicode is unchanged. Every other one (C0 and C1 controls, DEL, bidirectional overrides, line separators,
lone surrogates) is escaped, so that no peer can move the cursor, forge a line or reverse the text. Each text has a maximum length; a cut
text says how many characters are missing.
"""

from __future__ import annotations

import json
import re
import traceback
from collections import deque
from typing import Final

from dragoman.limits import ERROR_TEXT_SIZE_MAX, TRACEBACK_FRAMES_MAX, TRACEBACK_PARTS_MAX, TRACEBACK_SIZE_MAX

_NOT_PLAIN_ASCII: Final = re.compile(r"[^\n -~]")


def printable(text: str, size_max: int = 0) -> str:
    """`text` in one line, with unprintable characters escaped; cut after `size_max` characters (0: no limit)."""
    if size_max:
        text = cut(text, size_max)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def printable_lines(text: str, size_max: int = 0) -> str:
    """Like `printable`, but keeps line breaks and tabs: for a traceback."""
    if size_max:
        text = cut(text, size_max)
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)


def printable_bytes(data: bytes, size_max: int) -> str:
    """A peer's bytes as text; bytes that are not UTF-8 become `\\xff`."""
    return printable(data[: 4 * size_max].decode("utf-8", "backslashreplace"), size_max)


def cut(text: str, size_max: int) -> str:
    """At most `size_max` characters of a text, and how many were left out."""
    if len(text) <= size_max:
        return text
    return f"{text[:size_max]}… ({len(text) - size_max} more characters)"


def error_text(error: BaseException, size_max: int = ERROR_TEXT_SIZE_MAX) -> str:
    """An exception's text, bounded and printable, even if its `__str__` fails."""
    try:
        text = str(error)
    except Exception as failure:
        text = f"its text cannot be made: {type(failure).__name__}"
    return printable(text, size_max)


def traceback_text(error: BaseException) -> str:
    """An exception's traceback: the innermost frames and the last parts, each text bounded, and only the end of the whole."""
    formatter = traceback.TracebackException.from_exception(error, limit=-TRACEBACK_FRAMES_MAX, compact=True)
    parts = deque((cut(part.rstrip("\n"), ERROR_TEXT_SIZE_MAX) for part in formatter.format()), TRACEBACK_PARTS_MAX)
    return printable_lines("\n".join(parts)[-TRACEBACK_SIZE_MAX:])


def printable_json(text: str) -> str:
    """A JSON document with every unprintable character as a JSON escape. Such characters can only be inside its strings."""
    return _NOT_PLAIN_ASCII.sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    char = found[0]
    return char if char.isprintable() else json.dumps(char)[1:-1]
