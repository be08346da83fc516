"""Blocks that are appended but not yet synced, buffered so that they can be rewritten if a sync fails, and the new positions of records that were
rewritten."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from dragoman.journal import format as fmt
from dragoman.journal.disk import DiskFace
from dragoman.journal.format import BLOCK_HEADER_SIZE, SegmentHeader, position_of
from dragoman.model.facts.records import record_in


class _Move(NamedTuple):
    promised: int
    size: int
    actual: int


class Moves:
    """An ordered table of byte ranges. Moves happen only when a disk fails, so a list is enough."""

    def __init__(self) -> None:
        self._moves: list[_Move] = []

    def __len__(self) -> int:
        return len(self._moves)

    def add(self, promised: int, size: int, actual: int) -> None:
        """Record that `size` bytes of records announced at `promised` begin at `actual`; a later move replaces an earlier one."""
        index = bisect_right(self._moves, promised, key=lambda move: move.promised)
        if index and self._moves[index - 1].promised == promised:
            self._moves[index - 1] = _Move(promised, size, actual)
        else:
            insort(self._moves, _Move(promised, size, actual))

    def update(self, moves: Moves) -> None:
        for move in moves._moves:
            self.add(*move)

    def translate(self, position: int) -> int:
        index = bisect_right(self._moves, position, key=lambda move: move.promised)
        if index:
            move = self._moves[index - 1]
            if position < move.promised + move.size:
                return move.actual + (position - move.promised)
        return position

    def segments_now(self, segment_nos: Collection[int]) -> set[int]:
        """The segments that actually contain records announced in these segments."""
        return {m.actual >> fmt.POSITION_SHIFT for m in self._moves if m.promised >> fmt.POSITION_SHIFT in segment_nos}

    def forget(self, segment_no: int) -> None:
        """Remove the moves into a segment that was dropped."""
        self._moves = [move for move in self._moves if move.actual >> fmt.POSITION_SHIFT != segment_no]


@dataclass(slots=True)
class UnsyncedBlock:
    """`promised` is the position that was announced for the block's records."""

    parts: list[bytes]
    size: int
    count: int
    time_ns: int
    first_lsn: int
    promised: int


class UnsyncedBlocks:
    def __init__(self) -> None:
        self._blocks: deque[UnsyncedBlock] = deque()
        self.size = 0

    def __len__(self) -> int:
        return len(self._blocks)

    def add(self, block: UnsyncedBlock) -> None:
        self._blocks.append(block)
        self.size += block.size

    def release(self, count: int) -> None:
        """Remove the oldest `count` blocks, which are synced."""
        for _ in range(count):
            self.size -= self._blocks.popleft().size

    def record(self, position: int) -> bytes | None:
        """The record announced at `position`, if a block in memory has it."""
        for block in self._blocks:
            at = position - block.promised
            if 0 <= at < block.size:
                return record_in(block.parts, at)
        return None

    def write_again(self, disk: DiskFace, fd: int, header: SegmentHeader) -> tuple[int, int, Moves]:
        """Write all blocks after a new segment's header, numbered from its first block number. Return (end, next block number, moves)."""
        offset, block_no, moves = fmt.SEGMENT_HEADER_SIZE, header.first_block_no, Moves()
        seed, synced = fmt.block_seed(header.broker_id, header.segment_no), (header.synced_lsn, header.synced_block_no)
        for block in self._blocks:
            size, numbers = block.size, (block_no, block.first_lsn)
            head = fmt.pack_block_header(
                seed, block.parts, size, block.count, 0, *numbers, *synced, block.time_ns, block.promised
            )
            disk.write(fd, [head, *block.parts], offset)
            moves.add(block.promised, size, position_of(header.segment_no, offset + BLOCK_HEADER_SIZE))
            offset, block_no = offset + BLOCK_HEADER_SIZE + size, block_no + 1
        return offset, block_no, moves
