"""Reads every byte of a journal and reports what is wrong with it. Changes nothing; may run while a broker uses the journal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dragoman.errors import JournalMisplaced
from dragoman.journal.disk import REAL_DISK, DiskFace
from dragoman.journal.recovery import superblock_checks as checks
from dragoman.journal.recovery.chain import ChainWalk, Damage, newest_checkpoint, runs_of, valid_segments
from dragoman.journal.recovery.recover import starts_too_late, synced_after
from dragoman.journal.recovery.scan import SegmentFile, list_segments
from dragoman.journal.superblock import Superblock, SuperblockCopies

# Called with (bytes done, total bytes).
Progress = Callable[[int, int], None]


def no_progress(done: int, total: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Flaw:
    """One position at which the journal is not what was written. `is_torn_tail`: nothing there was ever synced, so a start cuts
    it off by itself (while a broker is running it may be the block being written)."""

    file: str
    offset: int
    lsn: int
    reason: str
    is_torn_tail: bool


@dataclass
class Report:
    """Result of `verify`; `flaws` in order, at most one per unbroken run of segments, plus missing or replaced segments."""

    broker_id: bytes | None
    segments: int = 0
    blocks: int = 0
    facts: int = 0
    size: int = 0
    first_lsn: int = 0
    last_lsn: int = 0
    has_checkpoint: bool = False
    flaws: list[Flaw] = field(default_factory=list)
    # State of the last stop according to the superblock: clean, running (or killed), none, damaged.
    superblock: str = "none"

    @property
    def is_sound(self) -> bool:
        """Whether a broker would start on it and lose nothing."""
        return all(flaw.is_torn_tail for flaw in self.flaws)

    def add(self, damage: Damage, is_torn_tail: bool = False) -> None:
        self.flaws.append(Flaw(damage.file.path, damage.offset, damage.lsn, damage.reason, is_torn_tail))


def verify(directory: str, progress: Progress = no_progress, disk: DiskFace = REAL_DISK) -> Report:
    """Verify every block of the journal in `directory`. Raises for a newer format, naming both versions."""
    # Read first: what the superblock claims before the segments are listed must be among them, even if a broker is running.
    copies = SuperblockCopies(disk, directory) if disk.exists(directory) else None
    claims = copies.newest if copies is not None else None
    files = list_segments(disk, directory)
    if not files and (claims is None or not claims.segments):
        raise JournalMisplaced(f"{directory} holds no journal")
    report = Report(checks.broker_id_of(files, directory, claims), len(files), size=sum(file.size for file in files))
    if claims is not None:
        report.superblock = "clean" if claims.is_clean else "running"
    elif copies is not None and copies.is_rebuilt:
        report.superblock = "damaged"
    _compare(report, disk, directory, files, claims)
    files = valid_segments(files)
    if not files:
        return report
    checkpoint = newest_checkpoint(disk, files)
    report.has_checkpoint = checkpoint is not None
    if checkpoint is None and (late := starts_too_late(files[0])) is not None:
        report.add(late)
    done = 0
    for run in runs_of(files, checkpoint or 0):
        walk = ChainWalk(disk, run)
        last_file = run[0]
        for file, found in walk:
            if file is not last_file:
                done, last_file = done + last_file.size, file
            progress(done + found.end, report.size)
            report.blocks += 1
            report.facts += found.header.facts
            if found.header.facts:
                report.first_lsn = report.first_lsn or found.header.first_lsn
                report.last_lsn = found.header.first_lsn + found.header.facts - 1
        done += last_file.size
        is_last = run[-1] is files[-1]
        damage = checks.end_damage(disk, files, walk, claims) if is_last else walk.damage
        if is_last and claims is not None:
            walk.synced_block_no = max(walk.synced_block_no, claims.synced_block_no)
        if damage is not None:
            synced_block_no = max(walk.synced_block_no, synced_after(disk, run, damage, report.broker_id))
            report.add(damage, is_last and report.broker_id is not None and synced_block_no < damage.block_no)
    progress(report.size, report.size)
    return report


def _compare(
    report: Report, disk: DiskFace, directory: str, files: list[SegmentFile], claims: Superblock | None
) -> None:
    """Add a flaw for each segment that the superblock names and that is missing or another file."""
    missing = checks.missing_segments(files, claims)
    if missing:  # a broker may have dropped it: the superblock is updated before the file is deleted
        still_named = checks.missing_segments(files, SuperblockCopies(disk, directory).newest)
        missing = [claim for claim in missing if claim.segment_no in {claim.segment_no for claim in still_named}]
    replaced = checks.replaced_segments(files, claims)
    for damage in [*(checks.missing_damage(directory, claim) for claim in missing), *replaced]:
        report.add(damage)
