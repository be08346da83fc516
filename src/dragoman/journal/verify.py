"""Reading every byte of a journal and saying what is wrong with it. Changes nothing; may run beside a living broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dragoman.errors import JournalMisplaced
from dragoman.journal.chain import ChainWalk, Damage, counting, newest_checkpoint
from dragoman.journal.disk import Disk, DiskFace
from dragoman.journal.recovery import broker_id_of, starts_too_late, synced_behind
from dragoman.journal.scan import SegmentFile, list_segments

# Called with (bytes done, bytes in all).
Progress = Callable[[int, int], None]


def no_progress(done: int, total: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Flaw:
    """One place where the journal is not what was written. `is_torn_tail`: nothing there was ever synced, so a start cuts
    it off by itself (and on a living journal it is just the block being written)."""

    file: str
    offset: int
    lsn: int
    reason: str
    is_torn_tail: bool


@dataclass
class Report:
    """What `verify` found; `flaws` in order, at most one per unbroken run of segments."""

    broker_id: bytes | None
    segments: int = 0
    blocks: int = 0
    facts: int = 0
    size: int = 0
    first_lsn: int = 0
    last_lsn: int = 0
    has_checkpoint: bool = False
    flaws: list[Flaw] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """True when a broker would start on it and lose nothing."""
        return all(flaw.is_torn_tail for flaw in self.flaws)


def verify(directory: str, progress: Progress = no_progress, disk: DiskFace | None = None) -> Report:
    """Prove every block of the journal in `directory`; a newer format is refused with both versions named."""
    disk = disk if disk is not None else Disk()
    files = list_segments(disk, directory)
    if not files:
        raise JournalMisplaced(f"{directory} holds no journal")
    report = Report(broker_id_of(files, directory), segments=len(files), size=sum(file.size for file in files))
    files = counting(files)
    checkpoint = newest_checkpoint(disk, files)
    report.has_checkpoint = checkpoint is not None
    if checkpoint is None and (late := starts_too_late(files[0])) is not None:
        report.flaws.append(Flaw(late.file.path, late.offset, late.lsn, late.reason, False))
    done = 0
    for run in unbroken_runs(files, checkpoint or 0):
        walk = ChainWalk(disk, run)
        last_file = run[0]
        for file, found in walk:
            if file is not last_file:
                done, last_file = done + last_file.size, file
            progress(done + found.end, report.size)
            _count(report, found.header.first_lsn, found.header.facts)
        done += last_file.size
        if walk.damage is not None:
            report.flaws.append(_flaw(disk, run, walk, walk.damage, report.broker_id, run[-1] is files[-1]))
    progress(report.size, report.size)
    return report


def unbroken_runs(files: list[SegmentFile], checkpoint: int) -> list[list[SegmentFile]]:
    """Segments that must follow each other without a hole. Before the checkpoint any may have been dropped, so a missing
    number begins a new run there."""
    runs: list[list[SegmentFile]] = []
    for index, file in enumerate(files):
        is_next = index > 0 and files[index - 1].segment_no + 1 == file.segment_no
        if runs and (is_next or index > checkpoint):
            runs[-1].append(file)
        else:
            runs.append([file])
    return runs


def _count(report: Report, first_lsn: int, facts: int) -> None:
    report.blocks += 1
    report.facts += facts
    if facts:
        report.first_lsn = report.first_lsn or first_lsn
        report.last_lsn = first_lsn + facts - 1


def _flaw(
    disk: DiskFace, run: list[SegmentFile], walk: ChainWalk, damage: Damage, broker_id: bytes | None, is_last: bool
) -> Flaw:
    synced_block_no = max(walk.synced_block_no, synced_behind(disk, run, damage, broker_id))
    is_torn_tail = is_last and broker_id is not None and synced_block_no < damage.block_no
    return Flaw(damage.file.path, damage.offset, damage.lsn, damage.reason, is_torn_tail)
