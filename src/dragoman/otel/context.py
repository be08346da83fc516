"""`traceparent`: the client's trace in W3C Trace Context format, found in a message's headers.

    traceparent:00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
                │  trace id                         the client's span │
                version                                               flags: 1 = sampled

eMQP clients send it among their headers. A Scale0 client's comes first in the stored headers, before the client's original id
(dialects/traceparent), and nowhere else. Anything malformed is ignored: the message then has a trace of its own.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

VERSION_00: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
IS_SAMPLED: Final = 1


class Context(NamedTuple):
    """The trace and span of the client that a message continues."""

    trace_id: bytes
    span_id: bytes
    is_sampled: bool


def context_of(dialect: str, headers: bytes) -> Context | None:
    """The context of a message accepted with these headers; other dialects' headers are not set by their clients."""
    if dialect == "scale0":
        return find_context(headers.partition(b",")[0]) if headers.startswith(b"traceparent:") else None
    return find_context(headers) if dialect in ("emqp", "internal") else None


def find_context(headers: bytes) -> Context | None:
    """The first `traceparent` of an eMQP header text."""
    for item in headers.split(b","):
        name, _, value = item.partition(b":")
        if name.strip().lower() == b"traceparent":
            return read_traceparent(value.strip())
    return None


def read_traceparent(text: bytes) -> Context | None:
    found = VERSION_00.fullmatch(text)
    if found is None or found[1] == b"ff" or (found[1] == b"00" and found[5] is not None):
        return None
    trace_id, span_id = bytes.fromhex(found[2].decode()), bytes.fromhex(found[3].decode())
    if not any(trace_id) or not any(span_id):
        return None
    return Context(trace_id, span_id, bool(int(found[4], 16) & IS_SAMPLED))
