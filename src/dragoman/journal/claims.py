"""A journal compared with its superblock: what must be there and is not.

A start, `verify` and `salvage` all ask here. Each decides for itself what a difference means to it. Nothing is changed but
a superblock of which no copy is whole: it is removed, to be made anew.
"""

from __future__ import annotations

from typing import NamedTuple

from dragoman.errors import JournalMisplaced
from dragoman.journal.chain import ChainWalk, Damage, counting
from dragoman.journal.disk import DiskFace
from dragoman.journal.format import block_seed, segment_name
from dragoman.journal.scan import SegmentFile, block_at, list_segments, next_whole_block
from dragoman.journal.superblock import SegmentClaim, Superblock, SuperblockCopies, segment_identity


class Finding(NamedTuple):
    """Something about the files that an operator should know. `is_loss`: kept facts are missing."""

    words: str
    file: str
    offset: int
    size: int
    is_loss: bool


def broker_id_of(files: list[SegmentFile], directory: str, claims: Superblock | None = None) -> bytes | None:
    """The one broker id all headers and the superblock agree on; None when there is nothing to ask."""
    ids = {file.header.broker_id for file in files if file.header is not None}
    if len(ids) > 1:
        raise JournalMisplaced(f"{directory} holds segments of {len(ids)} brokers; one journal belongs to one broker")
    if claims is not None and ids - {claims.broker_id}:
        raise JournalMisplaced(
            f"{directory} holds segments of another broker than its superblock speaks of; one journal belongs to one broker"
        )
    return next(iter(ids), claims.broker_id if claims is not None else None)


def missing_segments(files: list[SegmentFile], claims: Superblock | None) -> list[SegmentClaim]:
    """The segments that the superblock names and that are not there."""
    present = {file.segment_no for file in files}
    return [claim for claim in claims.segments if claim.segment_no not in present] if claims is not None else []


def replaced_segments(files: list[SegmentFile], claims: Superblock | None) -> list[Damage]:
    """The segments that are other files than the superblock names: their blocks may be whole, and tell of another past."""
    named = {claim.segment_no: claim for claim in claims.segments} if claims is not None else {}
    return [
        Damage(file, 0, 0, named[file.segment_no].first_lsn, "this is another file than the one that was written")
        for file in files
        if file.header is not None and file.segment_no in named and _identity(file) != named[file.segment_no].identity
    ]


def missing_damage(directory: str, claim: SegmentClaim) -> Damage:
    file = SegmentFile(claim.segment_no, f"{directory}/{segment_name(claim.segment_no)}", 0, None)
    return Damage(file, 0, 0, claim.first_lsn, "the segment is missing")


def missing_tail(files: list[SegmentFile], walk: ChainWalk, claims: Superblock | None) -> Damage | None:
    """The end of the journal, where the superblock says that it went on."""
    if claims is None or claims.synced_block_no < walk.next_block_no:
        return None
    newest = files[-1]
    reach = walk.reach.get(newest.segment_no)
    reason = f"the journal ends here; it had blocks up to {claims.synced_block_no} and facts up to {claims.synced_lsn}"
    return Damage(newest, reach.end if reach is not None else 0, walk.next_block_no, walk.next_lsn, reason)


def hole_behind(disk: DiskFace, newest: SegmentFile, walk: ChainWalk) -> Damage | None:
    """Zeros are the end of the newest segment, unless whole blocks stand behind them."""
    reach = walk.reach.get(newest.segment_no)
    if reach is None or newest.header is None or newest.size <= reach.end:
        return None
    fd, seed = disk.open(newest.path, write=False), block_seed(newest.header.broker_id, newest.segment_no)
    try:
        behind = next_whole_block(disk, fd, seed, reach.end, walk.next_block_no)
        # A broker may be writing: what was not there a moment ago is no hole.
        if behind is None or behind.offset == reach.end or block_at(disk, fd, seed, reach.end) is not None:
            return None
    finally:
        disk.close(fd)
    return Damage(newest, reach.end, walk.next_block_no, walk.next_lsn, "zeros stand where a block was")


def superblock_findings(copies: SuperblockCopies, files: list[SegmentFile]) -> list[Finding]:
    """What there is to say about the superblock itself. One copy that is not whole is what a power cut leaves."""
    if copies.is_rebuilt:
        words = "both copies of the superblock are damaged: it is made anew from the segments, and cannot tell whether any is missing"
        findings = [Finding(words, path, 0, 0, False) for path in copies.damaged]
        copies.remove()
        return findings
    if copies.newest is None and files:
        path = files[0].path.rpartition("/")[0]
        return [Finding("the journal has no superblock yet, and gets one", path, 0, 0, False)]
    return []


def _identity(file: SegmentFile) -> int:
    header = file.header
    assert header is not None, "a damaged header has no identity"
    first = (header.first_lsn, header.first_block_no)
    return segment_identity(file.segment_no, *first, header.created_ns, header.broker_id)


def write_superblock(disk: DiskFace, directory: str) -> None:
    """For a journal that was just copied, proved and synced: all of it must be there from now on."""
    files = [file for file in counting(list_segments(disk, directory)) if file.header is not None]
    if not files:
        return
    walk = ChainWalk(disk, files[-1:])
    for _ in walk:
        pass
    synced = (walk.next_lsn - 1, walk.next_block_no - 1)
    claims = [
        SegmentClaim(file.segment_no, _identity(file), file.size, file.header.first_lsn)
        for file in files
        if file.header is not None and file.header.first_block_no <= synced[1]
    ]
    last = files[-1].header
    assert last is not None
    SuperblockCopies(disk, directory).write(Superblock(last.broker_id, *synced, True, walk.time_ns, tuple(claims)))
