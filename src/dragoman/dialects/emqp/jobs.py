"""Parses eMQP frames where the protocol itself defines their content: queue lists, jobs of the original."""

from __future__ import annotations

import json
from typing import Final

import msgspec

from dragoman.dialects.emqp.settings import EmqpSettings
from dragoman.dialects.traceparent import MARK, traceparent_of
from dragoman.limits import JSON_READ_SIZE_MAX, WEIGHT_MAX
from dragoman.model.enums import EMQP, INTERNAL
from dragoman.model.message import Message
from dragoman.model.units import SECOND_NS

# First bytes of a body that may be a JSON list. JOB checks for a list of two or more items without building them.
LIST_BEGINNINGS: Final = [b"[", b" ", b"\t", b"\n", b"\r"]
JOB: Final = msgspec.json.Decoder(
    msgspec.defstruct("Job", [("name", msgspec.Raw), ("arguments", msgspec.Raw)], array_like=True)
)


def read_queues(frame: bytes, settings: EmqpSettings) -> list[tuple[int, bytes]]:
    """Parse `[[30,"low"],[10,"default"]]`, a JSON list of names, or one bare name; empty means the default queue."""
    default = [(settings.default_weight, settings.default_queue)]
    if not frame:
        return default
    if frame[:1] != b"[":
        return [(settings.default_weight, frame)]
    try:
        items = msgspec.json.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [(settings.default_weight, frame)]
    queues: dict[bytes, int] = {}
    for item in items:
        if isinstance(item, str):
            queues[item.encode() or settings.default_queue] = settings.default_weight
        elif (
            isinstance(item, list) and len(item) == 2 and isinstance(item[0], (int, float)) and isinstance(item[1], str)
        ):
            queues[item[1].encode() or settings.default_queue] = int(max(-WEIGHT_MAX, min(item[0], WEIGHT_MAX)))
    return [(weight, name) for name, weight in queues.items()] or default


def is_original_job(m: Message) -> bool:
    """Whether the original's worker accepts it: all frames UTF-8, the body a JSON list of two or more. On anything else it resets itself."""
    try:
        m.wire_id.decode()  # our own ids are ASCII
        m.queue.decode()
        if m.dialect == EMQP or m.dialect == INTERNAL:  # a schedule's headers are eMQP headers, too
            m.headers.decode()
        return is_list_of_two(m.body)
    except (ValueError, RecursionError):
        return False


def is_list_of_two(body: bytes) -> bool:
    """Whether a body is a JSON list of two or more. NaN and Infinity are accepted only in a body of up to JSON_READ_SIZE_MAX: the parser that
    knows them is slow. Raises ValueError or RecursionError."""
    if body[:1] not in LIST_BEGINNINGS:
        return False  # rejects most other bodies without parsing them
    text = body.decode()
    try:
        JOB.decode(body)
    except msgspec.DecodeError:
        if len(body) > JSON_READ_SIZE_MAX:
            return False
        value: object = json.loads(text)
        return isinstance(value, list) and len(value) >= 2
    return True


def headers_of(m: Message) -> bytes:
    """The options of another dialect's client as eMQP headers, as far as a worker needs them."""
    timeout = b"timeout:%.9g" % (m.timeout_ns / SECOND_NS) if m.timeout_ns > 0 else b""
    traceparent = traceparent_of(m)
    if not traceparent:
        return timeout
    return b"%s%s%s%s" % (MARK, traceparent, b"," if timeout else b"", timeout)


def json_value(body: bytes) -> object:
    """Parse a body as Python's own parser does, which the original uses: NaN and Infinity are numbers to it. Raises ValueError."""
    try:
        value: object = msgspec.json.decode(body)
    except msgspec.DecodeError:
        value = json.loads(body.decode())
    return value


def error_value(code: str, text: str) -> bytes:
    """Encode a failure as an answer, in the format of our own workers."""
    return msgspec.json.encode({"error": {"type": code, "message": text}})
