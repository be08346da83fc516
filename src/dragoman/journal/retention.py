"""Decides which segments may be deleted and from which ones live records should be carried forward. Pure functions.

A segment may be deleted if nothing needs it: it is sealed, older than the newest synced checkpoint, and contains no body of a
waiting message. It is deleted, oldest first, when the journal exceeds its maximum size or the segment its maximum age.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dragoman import limits
from dragoman.journal.segment_store import SegmentInfo


def droppable(
    infos: list[SegmentInfo],
    checkpoint_no: int | None,
    live_segments: Collection[int],
    *,
    size_max: int,
    age_max_ns: int,
    now_ns: int,
    copied_lsn: int | None,
) -> list[int]:
    """Numbers of the segments to delete now. `copied_lsn`: facts up to this lsn are in the lake; None when there is no lake to wait
    for. Age alone deletes a segment even if the lake never received it."""
    size = sum(info.size for info in infos)
    numbers: list[int] = []
    for info in infos:
        is_needed = not info.sealed or info.segment_no >= (checkpoint_no or 0) or info.segment_no in live_segments
        is_old = age_max_ns > 0 and info.last_time_ns < now_ns - age_max_ns
        is_copied = copied_lsn is None or info.last_lsn <= copied_lsn
        if not is_needed and (is_old or (size > size_max and is_copied)):
            if not _took_over_from_one_that_stays(infos, info, numbers):
                numbers.append(info.segment_no)
                size -= info.size
    return numbers


def _took_over_from_one_that_stays(infos: list[SegmentInfo], info: SegmentInfo, going: Collection[int]) -> bool:
    """Whether `info` took over blocks from a segment that is not being deleted. The first copies of those blocks may be torn: without `info`
    they would be read as damage. So `info` is deleted together with, or after, the segment that ends in them."""
    if not info.took_over:
        return False
    before = [other.segment_no for other in infos if other.segment_no < info.segment_no]
    return bool(before) and before[-1] not in going


def worth_carrying(
    infos: list[SegmentInfo], checkpoint_no: int | None, live_sizes: Mapping[int, int], *, size_max: int
) -> list[int]:
    """Segments, oldest first, that only a few live records keep from being deleted: carry those records forward and the segment can go. Empty
    while the journal is at most half its maximum size."""
    if checkpoint_no is None or sum(info.size for info in infos) * 2 <= size_max:
        return []
    return [
        info.segment_no
        for info in infos
        if info.sealed
        and info.segment_no < checkpoint_no
        and 0 < live_sizes.get(info.segment_no, 0) * 100 < info.size * limits.CARRY_LIVE_PERCENT
    ]
