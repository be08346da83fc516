"""Allocates the smallest free id, from 0: taking and returning one cost a step per factor of eight.

A set bit means "free". Level 0 has one bit per id; a bit of a higher level shows whether its byte of the level below has any:

    level 2   1 byte      ─┐
    level 1   8 bytes     ─┴─► the first set bit leads down to the smallest free id
        level 0   64 bytes         512 ids; when full, it becomes eight times as wide
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter
from mypy_extensions import i64, u8

LEVELS_FIRST: Final = 3
ALL_FREE: Final = 0xFF


def _first_bits() -> bytes:
    return bytes([0] + [(n & -n).bit_length() - 1 for n in range(1, 256)])


FIRST_BIT: Final[bytes] = _first_bits()


def _level(size: int, used: int) -> BytesWriter:
    """A level of `size` bytes, the first `used` bits taken; `used` is a multiple of eight, or one bit of a single byte."""
    out = BytesWriter()
    for at in range(size):
        out.append(
            0 if (at + 1) * 8 <= used else ALL_FREE if at * 8 >= used else ALL_FREE << (used - at * 8) & ALL_FREE
        )
    return out


@final
class FreeIds:
    """The ids of one connection."""

    def __init__(self) -> None:
        self.levels: list[BytesWriter] = []
        self.build(LEVELS_FIRST, 0)

    def build(self, depth: int, used: int) -> None:
        """Allocate 8^depth ids, the first `used` taken."""
        self.levels = []
        for level in range(depth):
            self.levels.append(_level(1 << (3 * (depth - 1 - level)), used))
            used //= 8

    def take(self) -> i64:
        depth: i64 = len(self.levels)
        if self.levels[depth - 1][0] == 0:
            self.build(len(self.levels) + 1, 1 << (3 * len(self.levels)))
            depth += 1
        at: i64 = 0
        level: i64 = depth - 1
        while level >= 0:
            at = at * 8 + i64(FIRST_BIT[i64(self.levels[level][at])])
            level -= 1
        taken: i64 = at
        level = 0
        while level < depth:
            bits = self.levels[level]
            left: i64 = i64(bits[at >> 3]) & ~(1 << (at & 7))
            bits[at >> 3] = u8(left)
            if left != 0:
                break
            at >>= 3
            level += 1
        return taken

    def give(self, taken: i64) -> None:
        """Return an id that was taken."""
        depth: i64 = len(self.levels)
        at: i64 = taken
        level: i64 = 0
        while level < depth:
            bits = self.levels[level]
            was: i64 = i64(bits[at >> 3])
            bits[at >> 3] = u8(was | (1 << (at & 7)))
            if was != 0:
                break
            at >>= 3
            level += 1
