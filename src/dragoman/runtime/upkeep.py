"""Journal maintenance while the broker runs: rolls, checkpoints, deleting old segments, carrying live records out of them.

Segments that the newest synced checkpoint refers to stay until a newer checkpoint that does not refer to them is synced: the old
copy of a carried record must be readable if the broker dies before that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from dragoman import limits
from dragoman.core.storage.line_rows import ALL
from dragoman.core.storage.live_walk import Carrier, DamageCheck, LiveCount
from dragoman.core.storage.snapshot import Snapshot, estimated_size
from dragoman.errors import JournalUnavailable
from dragoman.model.message import POSITION_SHIFT
from dragoman.runtime.watchdog import Watchdog

if TYPE_CHECKING:
    from dragoman.core.core import Core
    from dragoman.journal.journal import Journal

log = structlog.get_logger("dragoman.journal")


class Upkeep:
    """Runs on the event loop in small steps, except what waits for the disk."""

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
        # For each checkpoint from which a start may still begin: its own segment, and those it refers to.
        self._checkpoints = [(journal.checkpoint_no or 0, checkpoint_segments)]
        self._carrier: Carrier | None = None
        self._damage_check: DamageCheck | None = None
        self._carry_list: list[int] = []
        self._count: LiveCount | None = None  # count in progress; retention decides when it is complete
        self._count_from = 0  # the segment that was being written when the count began
        self._next_retention_ns = 0
        self._upkeep_thread: threading.Thread | None = None
        self._checkpoint_no = journal.checkpoint_no  # the newest synced one at the last retention check
        self._full_since_ns = 0  # since when the disk is full; 0: it is not full
        self._is_over = False  # over its maximum size, and only a newer checkpoint allows deletion
        self._superblock_trouble: str | None = None
        self._is_urgent = False  # roll and write a checkpoint at the next opportunity
        self.is_full = False  # live messages alone exceed the maximum size
        self.live_size = 0  # bytes of the segments with live records; 0 while the journal is less than half full, when it is not counted
        self.watchdog = Watchdog()  # replaced by the broker's
        self._snapshot: Snapshot | None = None  # a checkpoint in progress
        self.checkpoint_step = limits.CHECKPOINT_STEP_COUNT
        self.live_step = limits.LIVE_STEP_COUNT
        self.carry_size = limits.CARRY_STEP_SIZE
        self.copied_lsn: int | None = None  # facts up to this lsn are in the lake; None: there is no lake to wait for

    def on_appended(self) -> bool:
        """Called when the log is empty, so that the state matches the journal exactly: roll if necessary. Return whether something
        was written that is not synced."""
        journal = self._journal
        if self._snapshot is not None:
            return self.watchdog.run("step of a checkpoint", self._go_on_with_checkpoint, self._snapshot)
        if self._is_over:  # without new blocks, nothing confirms the newest checkpoint
            with suppress(JournalUnavailable):  # reported when the next block fails; retried
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
        except JournalUnavailable as trouble:  # the old segment stays; see `Journal.trouble`
            log.warning("cannot begin a new segment", code=trouble.code, trouble=str(trouble))
            return False
        self._next_retention_ns = 0
        return True

    def _begin_checkpoint(self, size: int) -> None:
        """Roll to a segment that starts with a checkpoint, complete if one step is enough."""
        journal = self._journal
        snapshot = Snapshot(self._core.state, journal.position_now if journal.has_moved else None, True)
        is_written = False
        try:
            # On a full disk the checkpoint may use the remaining space, and facts between its parts would take that: write it in one step.
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
        """Whether a checkpoint is in progress: `on_appended` should be called again soon."""
        return self._snapshot is not None

    def sweep(self, now_ns: int) -> None:
        """Periodic work, about ten times a second."""
        journal = self._journal
        if self._superblock_trouble != journal.superblock_trouble:
            self._superblock_trouble = journal.superblock_trouble
            if self._superblock_trouble is not None:
                log.error("the superblock cannot be written", code="JOURNAL_FAILING", trouble=self._superblock_trouble)
        self._watch_disk(now_ns)
        has_newer = self._checkpoint_no != journal.checkpoint_no
        is_hasty = self._is_over and not has_newer and self._checkpoints[-1][0] > (self._checkpoint_no or 0)
        if self._upkeep_thread is None or not self._upkeep_thread.is_alive():
            if is_hasty or journal.wants_upkeep(now_ns):
                self._begin(journal.upkeep, now_ns)
            elif journal.scrub.wants_step(now_ns):
                self._begin(journal.scrub.step, now_ns)
        self._check_damage()
        if self._snapshot is not None:
            pass  # records must not move during a checkpoint
        elif self._carrier is not None:
            if not self._carrier.step(limits.CARRY_STEP_COUNT, self.carry_size, self.live_step):
                self._carrier = None
                self._next_retention_ns = 0
        elif self._carry_list:
            self._carrier = Carrier(self._core.state, self._core.log, self._core.quarantine, self._carry_list.pop(0))
        elif self._count is not None:
            self._go_on_counting(self._count, now_ns)
        elif now_ns >= self._next_retention_ns or (self._is_over and has_newer):
            self._next_retention_ns = now_ns + (
                limits.SYNC_INTERVAL_NS if self._full_since_ns else limits.RETENTION_INTERVAL_NS
            )
            self._begin_retention(now_ns)

    def _watch_disk(self, now_ns: int) -> None:
        """Run retention as soon as the disk is full, not at the next interval."""
        if not self._journal.is_disk_full:
            self._full_since_ns = 0
        elif not self._full_since_ns:
            self._full_since_ns = now_ns
            self._next_retention_ns = 0
            log.warning("the disk is full: settled segments go", size=self._journal.size())

    def _begin(self, work: Callable[[int], None], now_ns: int) -> None:
        """Run work that waits for the disk in a thread."""
        self._upkeep_thread = self._new_thread(target=work, args=(now_ns,), name="upkeep", daemon=True)
        self._upkeep_thread.start()

    def _check_damage(self) -> None:
        """Quarantine waiting messages in a range that the scrub found damaged, before a worker requests them."""
        check = self._damage_check
        if check is not None:
            if check.step(limits.DAMAGE_CHECK_READS, limits.DAMAGE_CHECK_ROWS):
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
            base = damage.segment_no << POSITION_SHIFT
            self._damage_check = DamageCheck(
                self._core.state, self._core.quarantine, base + damage.begin, base + damage.end
            )

    def _begin_retention(self, now_ns: int) -> None:
        journal = self._journal
        self._checkpoint_no = journal.checkpoint_no
        # Walking ten million waiting messages takes half a second: skip it while nothing could be deleted.
        is_small = journal.size() * 2 <= journal.size_bound()
        if is_small and not journal.settings.age_max_s and not self._full_since_ns:
            self.is_full = self._is_over = False
            self.live_size = 0
            return
        self._count = LiveCount(self._core.state)
        self._count_from = max((s.segment_no for s in journal.segments()), default=0)
        if self._core.log.base_position:  # it may have been set before a failed sync began the newest segment
            self._count_from = min(self._count_from, self._core.log.base_position >> POSITION_SHIFT)
        self._go_on_counting(self._count, now_ns)

    def _go_on_counting(self, count: LiveCount, now_ns: int) -> None:
        if not count.walk(self.live_step):
            self._count = None
            self._retain(count, now_ns)

    def _retain(self, count: LiveCount, now_ns: int) -> None:
        """Delete what nothing needs. A count that took several sweeps can only be too high, except for records written since it began: so the segment
        that was being written then, and all later ones, count as used (core/storage/live_walk explains why nothing else can be missing)."""
        journal = self._journal
        segments = journal.segments()
        bound = journal.size_bound()
        self._checkpoint_no = journal.checkpoint_no
        used = set(count.counts).union(s.segment_no for s in segments if s.segment_no >= self._count_from)
        synced_no = self._checkpoint_no or 0
        self._checkpoints = [pair for pair in self._checkpoints if pair[0] >= synced_no] or self._checkpoints[-1:]
        needed = used.union(*(referred for _, referred in self._checkpoints))
        dropped = journal.droppable(needed, now_ns, self._copied_lsn(now_ns), bound)
        if dropped:
            freed = journal.drop(dropped)
            log.info("segments dropped", count=len(dropped), bytes=freed)
        sizes = {
            segment_no: count.carriable(segment_no) * sum(map(journal.record_size, positions)) // len(positions)
            for segment_no, positions in count.samples.items()
        }
        self._carry_list = journal.worth_carrying(sizes, bound)
        was_full = self.is_full
        size_max = journal.settings.size_max
        self._is_over = (journal.size() > bound or self._full_since_ns > 0) and not self._carry_list and not dropped
        self.live_size = sum(s.size for s in journal.segments() if not s.sealed or s.segment_no in used)
        self.is_full = self._is_over and self.live_size > size_max
        # Segments that only an older checkpoint refers to can be deleted after a newer one; a quiet journal does not roll to one by itself.
        newest_no, referred = self._checkpoints[-1]
        self._is_urgent = self._is_over and any(
            (s.sealed or (self._full_since_ns and s.size > limits.SEGMENT_SIZE_MIN))
            and s.segment_no not in count.counts
            and (s.segment_no >= newest_no or s.segment_no in referred)
            for s in segments
        )
        if self.is_full and not was_full:
            log.error("the journal is full: new work is refused", code="JOURNAL_FULL", size=journal.size())

    def _copied_lsn(self, now_ns: int) -> int | None:
        """The lsn that retention waits for. A lake that cannot be written may cost the journal's size once more, but not fill the disk, nor
        keep a full disk from accepting work for long."""
        journal = self._journal
        is_over = journal.size() > limits.LAKE_PATIENCE * journal.settings.size_max
        is_out_of_patience = self._full_since_ns and now_ns - self._full_since_ns >= limits.LAKE_FULL_PATIENCE_NS
        if self.copied_lsn is not None and (is_over or is_out_of_patience):
            log.error("segments go before the lake has them", code="LAKE_BEHIND", sealed_lsn=self.copied_lsn)
            return None
        return self.copied_lsn

    def close(self) -> None:
        if self._upkeep_thread is not None:
            self._upkeep_thread.join()
