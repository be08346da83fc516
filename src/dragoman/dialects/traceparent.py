"""`traceparent`, the client's trace, on its way from one dialect to another. Only this form is forwarded:

    00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
       trace id                         the client's span flags

An eMQP message has it among its headers, a Scale0 message at the start of them, before its id's token, which never begins like this:

    traceparent:00-…-01            traceparent:00-…-01,<token>            <token>
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from dragoman.model.enums import EMQP, INTERNAL, SCALE0
from dragoman.model.message import Message

NAME: Final = b"traceparent"
MARK: Final = b"traceparent:"
MARK_SIZE: Final = 12
TRACEPARENT_SIZE: Final = 55
KEPT_SIZE: Final = MARK_SIZE + TRACEPARENT_SIZE
NO_TRACE: Final = b"0" * 32
NO_SPAN: Final = b"0" * 16


def is_traceparent(text: bytes) -> bool:
    if len(text) != TRACEPARENT_SIZE or text[:3] != b"00-":
        return False
    at: i64 = 3
    while at < TRACEPARENT_SIZE:
        char: i64 = text[at]
        if at == 35 or at == 52:
            if char != 0x2D:
                return False
        elif not (0x30 <= char <= 0x39 or 0x61 <= char <= 0x66):
            return False
        at += 1
    return text[3:35] != NO_TRACE and text[36:52] != NO_SPAN


def traceparent_of(m: Message) -> bytes:
    """The traceparent of a message of any dialect; empty: none. Most headers are too short and are skipped."""
    headers = m.headers
    if len(headers) < KEPT_SIZE:
        return b""
    if m.dialect == SCALE0:
        return leading(headers)
    if m.dialect == EMQP or m.dialect == INTERNAL:  # a schedule's headers are eMQP headers, too
        return among(headers)
    return b""


def among(headers: bytes) -> bytes:
    """The first in an eMQP header text, as the trace exporter reads it."""
    for item in headers.split(b","):
        name, _, value = item.partition(b":")
        if name.strip().lower() == NAME:
            value = value.strip()
            return value if is_traceparent(value) else b""
    return b""


def leading(headers: bytes) -> bytes:
    """The traceparent in a Scale0 message's headers."""
    return headers[MARK_SIZE:KEPT_SIZE] if headers.startswith(MARK) else b""


def with_traceparent(traceparent: bytes, token: bytes) -> bytes:
    """The headers of a Scale0 message; `token`: its id as it was written, empty for a plain text."""
    return MARK + traceparent + (b"," + token if token else b"")


def without_traceparent(headers: bytes) -> bytes:
    """The token in the headers; empty: none. Most headers are too short for a traceparent."""
    if len(headers) < KEPT_SIZE:
        return headers
    return headers[KEPT_SIZE + 1 :] if headers.startswith(MARK) else headers
