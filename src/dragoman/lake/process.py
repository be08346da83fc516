"""The sealer as a child of the broker: `python -m dragoman.lake --journal DIR --root ROOT`.

    in    synced <lsn>                   so far may be sealed; the parent says it again and again
          stop                           seal what may be and end; the end of input means the same
    out   sealed <lsn> <rows> <bytes>    a file is in the lake; once at the start, with 0 rows, for how far the lake goes
          trouble <code> <text>          tried again after a while, or, when the child ends with it, not to be helped

It runs at the lowest priority there is: a broker under load goes first, and the sealer catches up when there is room.
"""

from __future__ import annotations

import logging
import sys
import time
from dataclasses import dataclass
from typing import Final

from dragoman import limits
from dragoman.errors import DataDirectoryUnusable, DragomanError, LakeAhead, OperatorError, PyarrowMissing
from dragoman.journal import JournalReader
from dragoman.journal.beside import Parent, step_back
from dragoman.lake.compact import Compactor
from dragoman.lake.sealer import Sealer, sealing_alone
from dragoman.lake.store import Lake
from dragoman.lake.writer import Bodies, Written

log = logging.getLogger("dragoman.lake")

RETRY_S: Final = 5.0  # after trouble with the store
TIDY_S: Final = 60.0  # how often old files are looked for when nothing else happens
HOPELESS: Final = (LakeAhead, PyarrowMissing)


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says."""

    journal: str
    root: str
    bodies: Bodies = "hash"
    interval_s: float = limits.LAKE_INTERVAL_S
    rows_max: int = limits.LAKE_FILE_ROWS
    incoming_keep_s: float = limits.LAKE_INCOMING_KEEP_S


class SealingLoop:
    """Listens, seals, tidies, until the parent has ended."""

    def __init__(self, options: Options, parent: Parent) -> None:
        self._options, self._parent = options, parent
        self._synced_lsn = 0
        self._sealer: Sealer | None = None
        self._compactor: Compactor | None = None
        self._oldest_s = 0.0  # when the first row happened that is in no file yet
        self._again_s = 0.0  # not before, after trouble

    def run(self) -> int:
        """The exit code."""
        parent = self._parent
        while True:
            self._listen(self._wait_s(time.monotonic()))
            now_s = time.monotonic()
            if now_s < self._again_s and not parent.has_ended:
                continue
            try:
                self._try_to_work(now_s)
            except DragomanError as error:
                parent.tell(f"trouble {error.code} {error}")
                if isinstance(error, HOPELESS):
                    return error.exit_code
                if parent.has_ended:
                    return 1
                self._again_s = now_s + RETRY_S
            else:
                if parent.has_ended:
                    return 0

    def _listen(self, wait_s: float) -> None:
        for word, rest in self._parent.listen(wait_s):
            if word == "stop" and not rest:
                self._parent.has_ended = True
            elif word == "synced" and rest.isdecimal():
                self._synced_lsn = max(self._synced_lsn, int(rest))
            else:
                log.warning("not understood: %r", (word, rest))

    def _wait_s(self, now_s: float) -> float:
        if now_s < self._again_s:
            return self._again_s - now_s
        if self._sealer is not None and self._sealer.rows:
            return self._oldest_s + self._options.interval_s - now_s
        return TIDY_S

    def _try_to_work(self, now_s: float) -> None:
        """The store's failures have names already; any other is the journal's disk."""
        try:
            self._work(now_s)
        except OSError as error:
            raise DataDirectoryUnusable(self._options.journal, error) from error

    def _work(self, now_s: float) -> None:
        sealer = self._sealer or self._begin()
        if sealer is None:
            return
        had_rows = sealer.rows > 0
        while sealer.take(self._synced_lsn) or sealer.is_full:
            self._flush(sealer)
            self._listen(0)
            had_rows = False
        if not had_rows:
            # A fact is a second or two old by the time it is synced and told: that counts, too.
            self._oldest_s = now_s - min(sealer.waited_s(time.time_ns()), self._options.interval_s)
        is_due = now_s >= self._oldest_s + self._options.interval_s
        if sealer.rows and (is_due or self._parent.has_ended):
            self._flush(sealer)
        if not self._parent.has_ended:
            self._tidy()

    def _begin(self) -> Sealer | None:
        """The sealer, once the journal and the parent say what it needs to know."""
        reader = JournalReader(self._options.journal)
        broker_id = reader.broker_id()
        if broker_id is None or self._synced_lsn == 0:
            return None
        lake = Lake(self._options.root)
        sealer = Sealer(reader, broker_id, lake, self._options.bodies, self._options.rows_max)
        sealer.check_journal_end(self._synced_lsn)
        self._compactor = Compactor(lake, sealer.broker, self._options.incoming_keep_s)
        self._sealer = sealer
        self._parent.tell(f"sealed {sealer.sealed_lsn} 0 0")
        return sealer

    def _flush(self, sealer: Sealer) -> None:
        for written in sealer.flush():
            self._tell(written)
            if self._compactor is not None:
                self._compactor.add(written, time.time())
        _give_back_memory()

    def _tell(self, written: Written) -> None:
        self._parent.tell(f"sealed {written.part.last_lsn} {written.part.rows} {written.size}")

    def _tidy(self) -> None:
        """One step only: the journal goes first."""
        if self._compactor is not None and self._compactor.step(time.time()) is not None:
            _give_back_memory()


def run(options: Options) -> int:
    """Seal until the parent ends; the exit code."""
    step_back()
    parent = Parent(sys.stdin.fileno(), sys.stdout.fileno())
    try:
        with sealing_alone(options.journal):
            one_thread()
            return SealingLoop(options, parent).run()
    except OperatorError as error:
        parent.tell(f"trouble {error.code} {error}")
        return error.exit_code


def one_thread() -> None:
    """Arrow takes every core by default; the others are the broker's and its peers'."""
    try:
        import pyarrow
    except ImportError as error:
        raise PyarrowMissing from error
    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)


def _give_back_memory() -> None:
    import pyarrow

    pyarrow.default_memory_pool().release_unused()
