"""Groups checkpoint chunks into blocks whose flags distinguish a complete checkpoint from an incomplete one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dragoman import limits
from dragoman.journal.format import BLOCK_CHECKPOINT, BLOCK_CHECKPOINT_BEGIN, BLOCK_CHECKPOINT_END, BLOCK_HEADER_SIZE

# Small chunks share a block of about this size.
CHECKPOINT_BLOCK_SIZE: Final = 1024 * 1024


@dataclass(slots=True)
class CheckpointUnderWay:
    """A checkpoint that was begun in the live segment and is not complete yet."""

    time_ns: int
    written_before: int  # bytes between the previous checkpoint and this one
    size: int = 0


def checkpoint_blocks(
    chunks: list[bytes], *, is_first: bool = True, is_last: bool = True
) -> list[tuple[int, list[bytes]]]:
    """(flags, chunks of one block) in order. An empty checkpoint is one empty block: nothing is open."""
    groups: list[list[bytes]] = [[]]
    size = 0
    for chunk in chunks:
        if size and size + len(chunk) > CHECKPOINT_BLOCK_SIZE:
            groups.append([])
            size = 0
        groups[-1].append(chunk)
        size += len(chunk)
    flags = [BLOCK_CHECKPOINT] * len(groups)
    if is_first:
        flags[0] |= BLOCK_CHECKPOINT_BEGIN
    if is_last:
        flags[-1] |= BLOCK_CHECKPOINT_END
    return list(zip(flags, groups, strict=True))


def checkpoint_room(chunks: list[bytes]) -> int:
    """Bytes that a segment needs for a checkpoint and some facts after it."""
    return sum(map(len, chunks)) + BLOCK_HEADER_SIZE * (1 + len(chunks)) + limits.CHECKPOINT_ROOM_SIZE
