"""Encodes the broker's own data as bytes. Data that peers exchange is never parsed.

The newest original packs zlib(BSON `{l: value}`); earlier ones and the specification use JSON. This is the part of BSON the broker needs:

    document   size(4)  elements  0          an array is a document whose names are 0, 1, 2 …
    element    type(1)  name 0    value      0x02 text: size(4) bytes 0 · 0x03 document · 0x04 array · 0x10 int32 · 0x12 int64

All numbers little-endian.
"""

from __future__ import annotations

import zlib
from typing import Final

import msgspec

from dragoman.model.enums import PAST_EXPIRY, REASON_NAMES

TEXT: Final = 0x02
DOCUMENT: Final = 0x03
ARRAY: Final = 0x04
INT32: Final = 0x10
INT64: Final = 0x12

# Up to this size with the original's compression level; a longer list of workers with the fastest.
PACKED_SIZE_MAX: Final = 64 * 1024
# Our own reasons are one short text; anything larger, packed or not, comes from a worker.
REASON_SIZE_MAX: Final = 1024


def pack(value: object, is_json: bool) -> bytes:
    """Encode a value (text, integer, list, dict) as the data of a message."""
    if is_json:
        return msgspec.json.encode(value)
    plain = document({"l": value})
    return zlib.compress(plain) if len(plain) <= PACKED_SIZE_MAX else zlib.compress(plain, 1)


def reject_data(reason: int, value: bytes, is_json: bool) -> bytes:
    """The data of a REJECT: the worker's own, or our reason; empty for an expired request, as in the original."""
    if value or reason == PAST_EXPIRY:
        return value
    name = REASON_NAMES[reason]
    return pack(f"{name.upper()}: {name.replace('_', ' ')}", is_json)


def document(items: dict[str, object]) -> bytes:
    elements = b"".join([element(name, value) for name, value in items.items()])
    return (len(elements) + 5).to_bytes(4, "little") + elements + b"\0"


def element(name: str, value: object) -> bytes:
    head = name.encode() + b"\0"
    if isinstance(value, str):
        text = value.encode() + b"\0"
        return b"%c%s%s%s" % (TEXT, head, len(text).to_bytes(4, "little"), text)
    if isinstance(value, int):
        is_small = -(1 << 31) <= value < 1 << 31
        number = value.to_bytes(4 if is_small else 8, "little", signed=True)
        return b"%c%s%s" % (INT32 if is_small else INT64, head, number)
    if isinstance(value, list):
        return b"%c%s%s" % (ARRAY, head, document({str(index): item for index, item in enumerate(value)}))
    assert isinstance(value, dict), "the broker's own data has no other kinds"
    return b"%c%s%s" % (DOCUMENT, head, document(value))


def text_in(data: bytes) -> bytes:
    """The single text in packed data, in either form; the data itself if it contains no such text."""
    if data[:1] == b'"':
        return text_in_json(data)
    if len(data) > REASON_SIZE_MAX or data[:1] != b"\x78":
        return data
    try:
        plain = zlib.decompressobj().decompress(data, REASON_SIZE_MAX)
    except zlib.error:
        return data
    # size(4) 0x02 "l" 0 size(4) text 0 0
    size = len(plain)
    if size < 13 or plain[4:7] != b"\x02l\0" or int.from_bytes(plain[:4], "little") != size:
        return data
    if int.from_bytes(plain[7:11], "little") != size - 12:
        return data
    return plain[11 : size - 2]


def text_in_json(data: bytes) -> bytes:
    try:
        return msgspec.json.decode(data, type=str).encode("utf-8", "replace")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return data
