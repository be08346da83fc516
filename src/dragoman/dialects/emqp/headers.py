"""Parses the headers of a request: one comma-separated text.

`reply-requested`, `guarantee`, `retry-count:N`, `timeout:seconds`, `nohaste` and `run_count:N` are EventMQ's own. Our extensions are
`priority:0-9`, `delay:seconds`, `expires:seconds`, `dedupe:key`, `ack-requested`, `keep-same` and `traceparent:…` (forwarded). Others are
forwarded unchanged.
"""

from __future__ import annotations

import math
from typing import Final, final

from dragoman import limits
from dragoman.model.enums import GUARANTEED, HANDOVER_WANTED, KEEP_SAME, KEPT_WANTED, NO_HASTE, REPLY_WANTED
from dragoman.model.units import SECOND_NS

FLAGS: Final = {b"guarantee": GUARANTEED, b"nohaste": NO_HASTE, b"keep-same": KEEP_SAME, b"ack-requested": KEPT_WANTED}
NOT_FOR_ORIGINAL: Final = [b"keep-same", b"priority", b"delay", b"expires", b"dedupe", b"ack-requested"]
SECONDS_MAX: Final = 10 * 365 * 86400.0  # ten years: more is a mistake, and nanoseconds stay within 63 bits


@final
class Headers:
    """A parsed header text, and the texts to send to workers."""

    def __init__(self) -> None:
        self.problem: str = ""  # why it is invalid; empty: it is valid
        self.flags: int = HANDOVER_WANTED
        self.retries: int = -1
        self.timeout_ns: int = 0
        self.delay_ns: int = 0
        self.expires_ns: int = 0
        self.priority: int = 0
        self.dedupe: bytes = b""
        self.runs: int = -1
        self.to_worker: bytes = b""
        self.to_original: bytes = b""


def read_headers(text: bytes) -> Headers:
    """Parse a header text. The texts for workers always have `reply-requested`: the worker's REPLY settles the job."""
    h = Headers()
    carried: list[bytes] = []
    plain: list[bytes] = []
    for raw in text.split(b","):
        item = raw.strip()
        if not item:
            continue
        name, _, value = item.partition(b":")
        name = name.strip().lower()
        value = value.strip()
        if name == b"reply-requested":
            h.flags |= REPLY_WANTED
            continue
        carried.append(item)
        if name == b"timeout":
            h.timeout_ns = seconds(h, name, value)
            # The original accepts only whole seconds; it resets itself on anything else that looks like a timeout.
            plain.append(b"timeout:%d" % ((h.timeout_ns + SECOND_NS - 1) // SECOND_NS))
        else:
            read_own(h, name, value)
            if name not in NOT_FOR_ORIGINAL and b"timeout:" not in item:
                plain.append(item)
    h.to_worker = b",".join([b"reply-requested", *carried])
    h.to_original = b",".join([b"reply-requested", *plain])
    return h


def read_own(h: Headers, name: bytes, value: bytes) -> None:
    """Apply a header that the broker acts on; ignore any other."""
    if name in FLAGS:
        h.flags |= FLAGS[name]
    elif name == b"retry-count":
        h.retries = whole(h, name, value, 1_000_000)
    elif name == b"run_count":
        h.runs = whole(h, name, value, 1_000_000_000)
    elif name == b"priority":
        h.priority = whole(h, name, value, limits.PRIORITY_MAX)
    elif name == b"delay":
        h.delay_ns = seconds(h, name, value)
    elif name == b"expires":
        h.expires_ns = seconds(h, name, value)
        if h.expires_ns == 0 and not h.problem:
            h.problem = "expires wants more than 0 seconds"
    elif name == b"dedupe":
        h.dedupe = value
        if not value or len(value) > limits.ID_SIZE_MAX:
            h.problem = f"dedupe wants a key of 1 to {limits.ID_SIZE_MAX} bytes"


def seconds(h: Headers, name: bytes, value: bytes) -> int:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not math.isfinite(number) or number < 0 or number > SECONDS_MAX:
        h.problem = f"{excerpt(name)} wants seconds, not {excerpt(value)!r}"
        return 0
    return int(number * SECOND_NS)


def whole(h: Headers, name: bytes, value: bytes, most: int) -> int:
    if not value.isdigit() or len(value) >= 12 or int(value) > most:
        h.problem = f"{excerpt(name)} wants a whole number from 0 to {most}, not {excerpt(value)!r}"
        return 0
    return int(value)


def excerpt(value: bytes) -> str:
    return value[:64].decode("utf-8", "replace")


def one_answer(flags: int) -> int:
    """Reduce the flags for a REQ peer, which can receive exactly one answer: the result if requested, else the ACK, else the hand-over."""
    if flags & REPLY_WANTED:
        return flags & ~(HANDOVER_WANTED | KEPT_WANTED)
    if flags & KEPT_WANTED:
        return flags & ~HANDOVER_WANTED
    return flags


@final
class HeaderMeanings:
    """A cache of parsed header texts: a client's calls mostly share one."""

    def __init__(self) -> None:
        self.known: dict[bytes, Headers] = {}
        self.recent_text: bytes = (
            b""  # the last one: a message is read and delivered with the same text, and mostly the next one, too
        )
        self.recent: Headers = read_headers(b"")

    def of(self, text: bytes) -> Headers:
        if text is self.recent_text or text == self.recent_text:
            return self.recent
        h = self.known.get(text)
        if h is None:
            if len(text) > limits.HEADERS_SIZE_MAX:
                return Headers()  # the core refuses it for its length: not worth parsing
            h = read_headers(text)
            if len(text) > limits.HEADER_REMEMBERED_SIZE_MAX or h.dedupe or b"traceparent:" in text:
                return h  # unique: it would only evict texts that others share
            if len(self.known) >= limits.HEADER_MEANINGS_MAX:
                self.known.clear()
            self.known[text] = h
        self.recent_text = text
        self.recent = h
        return h
