"""Recovery after any kind of stop: verifies the files and cuts a torn tail.

Invariant: a block that was committed in `disk` is whole on disk, and usually a later block or header records that it is synced
(`synced_block_no`). So damage at or below the highest synced number found anywhere is damage of committed facts: refuse to start, change
nothing, and name the file and offset. Damage above it is a torn tail: cut it. In `disk` nothing of it was acknowledged; in `os` facts of the
last second before a power loss may have been.

The superblock (`journal/superblock.py`) also names a synced block, and the segments that must exist. A missing one refuses the start, unless it is
before the newest checkpoint: that loses at most messages waiting there, and is reported.

Whole blocks above the highest synced number are kept, but may not be on disk: if a sync failed just before the stop, the page cache may
show data that the disk never got. They are rewritten into the segment that the start begins.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from dragoman.journal import format as fmt
from dragoman.journal.disk import DiskFace, opened
from dragoman.journal.recovery import chain, scan
from dragoman.journal.recovery import superblock_checks as checks
from dragoman.journal.recovery.chain import ChainWalk, Damage
from dragoman.journal.recovery.scan import Found, SegmentFile
from dragoman.journal.superblock import SegmentClaim, Superblock
from dragoman.journal.writing.unsynced import Moves, UnsyncedBlock, UnsyncedBlocks


@dataclass
class Recovered:
    """The journal as found: replay starts at `files[start]`, with the checkpoint there if `has_checkpoint`. The `next_` numbers
    are those of the next record, block and segment; `unsynced` are whole blocks that nothing records as synced."""

    files: list[SegmentFile] = field(default_factory=list)
    start: int = 0
    has_checkpoint: bool = False
    broker_id: bytes | None = None
    next_lsn: int = 1
    next_block_no: int = 1
    next_segment_no: int = 1
    synced_lsn: int = 0
    synced_block_no: int = 0
    time_ns: int = 0
    reach: dict[int, chain.Reach] = field(default_factory=dict)
    moves: Moves = field(default_factory=Moves)
    unsynced: UnsyncedBlocks = field(default_factory=UnsyncedBlocks)
    findings: list[checks.Finding] = field(default_factory=list)
    lost: list[SegmentClaim] = field(default_factory=list)
    synced_ends: dict[int, int] = field(default_factory=dict)

    @property
    def gap_block_no(self) -> int:
        """The first block number of the last segment before which a salvage left a gap; 0 without one."""
        headers = [file.header for file in self.files if file.header is not None]
        return max((header.first_block_no for header in headers if header.flags & fmt.SEGMENT_GAP), default=0)


def recover(disk: DiskFace, directory: str, claims: Superblock | None = None) -> Recovered:
    """Verify every block from the newest synced checkpoint on and cut a torn tail. Raise if anything synced, by the files or by `claims`, is damaged."""
    listed = scan.list_segments(disk, directory)
    next_segment_no = listed[-1].segment_no + 1 if listed else 1
    files = chain.valid_segments(_without_interrupted(disk, listed))
    broker_id = checks.broker_id_of(listed, directory, claims)
    found = Recovered(files, broker_id=broker_id, next_segment_no=next_segment_no)
    missing = checks.missing_segments(listed, claims)
    for damage in checks.replaced_segments(listed, claims):
        raise damage.error()
    if not files:
        if claims is not None and claims.segments:
            raise checks.missing_damage(directory, claims.segments[0]).error()
        return found
    if broker_id is None:
        raise Damage(files[0], 0, 1, 1, "the segment header is damaged").error()
    checkpoint = chain.newest_checkpoint(disk, files)
    while True:
        if checkpoint is None and (breach := starts_too_late(files[0])) is not None:
            raise breach.error()
        walk = _prove(disk, found, checkpoint or 0, claims)
        if checkpoint is None or _is_synced(disk, files, checkpoint, walk.synced_block_no):
            break
        # Complete, but maybe never synced: its blocks are not kept, so start from an older checkpoint.
        checkpoint = chain.newest_checkpoint(disk, files, checkpoint)
    found.has_checkpoint = checkpoint is not None
    for claim in missing:
        if checkpoint is None or claim.segment_no >= files[checkpoint].segment_no:
            raise checks.missing_damage(directory, claim).error()
    end = checks.end_damage(disk, files, walk, claims)
    if end is not None:
        if max(found.synced_block_no, synced_after(disk, files, end, broker_id)) >= end.block_no:
            raise end.error()
        found.files = _cut(disk, directory, found, end)
    _drop_headless(disk, found)
    for file in listed:
        if file not in files and disk.exists(file.path):
            disk.unlink(file.path)
            found.findings.append(
                checks.Finding("a segment of which no block counts was deleted", file.path, 0, 0, False)
            )
    _moves_before(disk, found)
    _compare(found, directory, missing, claims)
    return found


def _is_synced(disk: DiskFace, files: list[SegmentFile], checkpoint: int, synced_block_no: int) -> bool:
    end = chain.checkpoint_end(disk, files[checkpoint], chain.block_limit(files, checkpoint))
    return end is not None and end <= synced_block_no


def _prove(disk: DiskFace, found: Recovered, start: int, claims: Superblock | None) -> ChainWalk:
    """Walk from `files[start]` and collect numbers, moves and the blocks that nothing records as synced."""
    found.start, found.moves, found.unsynced = start, Moves(), UnsyncedBlocks()
    walk = ChainWalk(disk, found.files, start)
    tail: deque[tuple[SegmentFile, Found]] = deque()
    synced_block_no = 0
    for file, block in walk:
        header = block.header
        if header.origin:
            found.moves.add(header.origin, header.size, scan.record_position(file, block))
        if header.synced_block_no > synced_block_no:
            synced_block_no = header.synced_block_no
            while tail and tail[0][1].header.block_no <= synced_block_no:
                tail.popleft()
        if not header.flags & fmt.BLOCK_CHECKPOINT:
            tail.append((file, block))
    if claims is not None and claims.synced_block_no >= walk.synced_block_no:
        walk.synced_lsn, walk.synced_block_no = claims.synced_lsn, claims.synced_block_no
    for file, block in tail:
        # The header of a later segment may record a higher synced number than any block.
        if block.header.block_no > walk.synced_block_no and not block.header.flags & (
            fmt.BLOCK_MARK | fmt.BLOCK_FILLER
        ):
            found.unsynced.add(_unsynced_block(file, block))
    found.next_lsn, found.next_block_no, found.time_ns = walk.next_lsn, walk.next_block_no, walk.time_ns
    found.synced_lsn, found.synced_block_no = walk.synced_lsn, walk.synced_block_no
    found.reach = walk.reach
    return walk


def _unsynced_block(file: SegmentFile, block: Found) -> UnsyncedBlock:
    header = block.header
    position = header.origin or scan.record_position(file, block)
    return UnsyncedBlock([block.records], len(block.records), header.facts, header.time_ns, header.first_lsn, position)


def starts_too_late(first: SegmentFile) -> Damage | None:
    """Damage, unless the first segment is the journal's first or follows a gap left by a salvage. For a journal without a checkpoint."""
    header = first.header
    if header is None or header.first_block_no == 1 or header.flags & fmt.SEGMENT_GAP:
        return None
    return Damage(first, 0, 1, 1, "the segments before it are missing and no whole checkpoint stands for them")


def _without_interrupted(disk: DiskFace, files: list[SegmentFile]) -> list[SegmentFile]:
    """Leave out the only segment if its creation was interrupted: no header and no block."""
    if len(files) != 1 or files[0].header is not None:
        return files
    offset = 0
    with opened(disk, files[0].path) as fd:
        while data := disk.read(fd, scan.READ_SIZE + 3, offset):
            if fmt.BLOCK_MAGIC_BYTES in data:
                return files
            offset += scan.READ_SIZE
    return []


def synced_after(disk: DiskFace, files: list[SegmentFile], damage: Damage, broker_id: bytes | None) -> int:
    """The highest synced block number in any whole header or block after the damage."""
    highest = 0
    for file in files:
        if file.segment_no < damage.file.segment_no or broker_id is None:
            continue
        if file.header is not None:
            highest = max(highest, file.header.synced_block_no)
        seed = fmt.block_seed(broker_id, file.segment_no)
        offset = damage.offset if file.segment_no == damage.file.segment_no else fmt.SEGMENT_HEADER_SIZE
        with opened(disk, file.path) as fd:
            while (found := scan.next_whole_block(disk, fd, seed, offset)) is not None:
                highest = max(highest, found.header.synced_block_no)
                walk = scan.SegmentWalk(disk, fd, seed, found.end)
                for more in walk:
                    highest = max(highest, more.header.synced_block_no)
                offset = walk.end
    return highest


def _cut(disk: DiskFace, directory: str, found: Recovered, damage: Damage) -> list[SegmentFile]:
    """Cut the journal off at the damage, later segments first, so that a crash in between leaves the same decision to the next start."""
    files = found.files
    for file in files:
        if file.segment_no >= damage.file.segment_no:
            offset = damage.offset if file is damage.file else 0
            size = _used_size(disk, file, offset)
            found.findings.append(
                checks.Finding(f"a torn tail was cut off: {damage.reason}", file.path, offset, size, False)
            )
    kept = [file for file in files if file.segment_no < damage.file.segment_no]
    for file in reversed(files[len(kept) + 1 :]):
        disk.unlink(file.path)
    if damage.offset <= fmt.SEGMENT_HEADER_SIZE:
        disk.unlink(damage.file.path)
    else:
        with opened(disk, damage.file.path, write=True) as fd:
            disk.truncate(fd, damage.offset)
            disk.sync(fd)
        kept.append(damage.file._replace(size=damage.offset))
    disk.sync_directory(directory)
    return kept


def _used_size(disk: DiskFace, file: SegmentFile, offset: int) -> int:
    """Bytes from `offset` to the last one that is not zero; the rest was only preallocated."""
    end = at = offset
    with opened(disk, file.path) as fd:
        while data := disk.read(fd, scan.READ_SIZE, at):
            used = len(data.rstrip(b"\0"))
            end, at = at + used if used else end, at + len(data)
    return end - offset


def give_back_tail(disk: DiskFace, found: Recovered) -> None:
    """Free the preallocated space after the newest segment's last whole block: on a full disk the start needs it."""
    if not found.files:
        return
    newest = found.files[-1]
    end = found.reach[newest.segment_no].end if newest.segment_no in found.reach else newest.size
    if newest.size > end:
        with opened(disk, newest.path, write=True) as fd:
            disk.truncate(fd, end)


def _drop_headless(disk: DiskFace, found: Recovered) -> None:
    """Delete segments without a header if the segments around them lack no block: such a segment was replaced before it was ever synced.
    Otherwise synced data is damaged: refuse."""
    headless = [index for index, file in enumerate(found.files) if file.header is None]
    if headless and headless[0] < found.start:
        walk = ChainWalk(disk, found.files[: found.start + 1], max(0, headless[0] - 1))
        deque(walk, maxlen=0)
        if walk.damage is not None:
            raise walk.damage.error()
    for index in headless:
        disk.unlink(found.files[index].path)
    found.start -= sum(index < found.start for index in headless)
    found.files = [file for file in found.files if file.header is not None]


def _moves_before(disk: DiskFace, found: Recovered) -> None:
    """Add the moves in older segments, because a checkpoint may refer to records there."""
    for file in found.files[: found.start]:
        if file.header is None or not file.header.flags & fmt.SEGMENT_MOVED:
            continue
        for block in scan.walk_file(disk, file):
            if block.header.origin:
                found.moves.add(block.header.origin, block.header.size, scan.record_position(file, block))


def _compare(found: Recovered, directory: str, missing: list[SegmentClaim], claims: Superblock | None) -> None:
    """Report segments missing before the newest checkpoint, and note up to which offset each segment is known to be synced."""
    for claim in missing:
        damage = checks.missing_damage(directory, claim)
        found.findings.append(checks.Finding(damage.reason, damage.file.path, 0, claim.end, True))
        found.lost.append(claim._replace(is_lost=True))
    ends = {claim.segment_no: claim.end for claim in claims.segments} if claims is not None else {}
    for file in found.files:
        end = ends.get(file.segment_no, 0)
        reach = found.reach.get(file.segment_no)
        if end > file.size and reach is None:
            text = f"the segment is cut off; {end} bytes of it were written"
            found.findings.append(checks.Finding(text, file.path, file.size, end - file.size, True))
        if end == 0 and reach is not None and file is not found.files[-1]:
            end = reach.end
        found.synced_ends[file.segment_no] = end
