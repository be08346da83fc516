"""Copies the intact blocks of a damaged journal into a new journal.

Every whole block keeps its segment, its offset and its lsn, so that positions in checkpoints stay valid. A filler block of the same
length replaces damaged bytes; it allows the numbers of the next block to jump. The source is only read.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from dragoman.errors import JournalMisplaced
from dragoman.journal import format as fmt
from dragoman.journal.disk import REAL_DISK, DiskFace, opened, refuse_inside
from dragoman.journal.format import SegmentHeader, block_seed
from dragoman.journal.recovery import superblock_checks as checks
from dragoman.journal.recovery.chain import NO_LIMIT, block_limit, newest_checkpoint, valid_segments
from dragoman.journal.recovery.scan import Found, SegmentFile, SegmentWalk, block_at, list_segments, next_whole_block
from dragoman.journal.superblock import SegmentClaim, Superblock, SuperblockCopies
from dragoman.journal.tools.verify import Progress, no_progress


@dataclass(frozen=True, slots=True)
class Loss:
    """Bytes that could not be saved and the facts that were in them; `last_lsn` None: nothing after them shows how many."""

    file: str
    offset: int
    size: int
    first_lsn: int
    last_lsn: int | None


@dataclass
class Salvage:
    blocks: int = 0
    facts: int = 0
    losses: list[Loss] = field(default_factory=list)


def salvage(directory: str, target: str, progress: Progress = no_progress, disk: DiskFace = REAL_DISK) -> Salvage:
    """Copy every intact block of `directory` to a new journal in `target` and report exactly what was lost."""
    refuse_inside(target, directory)
    if disk.exists(target) and disk.list_names(target):
        raise JournalMisplaced(f"{target} is not empty; salvage writes into a fresh directory")
    claims = SuperblockCopies(disk, directory).newest if disk.exists(directory) else None
    files = list_segments(disk, directory)
    if not files:
        raise JournalMisplaced(f"{directory} holds no journal")
    broker_id = checks.broker_id_of(files, directory, claims)
    if broker_id is None:
        raise JournalMisplaced(f"no segment in {directory} has a whole header; nothing can be told from anything")
    # A file that replaced another one counts as missing: its blocks belong to another history.
    foreign = {damage.file.segment_no for damage in checks.replaced_segments(files, claims)}
    files = [file for file in files if file.segment_no not in foreign]
    if not files:
        raise JournalMisplaced(f"{directory} holds no segment that its superblock names; there is nothing to save")
    disk.make_directory(target)
    missing = checks.missing_segments(files, claims)
    first_lsns = {claim.segment_no: claim.first_lsn for claim in claims.segments} if claims is not None else {}
    first_lsns.setdefault(1, 1)
    files = valid_segments(
        [file if file.header is not None else _with_header(disk, file, broker_id, first_lsns) for file in files]
    )
    result = _Salvager(disk, files, target, broker_id, progress).run(directory, missing, claims)
    checks.write_superblock(disk, target)
    return result


def _with_header(disk: DiskFace, file: SegmentFile, broker_id: bytes, first_lsns: dict[int, int]) -> SegmentFile:
    """A segment whose header is damaged, with a header made from its first whole block; unchanged if it has none. `first_lsns`: the known first
    lsn of segments, so that the loss before that block is known."""
    seed = block_seed(broker_id, file.segment_no)
    with opened(disk, file.path) as fd:
        offsets = _in_order(disk, fd, seed, fmt.SEGMENT_HEADER_SIZE, 0, NO_LIMIT)
        first = block_at(disk, fd, seed, offsets[0]) if offsets else None
    if first is None:
        return file
    flags = (
        fmt.SEGMENT_GAP
        | fmt.SEGMENT_MOVED
        | (fmt.SEGMENT_CHECKPOINT if first.header.flags & fmt.BLOCK_CHECKPOINT_BEGIN else 0)
    )
    first_lsn = min(first_lsns.get(file.segment_no, first.header.first_lsn), first.header.first_lsn)
    first_block_no = first.header.block_no
    times = (0, 0, first.header.time_ns)
    header = SegmentHeader(fmt.FORMAT_VERSION, flags, file.segment_no, first_lsn, first_block_no, *times, broker_id)
    return file._replace(header=header)


def _in_order(disk: DiskFace, fd: int, seed: int, offset: int, rank_min: int, limit: int) -> list[int]:
    """Offsets of the blocks of a segment from `offset` on, with a rank of at least `rank_min` and a number below `limit`. A page that a disk
    wrote to the wrong offset contains whole blocks too: the longest sequence of rising numbers is the segment's own, and of two equal blocks the
    later one, because the other one overwrote something."""
    offsets, ends, ranks = array("q"), array("q"), array("q")
    at: int | None = offset
    while at is not None:
        walk = SegmentWalk(disk, fd, seed, at)
        for found in walk:
            if (rank := _rank(found)) >= rank_min and found.header.block_no < limit:
                offsets.append(found.offset)
                ends.append(found.end)
                ranks.append(rank)
        further = next_whole_block(disk, fd, seed, walk.end, rank_min // 2)
        at = further.offset if further is not None else None
    kept, end = [], offset
    for index in _longest_rising(ranks):
        # A gap between two blocks must be at least one block header long: a nearer block is a copy.
        if offsets[index] == end or offsets[index] - end >= fmt.BLOCK_HEADER_SIZE:
            kept.append(offsets[index])
            end = ends[index]
    return kept


def _rank(found: Found) -> int:
    """A number that rises along a segment, even if the block after a filler has the filler's number."""
    return 2 * found.header.block_no + (found.header.flags & fmt.BLOCK_FILLER == 0)


def _longest_rising(numbers: array[int]) -> list[int]:
    """The indexes of the longest rising sequence of numbers; of equally long ones, the last."""
    lowest: list[int] = []  # by length, the lowest number that ends a sequence
    indexes, before = array("q"), array("q")
    for index, number in enumerate(numbers):
        size = bisect_left(lowest, number)
        before.append(indexes[size - 1] if size else -1)
        lowest[size : size + 1] = [number]
        indexes[size : size + 1] = array("q", [index])
    rising, index = [], indexes[-1] if indexes else -1
    while index >= 0:
        rising.append(index)
        index = before[index]
    return rising[::-1]


class _Salvager:
    def __init__(
        self, disk: DiskFace, files: list[SegmentFile], target: str, broker_id: bytes, progress: Progress
    ) -> None:
        self._disk, self._files, self._target, self._broker_id = disk, files, target, broker_id
        self._progress = progress
        self._total, self._done = sum(file.size for file in files), 0
        self._result = Salvage()
        self._checkpoint_no = files[newest_checkpoint(disk, files) or 0].segment_no
        # The (lsn, number) of the next block if nothing is missing; None before the first whole segment header.
        self._next: tuple[int, int] | None = None
        self._time_ns = 0
        self._directory = ""
        self._missing: list[SegmentClaim] = []
        # A loss at the end of a segment; the next block shows how much was lost.
        self._open_loss: Loss | None = None

    def run(self, directory: str, missing: list[SegmentClaim], claims: Superblock | None) -> Salvage:
        self._directory, self._missing = directory, missing
        newest = max((file.segment_no for file in self._files if file.header is not None), default=0)
        for index, file in enumerate(self._files):
            self._segment(file, block_limit(self._files, index), is_last=file.segment_no == newest)
            self._done += file.size
        self._end(claims.synced_lsn if claims is not None else 0)
        self._disk.sync_directory(self._target)
        self._progress(self._total, self._total)
        return self._result

    def _segment(self, file: SegmentFile, limit: int, is_last: bool) -> None:
        if file.header is None:
            self._lose(file, 0, file.size, None)
            return
        seed, copy = block_seed(self._broker_id, file.segment_no), f"{self._target}/{fmt.segment_name(file.segment_no)}"
        with opened(self._disk, file.path) as fd, opened(self._disk, copy, create=True) as out:
            self._disk.write(out, [fmt.pack_segment_header(self._begin(file, file.header))], 0)
            self._copy_blocks(file, fd, out, seed, limit, is_last)
            if is_last:
                self._mark_synced(out, seed)
            self._disk.sync(out)

    def _begin(self, file: SegmentFile, header: SegmentHeader) -> SegmentHeader:
        at = (header.first_lsn, header.first_block_no)
        has_missing = self._lose_missing(file.segment_no, header.first_lsn - 1)
        if self._next is None or at[1] > self._next[1] or at[0] > self._next[0]:
            header = header._replace(flags=header.flags | fmt.SEGMENT_GAP)
            self._gap_before(file, header.first_lsn, has_missing)
            self._next = at
        return header

    def _lose_missing(self, segment_no: int, last_lsn: int | None) -> bool:
        """Record the missing segments before this one as losses; `last_lsn` is the last fact of the last of them."""
        lost = [claim for claim in self._missing if claim.segment_no < segment_no]
        self._missing = self._missing[len(lost) :]
        if lost and self._open_loss is not None:
            self._close_loss(lost[0].first_lsn)
        for claim, after in zip_longest(lost, lost[1:]):
            path = f"{self._directory}/{fmt.segment_name(claim.segment_no)}"
            last = after.first_lsn - 1 if after is not None else last_lsn
            self._result.losses.append(Loss(path, 0, claim.end, claim.first_lsn, last))
        return bool(lost)

    def _end(self, synced_lsn: int) -> None:
        """Record as lost what the superblock names after the last block found."""
        next_lsn = self._next[0] if self._next is not None else 1
        if self._missing:
            self._lose_missing(self._missing[-1].segment_no + 1, synced_lsn)
        elif self._open_loss is not None:
            loss = self._open_loss
            self._result.losses.append(loss if synced_lsn < loss.first_lsn else replace(loss, last_lsn=synced_lsn))
        elif synced_lsn >= next_lsn:
            newest = self._files[-1]
            self._result.losses.append(Loss(newest.path, newest.size, 0, next_lsn, synced_lsn))

    def _gap_before(self, file: SegmentFile, first_lsn: int, has_missing: bool) -> None:
        """Handle a jump of the numbers: it ends an open loss, or segments before the checkpoint were dropped; anywhere else a file is missing."""
        if self._open_loss is not None:
            self._close_loss(first_lsn)
        elif has_missing:
            return
        elif self._next is not None and file.segment_no > self._checkpoint_no:
            self._result.losses.append(Loss(file.path, 0, 0, self._next[0], first_lsn - 1))

    def _copy_blocks(self, file: SegmentFile, fd: int, out: int, seed: int, limit: int, is_last: bool) -> None:
        assert file.header is not None, "a segment without a header is lost"
        expected, at = file.header.first_block_no, fmt.SEGMENT_HEADER_SIZE
        rank_min = 2 * self._next[1] if self._next is not None else 0
        walk = SegmentWalk(self._disk, fd, seed)
        for found in walk:
            if found.header.block_no >= limit:
                return
            if found.header.block_no != expected:
                break
            self._take(out, found)
            expected, at, rank_min = expected + 1, found.end, _rank(found) + 1
        # Zeros are the end of a segment, unless more blocks follow them.
        for offset in _in_order(self._disk, fd, seed, at, rank_min, limit):
            later = block_at(self._disk, fd, seed, offset)
            if later is None:
                continue  # it was whole before; the read failed now
            if offset > at:
                self._lose(file, at, offset - at, later.header.first_lsn)
                self._fill(out, seed, at, offset - at)
            self._take(out, later)
            at = later.end
        self._lose_end(file, fd, seed, at, limit, is_last)

    def _lose_end(self, file: SegmentFile, fd: int, seed: int, at: int, limit: int, is_last: bool) -> None:
        """Record as lost what follows the last valid block, unless the next segment has it."""
        walk = SegmentWalk(self._disk, fd, seed, at)
        later = next(iter(walk), None)
        next_block_no = self._next[1] if self._next is not None else 0
        if walk.fault is None and next_block_no >= limit:
            return
        if later is not None and later.header.block_no >= limit:
            return
        if later is not None or walk.fault is not None or not is_last:
            self._lose(file, at, max(0, file.size - at), None)

    def _take(self, out: int, found: Found) -> None:
        self._progress(self._done + found.end, self._total)
        self._close_loss(found.header.first_lsn)
        header = found.header
        self._disk.write(out, [fmt.repack_block_header(header), found.records], found.offset)
        self._next = (header.first_lsn + header.facts, header.block_no + 1)
        self._time_ns = max(self._time_ns, header.time_ns)
        self._result.blocks += 1
        self._result.facts += header.facts

    def _fill(self, out: int, seed: int, offset: int, size: int) -> None:
        """Write a filler block over exactly the damaged bytes."""
        assert size >= fmt.BLOCK_HEADER_SIZE, "between two whole blocks lies at least a whole one"
        zeros = bytes(size - fmt.BLOCK_HEADER_SIZE)
        lsn, block_no = self._next or (1, 1)
        head = fmt.pack_block_header(seed, [zeros], len(zeros), 0, fmt.BLOCK_FILLER, block_no, lsn, 0, 0, 0, 0)
        self._disk.write(out, [head, zeros], offset)

    def _mark_synced(self, out: int, seed: int) -> None:
        """Write a mark after the last block: everything before it is synced. Otherwise a start would take the tail for one that a crash left, and
        rewrite it without its fillers."""
        assert self._next is not None, "a segment with a header was begun"
        lsn, block_no = self._next
        numbers = (block_no, lsn, lsn - 1, block_no - 1)
        head = fmt.pack_block_header(seed, [], 0, 0, fmt.BLOCK_MARK, *numbers, self._time_ns, 0)
        self._disk.write(out, [head], self._disk.size(out))

    def _lose(self, file: SegmentFile, offset: int, size: int, next_lsn: int | None) -> None:
        first_lsn = self._next[0] if self._next is not None else 1
        loss = Loss(file.path, offset, size, first_lsn, None if next_lsn is None else next_lsn - 1)
        if next_lsn is None:
            self._open_loss = self._open_loss or loss
        else:
            self._result.losses.append(loss)

    def _close_loss(self, next_lsn: int) -> None:
        loss, self._open_loss = self._open_loss, None
        if loss is not None and (loss.size or next_lsn > loss.first_lsn):
            self._result.losses.append(Loss(loss.file, loss.offset, loss.size, loss.first_lsn, next_lsn - 1))
