"""Encoding of spans in OTLP: opentelemetry/proto/trace/v1/trace.proto and collector/trace/v1/trace_service.proto, written by hand.

    request         1 resource_spans { 1 resource { 1 attributes… }, 2 scope_spans { 1 scope { 1 name, 2 version }, 2 spans… } }
    span            1 trace_id, 2 span_id, 4 parent_span_id, 5 name, 6 kind, 7 start (8 bytes), 8 end (8 bytes), 9 attributes…,
                    13 links { 1 trace_id, 2 span_id }…, 15 status { 2 message, 3 code }, 16 flags (4 bytes)
    attribute       1 key, 2 value { 1 text | 3 whole number }
    response        1 partial_success { 1 rejected_spans, 2 error_message }

Only a dozen fields are needed, and most attributes of a span equal those of the one before: packed here, a span costs a fraction of
what protobuf's own classes take. The tests decode everything with those classes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from dragoman.otel.spans import Attributes, Span
from dragoman.version import VERSION

IS_SAMPLED: Final = 0x001
PARENT_KNOWN: Final = 0x100  # whether the parent is remote is known
PARENT_REMOTE: Final = 0x200
# Fixed-size fields: their tags and sizes, encoded in advance.
TRACE_ID: Final = b"\x0a\x10"
SPAN_ID: Final = b"\x12\x08"
PARENT_ID: Final = b"\x22\x08"
START_TAG, END_TAG = 0x39, 0x41
TIMES: Final = struct.Struct("<BQBQ")
# Cached encodings of names and attributes: enough for some hundred queues and workers, although ids pass through the cache, too.
PARTS_KEPT: Final = 8192
# The wire format of Protocol Buffers: a field is a tag (`number << 3 | type`) and a value, by type:
VARINT: Final = 0  # seven bits a byte, the lowest first; the top bit means that more follow
EIGHT: Final = 1  # eight bytes, little endian
SIZED: Final = 2  # a size as varint, and that many bytes: texts, nested messages
FOUR: Final = 5  # four bytes, little endian
VARINT_SIZE_MAX: Final = 10
WORDS_SIZE_MAX: Final = 200  # bytes of a collector's text that we repeat


class Encoder:
    """Encodes the spans of one broker, whose identity is sent once in each request."""

    def __init__(self, service_name: str, broker_id: bytes) -> None:
        told: Attributes = {
            "service.name": service_name,
            "service.instance.id": broker_id.hex(),
            "service.version": VERSION,
        }
        resource = b"".join(bytes_field(1, attribute(key, value)) for key, value in told.items())
        scope = text_field(1, "dragoman") + text_field(2, VERSION)
        self._resource = bytes_field(1, resource)
        self._scope = bytes_field(1, scope)

    def request(self, spans: Iterable[Span]) -> bytes:
        scoped = self._scope + b"".join(bytes_field(2, encode(span)) for span in spans)
        return bytes_field(1, self._resource + bytes_field(2, scoped))


def encode(span: Span) -> bytes:
    return b"".join(
        [
            TRACE_ID,
            span.trace_id,
            SPAN_ID,
            span.span_id,
            *((PARENT_ID, span.parent_id) if span.parent_id else ()),
            opening(span.name, span.kind),
            TIMES.pack(START_TAG, span.start_ns, END_TAG, span.end_ns),
            *(bytes_field(13, bytes_field(1, link.trace_id) + bytes_field(2, link.span_id)) for link in span.links),
            *(packed_attribute(key, value) for key, value in span.attributes.items()),
            closing(span.status, span.problem, span.is_parent_remote),
        ]
    )


@lru_cache(PARTS_KEPT)
def opening(name: str, kind: int) -> bytes:
    return text_field(5, name) + number_field(6, kind)


@lru_cache(PARTS_KEPT)
def closing(status: int, problem: str, is_parent_remote: bool) -> bytes:
    flags = IS_SAMPLED | PARENT_KNOWN | (PARENT_REMOTE if is_parent_remote else 0)
    return (
        bytes_field(15, text_field(2, problem) + number_field(3, status))
        + varint(16 << 3 | FOUR)
        + flags.to_bytes(4, "little")
    )


@lru_cache(PARTS_KEPT)
def packed_attribute(key: str, value: str | int) -> bytes:
    return bytes_field(9, attribute(key, value))


def attribute(key: str, value: str | int) -> bytes:
    packed = text_field(1, value) if isinstance(value, str) else number_field(3, value)
    return text_field(1, key) + bytes_field(2, packed)


def rejected_spans(response: bytes) -> tuple[int, str]:
    """The number of spans that the collector rejected although it accepted the request, and the beginning of its text."""
    try:
        partial = read_fields(response).get(1, b"")
        fields = read_fields(partial) if isinstance(partial, bytes) else {}
    except ValueError:  # accepted, with a body in another format
        return 0, ""
    count, words = fields.get(1, 0), fields.get(2, b"")
    text = words[:WORDS_SIZE_MAX].decode("utf-8", "replace") if isinstance(words, bytes) else ""
    return count if isinstance(count, int) else 0, text


def varint(number: int) -> bytes:
    """Encode a number of up to 64 bits; a negative one in two's complement."""
    number &= (1 << 64) - 1
    if number < 0x80:
        return bytes((number,))
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def number_field(number: int, value: int) -> bytes:
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | SIZED) + varint(len(data)) + data


def text_field(number: int, text: str) -> bytes:
    return bytes_field(number, text.encode("utf-8", "replace"))


def read_fields(data: bytes) -> dict[int, int | bytes]:
    """The fields of a message, the last of each number; raises `ValueError` if it is malformed."""
    found: dict[int, int | bytes] = {}
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        kind = tag & 7
        if kind == VARINT:
            found[tag >> 3], at = _read_varint(data, at)
            continue
        if kind not in (EIGHT, SIZED, FOUR):
            raise ValueError("no such type of field")
        size, at = _read_varint(data, at) if kind == SIZED else ((8 if kind == EIGHT else 4), at)
        if at + size > len(data):
            raise ValueError("a field is longer than its message")
        found[tag >> 3] = data[at : at + size]
        at += size
    return found


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number, and the offset after it."""
    number = 0
    for index, byte in enumerate(data[at : at + VARINT_SIZE_MAX]):
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return number, at + index + 1
    raise ValueError("a number without an end")
