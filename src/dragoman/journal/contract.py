"""The small interface behind which a journal may be another one: a file here, a replicated stream elsewhere.

`dragoman.testing.journal_checks` holds the checks every such journal must pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from dragoman.journal.format import Block


class FactLog(Protocol):
    """Facts in blocks, in order, each with its lsn; the first fact ever has lsn 1."""

    def append(self, records: bytes, count: int, time_ns: int) -> int:
        """Take `count` facts as one block that is kept whole or not at all; the lsn of the last of them. Raises
        `JournalUnavailable` and takes nothing when it cannot."""

    def commit(self) -> int:
        """Return when all that was appended before the call is as safe as the chosen durability says; the highest lsn
        that is."""

    def read(self, from_lsn: int) -> Iterator[Block]:
        """Blocks with facts, in order, from the one that holds `from_lsn` (or the oldest kept after it)."""

    def trim(self, before_lsn: int) -> int:
        """Forget facts below `before_lsn` as far as that is possible; how many storage units went."""
