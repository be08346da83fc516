"""Encodes frames and messages. A message is a list of frames; every frame but its last has the MORE flag.

    2.0 and 3.x, short   flags(1)  size(1)            body(size)             body up to 255 bytes
    2.0 and 3.x, long    flags(1)  size(8, big end.)  body(size)
    1.0, short           size(1)             flags(1) body(size - 1)         size counts the flags byte: body up to 253
    1.0, long            0xFF size(8)        flags(1) body(size - 1)

A command is a single frame with the COMMAND flag (3.x only); it never has MORE.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i16_be, write_i64_be
from mypy_extensions import i16, i64

MORE: Final = 1
LONG: Final = 2
COMMAND: Final = 4

SHORT_BODY_SIZE_MAX: Final = 255
SHORT_BODY_SIZE_MAX_V1: Final = 253


def write_frame(out: BytesWriter, frame: bytes, more: bool) -> None:
    """Append one message frame in the form of 2.0 and 3.x."""
    size: i64 = len(frame)
    if size <= SHORT_BODY_SIZE_MAX:
        write_i16_be(out, i16(size | MORE << 8 if more else size))  # flags and size in one write
    else:
        out.append(LONG | MORE if more else LONG)
        write_i64_be(out, size)
    out.write(frame)


def write_frame_v1(out: BytesWriter, frame: bytes, more: bool) -> None:
    """Append one message frame in the form of 1.0."""
    size = len(frame)
    if size <= SHORT_BODY_SIZE_MAX_V1:
        out.append(size + 1)
    else:
        out.append(0xFF)
        write_i64_be(out, size + 1)
    out.append(MORE if more else 0)
    out.write(frame)


def write_message(out: BytesWriter, frames: list[bytes], is_v1: bool) -> None:
    """Append a complete message; `is_v1` is the connection's."""
    last: i64 = len(frames) - 1
    assert last >= 0, "a message has at least one frame"
    index: i64 = 0
    while index <= last:
        if is_v1:
            write_frame_v1(out, frames[index], index < last)
        else:
            write_frame(out, frames[index], index < last)
        index += 1


def encode_message(frames: list[bytes], is_v1: bool = False) -> bytes:
    out = BytesWriter()
    write_message(out, frames, is_v1)
    return out.getvalue()


def encode_command(body: bytes) -> bytes:
    size = len(body)
    if size <= SHORT_BODY_SIZE_MAX:
        return bytes([COMMAND, size]) + body
    return bytes([COMMAND | LONG]) + size.to_bytes(8, "big") + body
