"""Blocks that are appended but not yet synced, kept in memory so that they can be rewritten if a sync fails."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from dragoman.journal import format as fmt
from dragoman.journal.disk import DiskFace
from dragoman.journal.format import BLOCK_HEADER_SIZE, SegmentHeader, place_of
from dragoman.journal.writing.moves import Moves
from dragoman.model.facts.records import record_in


@dataclass(slots=True)
class Held:
    """`promised` is the place that was announced for the block's records."""

    parts: list[bytes]
    size: int
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
        self.size += block.size

    def release(self, count: int) -> None:
        """Remove the oldest `count` blocks, which are synced."""
        for _ in range(count):
            self.size -= self._blocks.popleft().size

    def record(self, place: int) -> bytes | None:
        """The record announced at `place`, if a block in memory has it."""
        for held in self._blocks:
            at = place - held.promised
            if 0 <= at < held.size:
                return record_in(held.parts, at)
        return None

    def write_again(self, disk: DiskFace, fd: int, header: SegmentHeader) -> tuple[int, int, Moves]:
        """Write all blocks after a new segment's header, numbered from its first block number. Return (end, next block number, moves)."""
        offset, block_no, moves = fmt.SEGMENT_HEADER_SIZE, header.first_block_no, Moves()
        seed, synced = fmt.block_seed(header.broker_id, header.segment_no), (header.synced_lsn, header.synced_block_no)
        for held in self._blocks:
            size, numbers = held.size, (block_no, held.first_lsn)
            head = fmt.pack_block_header(
                seed, held.parts, size, held.count, 0, *numbers, *synced, held.time_ns, held.promised
            )
            disk.write(fd, [head, *held.parts], offset)
            moves.add(held.promised, size, place_of(header.segment_no, offset + BLOCK_HEADER_SIZE))
            offset, block_no = offset + BLOCK_HEADER_SIZE + size, block_no + 1
        return offset, block_no, moves
