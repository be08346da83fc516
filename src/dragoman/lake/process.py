"""The sealer as a child of the broker: `python -m dragoman.lake.process OPTIONS`, which are JSON.

    out   sealed <lsn> <rows> <bytes>    a file is in the lake; 0 rows at the start and after a failure, to report the lake's last lsn

journal/tools/child_loop documents the other lines of both directions. The sealer runs at the lowest scheduling priority: a broker under
load goes first, and the sealer catches up when the processor is free.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Final

import msgspec

from dragoman import limits, log_lines
from dragoman.errors import LakeAhead, PyarrowMissing
from dragoman.journal.reader import JournalReader
from dragoman.journal.tools.child_loop import Loop, Parent, run_child
from dragoman.lake.compact import Compactor
from dragoman.lake.sealer import Sealer, sealing_alone
from dragoman.lake.store import Lake, Modes
from dragoman.lake.writer import Bodies

TIDY_S: Final = 60.0  # how often old files are looked for when nothing else happens


@dataclass(frozen=True, slots=True)
class Options:
    """The broker's settings for it."""

    journal: str
    root: str
    bodies: Bodies = "hash"
    interval_s: float = limits.LAKE_INTERVAL_S
    rows_max: int = limits.LAKE_FILE_ROWS
    incoming_keep_s: float = limits.LAKE_INCOMING_KEEP_S
    file_mode: int = limits.LAKE_FILE_MODE
    directory_mode: int = limits.LAKE_DIRECTORY_MODE


class SealingLoop(Loop):
    """Seals facts and compacts the lake."""

    fatal = (LakeAhead, PyarrowMissing)
    retry_s = 5.0  # after a failure of the store

    def __init__(self, options: Options, parent: Parent) -> None:
        super().__init__(parent, options.journal)
        self._options = options
        self._sealer: Sealer | None = None
        self._compactor: Compactor | None = None
        self._oldest_s = 0.0  # the instant of the first row that is in no file yet

    def wait_s(self, now_s: float) -> float:
        if self._sealer is not None and self._sealer.rows:
            return self._oldest_s + self._options.interval_s - now_s
        return TIDY_S

    def end_trouble(self) -> None:
        if self._sealer is not None:
            self.parent.send(f"sealed {self._sealer.sealed_lsn} 0 0")

    def work(self, now_s: float) -> None:
        sealer = self._sealer or self._begin()
        if sealer is None:
            return
        had_rows = sealer.rows > 0
        while sealer.take(self.synced_lsn) or sealer.is_full:
            self._flush(sealer)
            self.receive(0)
            had_rows = False
        if not had_rows:
            # A fact is a second or two old by the time it is synced and reported: that counts, too.
            self._oldest_s = now_s - min(sealer.waited_s(time.time_ns()), self._options.interval_s)
        is_due = now_s >= self._oldest_s + self._options.interval_s
        if sealer.rows and (is_due or self.parent.has_ended):
            self._flush(sealer)
        # One compaction step only: sealing goes first.
        if not self.parent.has_ended and self._compactor is not None and self._compactor.step(time.time()) is not None:
            _give_back_memory()

    def _begin(self) -> Sealer | None:
        """The sealer, once the journal has a broker id and the parent has reported a synced lsn."""
        options = self._options
        reader = JournalReader(options.journal)
        broker_id = reader.broker_id()
        if broker_id is None or self.synced_lsn == 0:
            return None
        lake = Lake(options.root, modes=Modes(options.file_mode, options.directory_mode))
        sealer = Sealer(reader, broker_id, lake, options.bodies, options.rows_max)
        sealer.check_journal_end(self.synced_lsn)
        self._compactor = Compactor(lake, sealer.broker, options.incoming_keep_s)
        self._sealer = sealer
        self.end_trouble()
        return sealer

    def _flush(self, sealer: Sealer) -> None:
        for written in sealer.flush():
            self.parent.send(f"sealed {written.part.last_lsn} {written.part.rows} {written.size}")
            if self._compactor is not None:
                self._compactor.add(written, time.time())
        _give_back_memory()


def run(options: Options) -> int:
    """Seal until the parent ends; return the exit code."""

    def make(parent: Parent) -> SealingLoop:
        try:
            import pyarrow
        except ImportError as error:
            raise PyarrowMissing from error
        pyarrow.set_cpu_count(1)  # by default Arrow uses every core, and the others are for the broker and its peers
        pyarrow.set_io_thread_count(1)
        return SealingLoop(options, parent)

    return run_child(sealing_alone(options.journal), make)


def _give_back_memory() -> None:
    import pyarrow

    pyarrow.default_memory_pool().release_unused()


if __name__ == "__main__":
    log_lines.configure("WARNING", "%(asctime)s %(levelname)s sealer: %(message)s")
    sys.exit(run(msgspec.json.decode(sys.argv[1], type=Options)))
