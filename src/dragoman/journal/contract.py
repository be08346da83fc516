"""The interface that any journal must have, so that another implementation (such as a replicated stream) can replace the files.

`tests/journal/journal_checks.py` has the checks that every implementation must pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from dragoman.journal.format import Block


class FactLog(Protocol):
    """Facts in blocks, in order, each with its lsn; the first fact of a journal has lsn 1."""

    def append(self, parts: list[bytes], count: int, time_ns: int) -> int:
        """Append `count` facts, whose records are in `parts`, as one block that is stored whole or not at all. Return the lsn of the last fact.
        Raise `JournalUnavailable`, and append nothing, when that fails."""

    def commit(self) -> int:
        """Wait until everything appended before the call is as safe as the configured durability requires. Return the highest lsn that is."""

    def read(self, from_lsn: int) -> Iterator[Block]:
        """Blocks with facts, in order, starting with the block that contains `from_lsn` (or the oldest one after it that still exists)."""

    def trim(self, before_lsn: int) -> int:
        """Delete facts below `before_lsn` as far as possible. Return how many storage units were deleted."""
