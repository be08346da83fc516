"""Blocks that are appended but that no sync has covered: kept in memory, for a sync that fails."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from dragoman.journal.disk import DiskFace
from dragoman.journal.format import (
    BLOCK_HEADER_SIZE,
    SEGMENT_HEADER_SIZE,
    SegmentHeader,
    block_seed,
    pack_block_header,
    place_of,
)
from dragoman.journal.moves import Moves


@dataclass(slots=True)
class Held:
    """`promised` is the place under which the block's records were given out."""

    records: bytes
    count: int
    time_ns: int
    first_lsn: int
    promised: int


class HeldBlocks:
    def __init__(self) -> None:
        self._blocks: deque[Held] = deque()
        self.size = 0

    def __len__(self) -> int:
        return len(self._blocks)

    def __iter__(self) -> Iterator[Held]:
        return iter(self._blocks)

    def add(self, block: Held) -> None:
        self._blocks.append(block)
        self.size += len(block.records)

    def release(self, count: int) -> None:
        """The oldest `count` blocks are synced."""
        for _ in range(count):
            self.size -= len(self._blocks.popleft().records)

    def record(self, place: int) -> bytes | None:
        """A record that the disk refused and only memory holds."""
        for held in self._blocks:
            at = place - held.promised
            if 0 <= at < len(held.records):
                return held.records[at : at + int.from_bytes(held.records[at : at + 4], "little")]
        return None

    def write_again(self, disk: DiskFace, fd: int, header: SegmentHeader) -> tuple[int, int, Moves]:
        """Write all blocks behind a new segment's header, numbered from its first; (end, next block number, moves)."""
        offset, block_no, moves = SEGMENT_HEADER_SIZE, header.first_block_no, Moves()
        seed, synced = block_seed(header.broker_id, header.segment_no), (header.synced_lsn, header.synced_block_no)
        for held in self._blocks:
            size, numbers = len(held.records), (block_no, held.first_lsn)
            head = pack_block_header(
                seed, [held.records], size, held.count, 0, *numbers, *synced, held.time_ns, held.promised
            )
            disk.write(fd, [head, held.records], offset)
            moves.add(held.promised, size, place_of(header.segment_no, offset + BLOCK_HEADER_SIZE))
            offset, block_no = offset + BLOCK_HEADER_SIZE + size, block_no + 1
        return offset, block_no, moves
