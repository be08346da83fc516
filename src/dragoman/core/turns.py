"""Chooses the queue that a worker serves next, and the lanes to take from."""

from __future__ import annotations

from dragoman.core.state.lines import Lane
from dragoman.core.state.queue import Queue
from dragoman.core.state.state import State
from dragoman.model.peer import Peer
from dragoman.model.serving import Serving


def next_serving(state: State, peer: Peer) -> Serving | None:
    """The queue this worker should serve next; None when nothing waits. Servings are sorted by weight, the highest first."""
    starve_turns = state.settings.starve_turns
    queues = state.queues_by_no
    best: Serving | None = None
    starved: Serving | None = None
    serves = peer.work.serves
    for serving in serves:
        queue = queues[serving.queue_no]
        if queue.waiting == 0 or queue.is_paused or serving.passed_over < 0 or not serving.takes():
            continue
        if serving.passed_over >= starve_turns and (starved is None or serving.passed_over > starved.passed_over):
            starved = serving
        if best is None or (serving.weight == best.weight and serving.last_turn < best.last_turn):
            best = serving  # equal weights: the one served longest ago
    if best is None:
        return None
    return starved if starved is not None else best


def count_turn(state: State, peer: Peer, served: Serving) -> None:
    queues = state.queues_by_no
    peer.work.turn += 1
    served.last_turn = peer.work.turn
    for serving in peer.work.serves:
        if serving is not served and serving.passed_over >= 0 and queues[serving.queue_no].waiting > 0:
            serving.passed_over += 1
    served.passed_over = 0


def best_lanes(queue: Queue, kind: int) -> list[Lane]:
    """The lanes with the next message for a worker of this body_constraint: those with the highest priority; at equal priority those of
    messages that other kinds of workers turned down."""
    lanes = queue.lanes
    priority = first_priority(lanes)
    for group in queue.unfit:
        if group.kinds & kind == 0:
            found = first_priority(group.lanes)
            if found >= 0 and found >= priority:
                lanes = group.lanes
                priority = found
    return lanes


def first_priority(lanes: list[Lane]) -> int:
    """The highest priority of a waiting message; -1 when none waits."""
    for lane in lanes:
        if lane.current() is not None:
            return lane.priority
    return -1
