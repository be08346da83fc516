"""The Protocol Buffers wire format, as far as OTLP needs it: a field is a tag (`number << 3 | type`) and a value.

type 0   varint: seven bits a byte, the lowest first, the top bit means that more follow
type 1   eight bytes, little endian
type 2   a size as varint, and that many bytes: texts, nested messages
type 5   four bytes, little endian
"""

from __future__ import annotations

from typing import Final

VARINT: Final = 0
EIGHT: Final = 1
SIZED: Final = 2
FOUR: Final = 5
VARINT_SIZE_MAX: Final = 10


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


def four_field(number: int, value: int) -> bytes:
    return varint(number << 3 | FOUR) + value.to_bytes(4, "little")


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
