"""The sealer: writes the synced facts of a journal into the lake, each exactly once.

It continues after the highest lsn of this broker in the lake. A file is complete or does not exist
(lake/store), so a crash at any instant is like a pause. It never goes beyond what is synced: a power loss may cut off a later block,
and its lsns would then be reused for other facts.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from pathlib import Path

from dragoman import limits
from dragoman.errors import LakeAhead, SealerBusy
from dragoman.journal.format import Block
from dragoman.journal.reader import JournalReader
from dragoman.journal.tools.child_loop import exclusive
from dragoman.lake.layout import broker_name
from dragoman.lake.store import Lake
from dragoman.lake.writer import Bodies, LakeWriter, Written

log = logging.getLogger("dragoman.lake")

LOCK_NAME = "sealer.lock"


class Sealer:
    """Seals one journal into one lake. `take` reads, `flush` writes; the caller decides when to do which."""

    def __init__(
        self,
        reader: JournalReader,
        broker_id: bytes,
        lake: Lake,
        bodies: Bodies = "hash",
        rows_max: int = limits.LAKE_FILE_ROWS,
    ) -> None:
        self._reader = reader
        self._last_block: Block | None = None
        self.lake = lake
        self.broker = broker_name(broker_id)
        if left := lake.remove_temporary(self.broker):
            log.info("%d unfinished files of an earlier run removed", left)
        self.sealed_lsn = lake.last_lsn(self.broker)
        self.missed_facts = 0  # trimmed from the journal before they were sealed
        self._writer = LakeWriter(lake, broker_id, bodies, self.sealed_lsn + 1, rows_max)

    @property
    def rows(self) -> int:
        """Rows that are read and in no file yet."""
        return self._writer.rows

    def waited_s(self, now_ns: int) -> float:
        """Age of the first of these rows, in seconds."""
        return max(now_ns - self._writer.oldest_ns, 0) / 1e9

    @property
    def is_full(self) -> bool:
        return self._writer.is_full

    def check_journal_end(self, journal_lsn: int) -> None:
        """Raise if the journal ends before the lake does: it lost sealed facts and would reuse their lsns."""
        if journal_lsn < self.sealed_lsn:
            raise LakeAhead(self.lake.root, self.sealed_lsn, journal_lsn)

    def take(self, upto_lsn: int) -> bool:
        """Read facts up to `upto_lsn` until there are enough for a file; return True if there may be more."""
        writer = self._writer
        if writer.next_lsn > upto_lsn:
            return False
        for block in self._reader.read(writer.next_lsn, self._last_block):
            if block.last_lsn > upto_lsn:
                return False
            if writer.is_full:
                return True
            self._count_gap(writer.next_lsn, block.first_lsn)
            writer.add(block.records, block.first_lsn, block.count, block.time_ns)
            self._last_block = block
        return False

    def flush(self) -> list[Written]:
        """Write all rows that were taken. May be retried after a failure."""
        written = self._writer.flush()
        if written:
            self.sealed_lsn = written[-1].part.last_lsn
        return written

    def _count_gap(self, wanted_lsn: int, found_lsn: int) -> None:
        # A lake that begins late does not count earlier facts as missed.
        if found_lsn > wanted_lsn and wanted_lsn > 1:
            self.missed_facts += found_lsn - wanted_lsn
            log.warning("facts %d to %d left the journal before they were sealed", wanted_lsn, found_lsn - 1)


def sealing_alone(journal: str) -> AbstractContextManager[None]:
    """Take the lock that allows one sealer per data directory."""
    return exclusive(str(Path(journal).absolute().parent), LOCK_NAME, SealerBusy)
