"""The tallies as plain values, for the admin socket: everything counts from the broker's start on, and only ever rises."""

from __future__ import annotations

from heapq import nsmallest

from dragoman.core.core import Core
from dragoman.core.heads import oldest_ns
from dragoman.core.queue import Queue
from dragoman.core.views import counters, queue_view
from dragoman.model.histogram import summed
from dragoman.model.words import DIALECT_NAMES, DIALECTS, ROW_SIZE


def tallies(core: Core) -> dict[str, object]:
    """The counters, and how long things took. Dialects that never met are left out of `crossings`."""
    view = counters(core)
    view["boot_no"] = core.state.boot_no
    view["started_ns"] = core.state.started_ns
    spans = core.tallies.all_spans()
    view["wait"] = summed([s.wait for s in spans])
    view["total"] = summed([s.total for s in spans])
    dialects: list[dict[str, object]] = []
    crossings: list[dict[str, object]] = []
    for client in range(DIALECTS):
        settled = 0
        for worker in range(ROW_SIZE):
            count: int = core.tallies.settled[client * ROW_SIZE + worker].count
            settled += count
            if count > 0 and worker < DIALECTS:
                crossings.append({"client": DIALECT_NAMES[client], "worker": DIALECT_NAMES[worker], "count": count})
        accepted: int = core.tallies.accepted[client].count
        dialects.append({"dialect": DIALECT_NAMES[client], "accepted": accepted, "settled": settled})
    view["dialects"] = dialects
    view["crossings"] = crossings
    return view


def queue_tallies(core: Core, offset: int, limit: int, prefix: str, is_by_depth: bool) -> dict[str, object]:
    """As `views.queues`, each with the age of what waits and how long things took. By depth, or in the order they were named."""
    chosen: list[Queue] = []
    start = prefix.encode("utf-8", "surrogateescape")
    for queue in core.state.queues_by_no.values():
        if not start or queue.name.startswith(start):
            chosen.append(queue)
    total = len(chosen)
    if is_by_depth:
        chosen = nsmallest(offset + limit, chosen, key=by_depth)  # half the work of sorting a hundred thousand
    return {"total": total, "queues": [queue_tally(core, queue) for queue in chosen[offset : offset + limit]]}


def by_depth(queue: Queue) -> tuple[int, int]:
    """Most to do first, then the busiest so far; those alike stay in the order they were named."""
    return (-queue.waiting - queue.leased, -queue.accepted)


def queue_tally(core: Core, queue: Queue) -> dict[str, object]:
    """A queue whose durations are counted with those of others has none of its own to tell."""
    view = queue_view(queue)
    spans = queue.spans
    has_own = spans is not None and spans is not core.tallies.other_spans
    view["oldest_ns"] = oldest_ns(queue)
    view["wait"] = spans.wait.pairs() if spans is not None and has_own else []
    view["total_time"] = spans.total.pairs() if spans is not None and has_own else []
    return view
