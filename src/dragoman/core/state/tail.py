"""The tail of a long line: waiting messages that are on disk only, 40 bytes each in flat arrays.

A message is here only while nothing has happened to it since it was accepted, so its journal record has the rest. Numbers ascend
along the arrays. A message removed from the middle (cancelled, expired) leaves its number negated.
"""

from __future__ import annotations

import zlib
from array import array
from typing import Final, final

from mypy_extensions import i64

COMPACT_AT: Final = 65536  # consumed entries before the arrays are cut: cutting copies the rest


def id_hash(client_id: bytes) -> int:
    """Hash of a client's id: the same on every machine and in every run, because checkpoints store it."""
    return zlib.crc32(client_id) << 30 ^ zlib.adler32(client_id)


def copy_row(columns: list[array[int]], at: int, to: list[array[int]]) -> None:
    """Append row `at` of some columns to others."""
    for column, values in zip(to, columns, strict=True):
        column.append(values[at])


@final
class Tail:
    """A FIFO of flat columns."""

    def __init__(self) -> None:
        self.numbers: array[int] = array("q")
        self.positions: array[int] = array("q")
        self.accepted: array[int] = array("q")
        self.expires: array[int] = array("q")
        self.hashes: array[int] = array("q")
        self.head: int = 0
        self.live: int = 0
        self.departed: list[array[int]] | None = None  # rows removed while a snapshot is in progress, in five columns

    def append(self, number: int, position: int, accepted_ns: int, expires_ns: int, hash_: int) -> None:
        self.numbers.append(number)
        self.positions.append(position)
        self.accepted.append(accepted_ns)
        self.expires.append(expires_ns)
        self.hashes.append(hash_)
        self.live += 1

    def pop(self) -> int:
        """Remove the next live entry and return its index; -1 when there is none. Valid until the next call of `cut`."""
        numbers = self.numbers
        while self.head < len(numbers):
            at = self.head
            self.head += 1
            if numbers[at] > 0:
                self.live -= 1
                if self.departed is not None:
                    copy_row(self.columns(), at, self.departed)
                return at
        return -1

    def cut(self) -> None:
        """Free the consumed entries once there are many, or none is left."""
        n = self.head
        if n >= COMPACT_AT or n == len(self.numbers):
            for column in self.columns():
                del column[:n]
            self.head = 0

    def find(self, number: int) -> int:
        """Index of a number that is still live here, or -1."""
        at = self.after(number - 1)
        return at if at < len(self.numbers) and self.numbers[at] == number else -1

    def after(self, number: int) -> int:
        """Index of the first entry, live or removed, with a higher number; one past the last if there is none."""
        low: i64 = self.head
        high: i64 = len(self.numbers)
        numbers = self.numbers
        while low < high:
            mid = (low + high) // 2
            if abs(numbers[mid]) <= number:
                low = mid + 1
            else:
                high = mid
        return low

    def live_numbers(self) -> list[int]:
        return [number for number in self.numbers[self.head :] if number > 0]

    def remove(self, at: int) -> None:
        if self.departed is not None:
            copy_row(self.columns(), at, self.departed)
        self.numbers[at] = -self.numbers[at]
        self.live -= 1

    def columns(self) -> list[array[int]]:
        return [self.numbers, self.positions, self.accepted, self.expires, self.hashes]

    def find_hash(self, hash_: int, start: int) -> int:
        """Index of the next live entry with this id hash from `start` on, or -1."""
        hashes = self.hashes
        numbers = self.numbers
        for at in range(max(start, self.head), len(hashes)):
            if hashes[at] == hash_ and numbers[at] > 0:
                return at
        return -1
