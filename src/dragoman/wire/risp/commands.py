"""The command bytes of RISP as rq uses them. The top three bits of a command determine what follows it.

    0–31     nothing; executes with the accumulator           128–159   u32
    32–63    nothing, a flag                                  160–191   1-byte length, data
    64–95    u8                                               192–223   2-byte length, data
    96–127   u16                                              224–255   4-byte length, data

All integers are big-endian and unsigned.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64

NOP: Final = 0
CLEAR: Final = 1
PING: Final = 5
PONG: Final = 6
REQUEST: Final = 10
REPLY: Final = 11
DELIVERED: Final = 13
BROADCAST: Final = 14
UNDELIVERED: Final = 16
CONSUME: Final = 20
CANCEL_QUEUE: Final = 21
CLOSING: Final = 22
SERVER_FULL: Final = 23
CONSUMING: Final = 24

EXCLUSIVE: Final = 32
NOREPLY: Final = 33

PRIORITY: Final = 64
RETRIES: Final = 65

QUEUEID: Final = 96
TIMEOUT: Final = 97
MAX: Final = 98

ID: Final = 128

QUEUE: Final = 160
PAYLOAD: Final = 224

# The first command of each range.
FLAGS: Final = 32
BYTES: Final = 64
SHORTS: Final = 96
LONGS: Final = 128
TINY_TEXTS: Final = 160
SHORT_TEXTS: Final = 192
LONG_TEXTS: Final = 224

# A consumer's priority.
PRIORITY_NONE: Final = 0
PRIORITY_LOW: Final = 10
PRIORITY_NORMAL: Final = 20
PRIORITY_HIGH: Final = 30

U32: Final = 0xFFFF_FFFF
U16: Final = 0xFFFF
# The value of a parameter that the peer did not send.
ABSENT: Final = -1
# The sizes of the parameters that are ASCII, with their command.
SIZES: Final = {EXCLUSIVE: 1, NOREPLY: 1, PRIORITY: 2, RETRIES: 2, QUEUEID: 3, TIMEOUT: 3, MAX: 3}


def is_of_known_commands(data: bytes) -> bool:
    """Whether the first bytes of a stream, all ASCII, are rq parameters. Streams of other protocols soon contain a byte that is not."""
    at = 0
    while at < len(data):
        size = SIZES.get(data[at], 0)
        if size == 0:
            return False
        at += size
    return True


def is_at(data: bytes, at: i64, name: bytes, size: i64) -> bool:
    """Whether `name` occurs in `data` at `at`."""
    index: i64 = 0
    while size - index >= 8:
        if read_i64_be(data, at + index) != read_i64_be(name, index):
            return False
        index += 8
    if size - index >= 4:
        if read_i32_be(data, at + index) != read_i32_be(name, index):
            return False
        index += 4
    while index < size:
        if data[at + index] != name[index]:
            return False
        index += 1
    return True
