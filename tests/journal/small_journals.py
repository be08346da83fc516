"""What the journal's tests share: records that can be told apart, journals small enough to roll often."""

from __future__ import annotations

import struct

from dragoman import limits
from dragoman.journal.disk import DiskFace
from dragoman.journal.journal import Journal
from dragoman.journal.reader import JournalReader
from dragoman.journal.settings import Durability, JournalSettings

BROKER_ID = bytes(range(16))
DIRECTORY = "/data/journal"
SEGMENT_SIZE = limits.SEGMENT_SIZE_MIN


def record(number: int, size: int = 40, kind: int = 1) -> bytes:
    """A record of exactly `size` bytes that says `number`."""
    return struct.pack("<IBQ", size, kind, number) + bytes(size - 13)


def segment_path(segment_no: int, directory: str = DIRECTORY) -> str:
    return f"{directory}/{segment_no:010d}.seg"


def numbers_in(records: bytes) -> list[int]:
    """The numbers of the facts in a block; storage is passed over."""
    found, at = [], 0
    while at < len(records):
        size, kind, number = struct.unpack_from("<IBQ", records, at)
        if kind < 200:
            found.append(number)
        at += size
    return found


def settings(durability: Durability = "disk", directory: str = DIRECTORY, **more: int) -> JournalSettings:
    return JournalSettings(directory, durability, segment_size=SEGMENT_SIZE, **more)


def opened(disk: DiskFace, durability: Durability = "disk", directory: str = DIRECTORY, **more: int) -> Journal:
    return Journal.open(settings(durability, directory, **more), disk, new_broker_id=BROKER_ID)


def append_numbers(journal: Journal, first: int, count: int, size: int = 40, *, settling: bool = False) -> int:
    """One block of `count` facts numbered from `first`; its first record's place."""
    position = journal.next_position()
    records = b"".join(record(first + i, size) for i in range(count))
    journal.append([records], count, first, settling=settling)
    return position


def replayed_numbers(journal: Journal) -> list[int]:
    return [number for block in journal.replay() for number in numbers_in(block.records)]


def read_numbers(directory: str = DIRECTORY, disk: DiskFace | None = None, from_lsn: int = 1) -> list[int]:
    return [n for block in JournalReader(directory, disk).read(from_lsn) for n in numbers_in(block.records)]
