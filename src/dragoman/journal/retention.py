"""Which segments may go, and from which live records are worth carrying forward. Pure: infos in, numbers out.

A segment may go when nothing needs it: it is sealed, lies before the newest synced checkpoint, and no waiting message has its
body there. It goes when the journal is over its size or the segment over its age, oldest first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dragoman import limits
from dragoman.journal.segments import SegmentInfo


def unneeded(infos: list[SegmentInfo], checkpoint_no: int | None, live_segments: Collection[int]) -> list[SegmentInfo]:
    """Segments that recovery and waiting bodies could do without, oldest first."""
    if checkpoint_no is None:
        return []
    return [i for i in infos if i.sealed and i.segment_no < checkpoint_no and i.segment_no not in live_segments]


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
    """Numbers of the segments to drop now. `copied_lsn`: facts up to it are in the lake; None when there is no lake to wait
    for. Age alone drops a segment even if the lake never took it."""
    size = sum(info.size for info in infos)
    may_go = {info.segment_no for info in unneeded(infos, checkpoint_no, live_segments)}
    numbers: list[int] = []
    for info in infos:
        is_old = age_max_ns > 0 and info.last_time_ns < now_ns - age_max_ns
        is_copied = copied_lsn is None or info.last_lsn <= copied_lsn
        if info.segment_no in may_go and (is_old or (size > size_max and is_copied)):
            if not takes_over_from_one_that_stays(infos, info, numbers):
                numbers.append(info.segment_no)
                size -= info.size
    return numbers


def takes_over_from_one_that_stays(infos: list[SegmentInfo], info: SegmentInfo, going: Collection[int]) -> bool:
    """The first copies of what a segment took over may be torn. Without it they would count, and read as damage: it goes after, or
    with, the segment that ends in them."""
    if not info.took_over:
        return False
    before = [other.segment_no for other in infos if other.segment_no < info.segment_no]
    return bool(before) and before[-1] not in going


def worth_carrying(
    infos: list[SegmentInfo], checkpoint_no: int | None, live_sizes: Mapping[int, int], *, size_max: int
) -> list[int]:
    """Segments that little live data keeps from going, oldest first: carry those records forward and they may go. Nothing
    is worth it while the journal is below half its size."""
    if checkpoint_no is None or sum(info.size for info in infos) * 2 <= size_max:
        return []
    return [
        info.segment_no
        for info in infos
        if info.sealed
        and info.segment_no < checkpoint_no
        and 0 < live_sizes.get(info.segment_no, 0) * 100 < info.size * limits.CARRY_LIVE_PERCENT
    ]
