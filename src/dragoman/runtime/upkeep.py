"""Keeping the journal in shape while it runs: rolling, checkpoints, dropping old segments, carrying live records out of them.

Segments that the newest synced checkpoint refers to stay until a newer one does without them, and is synced: a carried
record's old place must be readable if the broker dies before that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from dragoman.core.carry import PLACE_SHIFT, Carrier, carriable_counts, live_counts, live_samples
from dragoman.core.damage_check import DamageCheck
from dragoman.core.line_rows import ALL
from dragoman.core.snapshot import Snapshot, estimated_size
from dragoman.errors import JournalUnavailable
from dragoman.limits import (
    CARRY_STEP_COUNT,
    CHECKPOINT_STEP_COUNT,
    DAMAGE_CHECK_READS,
    DAMAGE_CHECK_ROWS,
    LAKE_FULL_PATIENCE_NS,
    LAKE_PATIENCE,
    RETENTION_INTERVAL_NS,
    SEGMENT_SAMPLES_MAX,
    SEGMENT_SIZE_MIN,
    SYNC_INTERVAL_NS,
)
from dragoman.runtime.watchdog import Watchdog

if TYPE_CHECKING:
    from dragoman.core.core import Core
    from dragoman.journal.journal import Journal

log = structlog.get_logger("dragoman.journal")


class Upkeep:
    """All of it on the loop, in small steps, except what waits for the disk."""

    def __init__(
        self,
        core: Core,
        journal: Journal,
        checkpoint_segments: set[int],
        new_thread: Callable[..., threading.Thread] = threading.Thread,
    ) -> None:
        self._core = core
        self._new_thread = new_thread
        self._journal = journal
        # Of every checkpoint that a start may still begin with: its own segment, and those it refers to.
        self._checkpoints = [(journal.checkpoint_no or 0, checkpoint_segments)]
        self._carrier: Carrier | None = None
        self._damage_check: DamageCheck | None = None
        self._carry_list: list[int] = []
        self._next_retention_ns = 0
        self._thread: threading.Thread | None = None
        self._checkpoint_no = journal.checkpoint_no  # the newest synced one when retention was last looked at
        self._full_since_ns = 0  # since when the disk is full; 0: it is not
        self._is_over = False  # over its size, and only a newer checkpoint lets something go
        self._superblock_trouble: str | None = None
        self._is_urgent = False  # roll and checkpoint at once
        self.is_full = False  # live messages alone fill the journal
        self.live_size = 0  # of the files that hold some; not counted, and 0, while the journal is less than half full
        self.watchdog = Watchdog()  # the broker's, once there is one
        self._snapshot: Snapshot | None = None  # a checkpoint under way
        self.checkpoint_step = CHECKPOINT_STEP_COUNT
        self.copied_lsn: int | None = None  # facts up to it are in the lake; None: there is no lake to wait for

    def on_appended(self) -> bool:
        """The log is empty, so the state is exactly what the journal holds: the moment to roll. True when something
        was written that is not synced."""
        journal = self._journal
        if self._snapshot is not None:
            return self.watchdog.run("step of a checkpoint", self._go_on_with_checkpoint, self._snapshot)
        if self._is_over:  # a quiet journal has no next block to vouch for its newest checkpoint
            with suppress(JournalUnavailable):  # told when the next block meets it; tried again
                if journal.confirm_checkpoint():
                    return True
        if not self._is_urgent and not journal.wants_roll():
            return False
        return self.watchdog.run("roll", self._roll)

    def _roll(self) -> bool:
        journal = self._journal
        size = estimated_size(self._core.state)
        wants_checkpoint = self._is_urgent or journal.wants_checkpoint(size)
        self._is_urgent = False
        try:
            if wants_checkpoint:
                self._begin_checkpoint(size)
            else:
                journal.roll()
        except JournalUnavailable as trouble:  # the segment goes on; `Journal.trouble` tells whether new work is taken
            log.warning("cannot begin a new segment", code=trouble.code, trouble=str(trouble))
            return False
        self._next_retention_ns = 0
        return True

    def _begin_checkpoint(self, size: int) -> None:
        """Roll to a segment that starts with a checkpoint: the whole of it where one step is enough."""
        journal = self._journal
        snapshot = Snapshot(self._core.state, journal.place_now if journal.has_moved else None, True)
        is_written = False
        try:
            # On a full disk it may take what room there is, which facts between its parts would take from it: the whole of it, at once.
            chunks = snapshot.step(ALL if journal.is_disk_full else self.checkpoint_step)
            is_written = journal.roll(chunks, 0 if snapshot.is_done else size)
        finally:
            if not is_written:
                snapshot.close()
        if is_written:
            self._keep(snapshot)

    def _go_on_with_checkpoint(self, snapshot: Snapshot) -> bool:
        chunks = snapshot.step(self.checkpoint_step)
        if self._journal.add_checkpoint(chunks, snapshot.is_done):
            self._keep(snapshot)
            return True
        snapshot.close()
        self._snapshot = None
        log.warning("a checkpoint was broken off: the disk failed meanwhile")
        return False

    def _keep(self, snapshot: Snapshot) -> None:
        self._snapshot = None if snapshot.is_done else snapshot
        if snapshot.is_done:
            referred = snapshot.segments()
            self._checkpoints.append((self._journal.segments()[-1].segment_no, referred))
            self._journal.forget_lost(referred)

    @property
    def has_more(self) -> bool:
        """Whether a checkpoint is under way: `on_appended` should be called again soon."""
        return self._snapshot is not None

    def sweep(self, now_ns: int) -> None:
        """Ten times a second."""
        journal = self._journal
        if self._superblock_trouble != journal.superblock_trouble:
            self._superblock_trouble = journal.superblock_trouble
            if self._superblock_trouble is not None:
                log.error("the superblock cannot be written", code="JOURNAL_FAILING", trouble=self._superblock_trouble)
        self._watch_disk(now_ns)
        has_newer = self._checkpoint_no != journal.checkpoint_no
        is_hasty = self._is_over and not has_newer and self._checkpoints[-1][0] > (self._checkpoint_no or 0)
        if self._thread is None or not self._thread.is_alive():
            if is_hasty or journal.wants_upkeep(now_ns):
                self._begin(journal.upkeep, now_ns)
            elif journal.scrub.wants_step(now_ns):
                self._begin(journal.scrub.step, now_ns)
        self._check_damage()
        if self._snapshot is not None:
            pass  # places must not change under it
        elif self._carrier is not None:
            if not self._carrier.step(CARRY_STEP_COUNT):
                self._carrier = None
                self._next_retention_ns = 0
        elif self._carry_list:
            self._carrier = Carrier(self._core.state, self._core.log, self._core.quarantine, self._carry_list.pop(0))
        elif now_ns >= self._next_retention_ns or (self._is_over and has_newer):
            self._next_retention_ns = now_ns + (SYNC_INTERVAL_NS if self._full_since_ns else RETENTION_INTERVAL_NS)
            self._retain(now_ns)

    def _watch_disk(self, now_ns: int) -> None:
        """A disk that runs full is looked at now, not at the next interval."""
        if not self._journal.is_disk_full:
            self._full_since_ns = 0
        elif not self._full_since_ns:
            self._full_since_ns = now_ns
            self._next_retention_ns = 0
            log.warning("the disk is full: settled segments go", size=self._journal.size())

    def _begin(self, work: Callable[[int], None], now_ns: int) -> None:
        """Do something that waits for the disk beside the loop."""
        self._thread = self._new_thread(target=work, args=(now_ns,), name="upkeep", daemon=True)
        self._thread.start()

    def _check_damage(self) -> None:
        """Quarantine what waits in a range that the scrub has found damaged, before a worker asks for it."""
        check = self._damage_check
        if check is not None:
            if check.step(DAMAGE_CHECK_READS, DAMAGE_CHECK_ROWS):
                return
            self._damage_check = None
            if check.count:
                log.error(
                    "waiting messages are quarantined: their records are damaged",
                    code="RECORD_DAMAGED",
                    count=check.count,
                )
        if self._journal.scrub.found:
            damage = self._journal.scrub.found.popleft()
            where = {"file": damage.path, "offset": damage.begin, "bytes": damage.end - damage.begin}
            log.error("the journal is damaged", code="JOURNAL_DAMAGED", **where, reason=damage.reason)
            base = damage.segment_no << PLACE_SHIFT
            self._damage_check = DamageCheck(
                self._core.state, self._core.quarantine, base + damage.begin, base + damage.end
            )

    def _retain(self, now_ns: int) -> None:
        journal = self._journal
        segments = journal.segments()
        bound = journal.size_bound()
        self._checkpoint_no = journal.checkpoint_no
        # Looking through ten million waiting messages takes half a second: not while there is nothing to gain.
        if journal.size() * 2 <= bound and not journal.settings.age_max_s and not self._full_since_ns:
            self.is_full = self._is_over = False
            self.live_size = 0
            return
        counts = live_counts(self._core.state)
        synced_no = self._checkpoint_no or 0
        self._checkpoints = [pair for pair in self._checkpoints if pair[0] >= synced_no] or self._checkpoints[-1:]
        needed = set(counts).union(*(referred for _, referred in self._checkpoints))
        dropped = journal.droppable(needed, now_ns, self._copied_lsn(now_ns), bound)
        if dropped:
            freed = journal.drop(dropped)
            log.info("segments dropped", count=len(dropped), bytes=freed)
        carriable = carriable_counts(self._core.state, counts)
        samples = live_samples(self._core.state, SEGMENT_SAMPLES_MAX)
        sizes = {
            segment_no: carriable.get(segment_no, 0) * sum(map(journal.record_size, places)) // len(places)
            for segment_no, places in samples.items()
        }
        self._carry_list = journal.worth_carrying(sizes, bound)
        was_full = self.is_full
        size_max = journal.settings.size_max
        self._is_over = (journal.size() > bound or self._full_since_ns > 0) and not self._carry_list and not dropped
        self.live_size = sum(s.size for s in journal.segments() if not s.sealed or s.segment_no in counts)
        self.is_full = self._is_over and self.live_size > size_max
        # What only an older checkpoint still refers to goes with a newer one; a quiet journal rolls to none by itself.
        newest_no, referred = self._checkpoints[-1]
        self._is_urgent = self._is_over and any(
            (s.sealed or (self._full_since_ns and s.size > SEGMENT_SIZE_MIN))
            and s.segment_no not in counts
            and (s.segment_no >= newest_no or s.segment_no in referred)
            for s in segments
        )
        if self.is_full and not was_full:
            log.error("the journal is full: new work is refused", code="JOURNAL_FULL", size=journal.size())

    def _copied_lsn(self, now_ns: int) -> int | None:
        """A lake that cannot be written may cost the journal's size once more, not the disk, and not the work of a full one for long."""
        journal = self._journal
        is_over = journal.size() > LAKE_PATIENCE * journal.settings.size_max
        is_out_of_patience = self._full_since_ns and now_ns - self._full_since_ns >= LAKE_FULL_PATIENCE_NS
        if self.copied_lsn is not None and (is_over or is_out_of_patience):
            log.error("segments go before the lake has them", code="LAKE_BEHIND", sealed_lsn=self.copied_lsn)
            return None
        return self.copied_lsn

    def close(self) -> None:
        if self._thread is not None:
            self._thread.join()
