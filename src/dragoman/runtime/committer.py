"""Makes facts durable before the output they caused is sent.

One block per commit. `memory` and `os` commit on the event loop, in the tick that made the facts. `disk` appends on the event loop and syncs
in a thread: while one sync runs, decoding continues and the next block fills, so the batch size grows with the load. A block of
megabytes is written in a thread too, whatever the durability.

A block that the journal cannot store is kept and retried; the output it caused stays pending, new work is refused, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dragoman.core.core import Core
from dragoman.errors import JournalUnavailable
from dragoman.journal.format import BLOCK_HEADER_SIZE
from dragoman.journal.journal import Journal
from dragoman.limits import WRITTEN_ASIDE_SIZE
from dragoman.runtime.outside import Environment


@dataclass(slots=True)
class Block:
    parts: list[bytes]
    size: int
    count: int
    time_ns: int
    position: int


# Results of `commit`.
DURABLE: Final = 0  # everything so far is durable: send the output
STARTED: Final = 1  # a sync of everything so far has started: `on_synced` is called at its end
WAITING: Final = 2  # an earlier sync or write still runs, or the journal failed: call again


class Committer:
    """Owns the journal's writing side. `on_synced` is called when a STARTED sync has ended, `on_written` when a large block was written beside the
    event loop. `on_appended` is called while the log is empty; it returns whether it wrote something."""

    def __init__(
        self,
        core: Core,
        journal: Journal,
        outside: Environment,
        on_synced: Callable[[], None],
        on_written: Callable[[], None],
        on_appended: Callable[[], bool],
    ) -> None:
        self._core, self._journal, self._loop = core, journal, outside.loop
        self._on_synced, self._on_written, self._on_appended = on_synced, on_written, on_appended
        self._has_positions = journal.settings.durability != "memory"
        self._commit_thread = outside.commit_thread  # one thread; None when the durability needs no sync
        # For large blocks, one at a time; None: all are written on the event loop.
        self._write_thread = outside.write_thread
        self._stuck: Block | None = None
        self._is_unsynced = False
        self.is_busy = False
        self.trouble: JournalUnavailable | None = None
        self._set_base()

    def _set_base(self) -> None:
        """Set the position of the log's next record. Only while the log is empty."""
        self._core.log.base_position = self._journal.next_position() if self._has_positions else 0

    @property
    def unsynced_size(self) -> int:
        return self._core.log.size() + self._journal.unsynced_size + (self._stuck.size if self._stuck else 0)

    @property
    def stuck_count(self) -> int:
        """Facts taken from the log that the journal could not store yet."""
        return self._stuck.count if self._stuck is not None else 0

    @property
    def is_stuck(self) -> bool:
        return self._stuck is not None or (self._is_unsynced and not self.is_busy)

    def commit(self) -> int:
        """Commit the log's content: DURABLE, STARTED or WAITING."""
        if self.is_busy or not self._append():
            return WAITING
        if not self._is_unsynced:
            return DURABLE
        assert self._commit_thread is not None
        self.is_busy = True
        self._commit_thread.submit(self._sync)
        return STARTED

    def _append(self) -> bool:
        """Pass the pending blocks to the journal; False while it cannot store them."""
        while True:
            block = self._stuck if self._stuck is not None else self._next_block()
            if block is None:
                if self._on_appended():
                    self._is_unsynced = self._commit_thread is not None
                self._set_base()
                return True
            if self._write_thread is not None and block.size > WRITTEN_ASIDE_SIZE:
                self.is_busy = True
                self._stuck = block
                self._write_thread.submit(self._write_aside, block, self.trouble is not None)
                return False
            try:
                self._write(block, settling=self.trouble is not None)
            except JournalUnavailable as trouble:
                had_reserve = self.trouble is not None
                self.trouble = trouble
                self._stuck = block
                if had_reserve:
                    return False
                continue  # retry with the space reserved for settling work
            self._stuck = None
            self._core.log.taken = []
            self._is_unsynced = self._commit_thread is not None

    def _next_block(self) -> Block | None:
        log = self._core.log
        if log.size() == 0:
            return None
        size, count, position = log.size(), log.count, log.first_position()
        block = Block(log.take_parts(), size, count, self._core.now_ns, position)
        if self._has_positions:  # until the journal has it, later records are placed directly after it
            log.base_position = position + size + BLOCK_HEADER_SIZE
        return block

    def _write(self, block: Block, settling: bool) -> None:
        position = block.position if self._has_positions else None
        self._journal.append(block.parts, block.count, block.time_ns, settling=settling, position=position)

    def _write_aside(self, block: Block, settling: bool) -> None:
        """In the write thread: writing megabytes would block the event loop for too long."""
        trouble: JournalUnavailable | None = None
        try:
            self._write(block, settling)
        except JournalUnavailable as failed:
            trouble = failed
        self._loop.call_soon_threadsafe(self._written, trouble)

    def _written(self, trouble: JournalUnavailable | None) -> None:
        self.is_busy = False
        had_reserve = self.trouble is not None
        if trouble is None:
            self._stuck = None
            self._core.log.taken = []
            self._is_unsynced = self._commit_thread is not None
        else:
            self.trouble = trouble
        if trouble is None or not had_reserve:  # else a later commit retries it
            self._on_written()

    def _sync(self) -> None:
        """In the commit thread."""
        trouble: JournalUnavailable | None = None
        try:
            self._journal.commit()
        except JournalUnavailable as failed:
            trouble = failed
        self._loop.call_soon_threadsafe(self._synced, trouble)

    def _synced(self, trouble: JournalUnavailable | None) -> None:
        self.is_busy = False
        self._is_unsynced = trouble is not None
        if trouble is None:
            self._on_synced()
        else:
            self.trouble = trouble

    def close(self) -> None:
        for thread in (self._commit_thread, self._write_thread):
            if thread is not None:
                thread.shutdown()
