"""Maps announced places of records to actual ones, for records that were rewritten because a failed sync made their segment suspect."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Collection
from typing import NamedTuple

from dragoman.journal.format import PLACE_SHIFT


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

    def translate(self, place: int) -> int:
        index = bisect_right(self._moves, place, key=lambda move: move.promised)
        if index:
            move = self._moves[index - 1]
            if place < move.promised + move.size:
                return move.actual + (place - move.promised)
        return place

    def segments_behind(self, segment_nos: Collection[int]) -> set[int]:
        """The segments that actually contain records announced in these segments."""
        return {m.actual >> PLACE_SHIFT for m in self._moves if m.promised >> PLACE_SHIFT in segment_nos}

    def forget(self, segment_no: int) -> None:
        """Remove the moves into a segment that was dropped."""
        self._moves = [move for move in self._moves if move.actual >> PLACE_SHIFT != segment_no]
