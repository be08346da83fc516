"""Compares a journal with its superblock: what must exist and does not.

Used by start, `verify` and `salvage`; each decides what to do about a difference. The only change made here is to remove a superblock without
a whole copy, so that it is created again.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from dragoman.errors import JournalMisplaced
from dragoman.journal.disk import DiskFace, opened
from dragoman.journal.format import segment_name
from dragoman.journal.recovery.chain import ChainWalk, Damage, valid_segments
from dragoman.journal.recovery.scan import SegmentFile, block_at, list_segments, next_whole_block
from dragoman.journal.superblock import SegmentClaim, Superblock, SuperblockCopies, segment_identity


class Finding(NamedTuple):
    """A fact about the files that an operator should know. `is_loss`: committed facts are missing."""

    text: str
    file: str
    offset: int
    size: int
    is_loss: bool


def broker_id_of(files: list[SegmentFile], directory: str, claims: Superblock | None = None) -> bytes | None:
    """The broker id that all headers and the superblock share; None when there are none."""
    ids = {file.header.broker_id for file in files if file.header is not None}
    if len(ids) > 1:
        raise JournalMisplaced(f"{directory} holds segments of {len(ids)} brokers; one journal belongs to one broker")
    if claims is not None and ids - {claims.broker_id}:
        raise JournalMisplaced(
            f"{directory} holds segments of another broker than its superblock speaks of; one journal belongs to one broker"
        )
    return next(iter(ids), claims.broker_id if claims is not None else None)


def missing_segments(files: list[SegmentFile], claims: Superblock | None) -> list[SegmentClaim]:
    """The segments that the superblock names and that do not exist."""
    present = {file.segment_no for file in files}
    return [claim for claim in claims.segments if claim.segment_no not in present] if claims is not None else []


def replaced_segments(files: list[SegmentFile], claims: Superblock | None) -> list[Damage]:
    """The segments that are not the files the superblock names: their blocks may be whole, but of another history."""
    named = {claim.segment_no: claim for claim in claims.segments} if claims is not None else {}
    return [
        Damage(file, 0, 0, named[file.segment_no].first_lsn, "this is another file than the one that was written")
        for file in files
        if file.header is not None and file.segment_no in named and _identity(file) != named[file.segment_no].identity
    ]


def missing_damage(directory: str, claim: SegmentClaim) -> Damage:
    file = SegmentFile(claim.segment_no, f"{directory}/{segment_name(claim.segment_no)}", 0, None)
    return Damage(file, 0, 0, claim.first_lsn, "the segment is missing")


def end_damage(disk: DiskFace, files: list[SegmentFile], walk: ChainWalk, claims: Superblock | None) -> Damage | None:
    """What is wrong at the end of a walk over `files`: its own damage, whole blocks after a hole, or blocks that only the superblock names."""
    return walk.damage or _hole(disk, files[-1], walk) or _missing_tail(files, walk, claims)


def _missing_tail(files: list[SegmentFile], walk: ChainWalk, claims: Superblock | None) -> Damage | None:
    """Damage at the end of the journal if the superblock names a later block."""
    if claims is None or claims.synced_block_no < walk.next_block_no:
        return None
    newest = files[-1]
    reach = walk.reach.get(newest.segment_no)
    reason = f"the journal ends here; it had blocks up to {claims.synced_block_no} and facts up to {claims.synced_lsn}"
    return Damage(newest, reach.end if reach is not None else 0, walk.next_block_no, walk.next_lsn, reason)


def _hole(disk: DiskFace, newest: SegmentFile, walk: ChainWalk) -> Damage | None:
    """Damage if whole blocks follow the zeros at the end of the newest segment."""
    reach = walk.reach.get(newest.segment_no)
    if reach is None or newest.header is None or newest.size <= reach.end:
        return None
    with opened(disk, newest.path) as fd:
        later = next_whole_block(disk, fd, newest.seed, reach.end, walk.next_block_no)
        # A broker may be writing: a block that appeared in the meantime is not a hole.
        if later is None or later.offset == reach.end or block_at(disk, fd, newest.seed, reach.end) is not None:
            return None
    return Damage(newest, reach.end, walk.next_block_no, walk.next_lsn, "zeros stand where a block was")


def superblock_findings(copies: SuperblockCopies, files: list[SegmentFile]) -> list[Finding]:
    """Findings about the superblock itself. A single copy that is not whole is normal after a power cut."""
    if copies.is_rebuilt:
        text = "both copies of the superblock are damaged: it is made anew from the segments, and cannot tell whether any is missing"
        findings = [Finding(text, path, 0, 0, False) for path in copies.damaged]
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
    """Write the superblock of a journal that was just copied, verified and synced."""
    files = [file for file in valid_segments(list_segments(disk, directory)) if file.header is not None]
    if not files:
        return
    walk = ChainWalk(disk, files[-1:])
    deque(walk, maxlen=0)
    synced = (walk.next_lsn - 1, walk.next_block_no - 1)
    claims = [
        SegmentClaim(file.segment_no, _identity(file), file.size, file.header.first_lsn)
        for file in files
        if file.header is not None and file.header.first_block_no <= synced[1]
    ]
    last = files[-1].header
    assert last is not None
    SuperblockCopies(disk, directory).write(Superblock(last.broker_id, *synced, True, walk.time_ns, tuple(claims)))
