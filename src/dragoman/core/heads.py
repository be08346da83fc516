"""Who has waited longest: looked for at the heads of a queue's lines only, which are older than what stands behind them."""

from __future__ import annotations

from dragoman.core.lines import Lane, Line
from dragoman.core.queue import Queue
from dragoman.core.tallies import waits_since
from dragoman.model.message import IN_FRESH


def oldest_ns(queue: Queue) -> int:
    """Since when the longest waiting message of a queue waits: its acceptance, or the end of the delay its client asked for; 0: none."""
    oldest = 0
    if queue.waiting > 0:
        oldest = oldest_in(queue.lanes, oldest)
        for group in queue.unfit:
            oldest = oldest_in(group.lanes, oldest)
    return oldest


def oldest_in(lanes: list[Lane], oldest: int) -> int:
    for lane in lanes:
        for line in lane.lines.values():
            if line.size > 0:
                found = head_ns(line)
                if found != 0 and (oldest == 0 or found < oldest):
                    oldest = found
    return oldest


def head_ns(line: Line) -> int:
    """The older of a line's returned and fresh heads; of one that is on disk only, the journal's word at its acceptance."""
    found = 0
    returned = line.returned_head()
    if returned is not None:
        found = waits_since(returned)
    for m in line.fresh:
        if m.where == IN_FRESH and m.line is line:
            since_ns = waits_since(m)
            return since_ns if found == 0 else min(found, since_ns)
    tail = line.tail
    for at in range(tail.head, len(tail.numbers)):
        if tail.numbers[at] > 0:
            since_ns = tail.accepted[at]
            return since_ns if found == 0 else min(found, since_ns)
    return found
