"""Looking into eMQP frames where the protocol itself puts a meaning there: queue lists, jobs of the original."""

from __future__ import annotations

import json

import msgspec
from librt.strings import BytesWriter, write_i64_be

from dragoman.dialects.emqp.dialect import EmqpSettings
from dragoman.dialects.traceparent import MARK, traceparent_of
from dragoman.limits import WEIGHT_MAX
from dragoman.model.message import Message
from dragoman.model.units import SECOND_NS
from dragoman.model.words import EMQP, INTERNAL
from dragoman.wire.zmtp.frames import LONG, MORE


def read_queues(frame: bytes, settings: EmqpSettings) -> list[tuple[int, bytes]]:
    """`[[30,"low"],[10,"default"]]`, a JSON list of names, or one bare name; empty means the default queue."""
    if not frame:
        return [(settings.default_weight, settings.default_queue)]
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
    if not queues:
        return [(settings.default_weight, settings.default_queue)]
    return [(weight, name) for name, weight in queues.items()]


def is_original_job(m: Message) -> bool:
    """Whether the original's worker can take it: all frames UTF-8, the body a JSON list of two or more. Else it resets itself."""
    try:
        m.wire_id.decode()  # one of our own is ASCII
        m.queue.decode()
        if m.dialect == EMQP or m.dialect == INTERNAL:  # a schedule's headers are eMQP's, too
            m.headers.decode()
        value = json_value(m.body)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, list) and len(value) >= 2


def headers_of(m: Message) -> bytes:
    """What a client of another dialect asked for, in eMQP's words: as much as a worker needs to know."""
    timeout = b"timeout:%.9g" % (m.timeout_ns / SECOND_NS) if m.timeout_ns > 0 else b""
    traceparent = traceparent_of(m)
    if not traceparent:
        return timeout
    return b"%s%s%s%s" % (MARK, traceparent, b"," if timeout else b"", timeout)


def json_value(body: bytes) -> object:
    """A body as Python's own reader sees it, which the original uses: NaN and Infinity are numbers to it. Raises ValueError."""
    try:
        value: object = msgspec.json.decode(body)
    except msgspec.DecodeError:
        value = json.loads(body.decode())
    return value


def error_value(code: str, text: str) -> bytes:
    """How a failure is answered: as our own workers answer theirs."""
    return msgspec.json.encode({"error": {"type": code, "message": text}})


def write_long_frame_head(out: BytesWriter, size: int, has_more: bool) -> None:
    """The head of a frame whose body follows by reference."""
    out.append(LONG | MORE if has_more else LONG)
    write_i64_be(out, size)
