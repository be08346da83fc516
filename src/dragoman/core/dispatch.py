"""Who gets what: free slots meet waiting messages.

A worker's free slot takes from the queue of highest weight that waits, equal weights in turn, and a waiting queue that lost
`starve_turns` times is served next whatever its weight. A message takes, of the workers of the highest rank with a free slot, the
one that has been idle longest; where a worker of the queue is chosen by load, the one that holds least.
"""

from __future__ import annotations

from collections import deque
from typing import final

from dragoman.core.crowding import lighten, refill
from dragoman.core.lines import Lane
from dragoman.core.quarantine import Quarantine
from dragoman.core.queue import Queue
from dragoman.core.routes import Routes
from dragoman.core.state import State
from dragoman.core.tallies import Tallies
from dragoman.limits import LEASES_PER_STEP_MAX, SLOTS_MAX
from dragoman.model.message import NOWHERE, Message
from dragoman.model.peer import TAKES_ANYTHING, Peer
from dragoman.model.records import FactLog
from dragoman.model.serving import Serving
from dragoman.model.words import HANDOVER_WANTED, REPLY_WANTED


@final
class Dispatch:
    """Leases, and nothing else."""

    def __init__(self, state: State, log: FactLog, routes: Routes, tallies: Tallies, quarantine: Quarantine) -> None:
        self.state = state
        self.quarantine = quarantine
        self.log = log
        self.routes = routes
        self.tallies = tallies
        self.is_stopped: bool = False  # draining: nothing new is given out
        # What was broken off, to be gone on with in the next turn: workers with free slots, queues with idle workers.
        self.is_tired: bool = False  # the last `pop` turned down so many that it gave up before it had seen all
        self.hungry: deque[Peer] = deque()
        self.behind: deque[Queue] = deque()

    def add_slots(self, peer: Peer, slots: int) -> None:
        if peer.slots <= 0:
            for serving in peer.serves:
                if serving.is_idle:  # left from before it was busy: whoever was idle meanwhile comes first
                    self.state.queues_by_no[serving.queue_no].unset_idle(serving)
        peer.slots = min(peer.slots + slots, SLOTS_MAX)
        self.feed(peer)

    def feed(self, peer: Peer) -> None:
        """Use a worker's free slots; what stays free stands in the idle lines of its queues."""
        serves = peer.serves
        if peer.is_leaving or peer.is_blocked or self.is_stopped or not serves:
            return
        left = LEASES_PER_STEP_MAX
        while peer.slots > 0:
            if left == 0:
                self.break_off(peer)
                return
            serving = serves[0] if len(serves) == 1 else self.next_serving(peer)
            if serving is None:
                break
            queue = self.state.queues_by_no[serving.queue_no]
            if queue.waiting == 0 or queue.is_paused or not serving.takes():
                break
            m = self.pop(queue, peer)
            if m is None:
                if self.is_tired:
                    self.break_off(peer)
                    return
                if len(serves) == 1:
                    break
                serving.passed_over = -1  # everything waiting there is unfit for this worker: look elsewhere
                continue
            left -= 1
            self.lease(m, queue, peer)
        has_room = peer.slots > 0
        for serving in serves:
            if has_room and not serving.is_idle:
                self.state.queues_by_no[serving.queue_no].set_idle(serving)
            if serving.passed_over < 0:
                serving.passed_over = 0

    def break_off(self, peer: Peer) -> None:
        """Others have their turn before it is given more. It is idle nowhere meanwhile: what comes fresh waits behind what waits."""
        for serving in peer.serves:
            if serving.is_idle:
                self.state.queues_by_no[serving.queue_no].unset_idle(serving)
        if not peer.is_hungry:
            peer.is_hungry = True
            self.hungry.append(peer)

    def fall_behind(self, queue: Queue) -> None:
        if not queue.is_behind:
            queue.is_behind = True
            self.behind.append(queue)

    def go_on(self) -> None:
        """The next step of what was broken off."""
        if self.hungry:
            peer = self.hungry.popleft()
            peer.is_hungry = False
            self.feed(peer)
        if self.behind:
            queue = self.behind.popleft()
            queue.is_behind = False
            self.drain(queue)

    def next_serving(self, peer: Peer) -> Serving | None:
        """The queue this worker should serve now. Servings are sorted by weight, the highest first."""
        starve_turns = self.state.settings.starve_turns
        queues = self.state.queues_by_no
        best: Serving | None = None
        starved: Serving | None = None
        serves = peer.serves
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
        if starved is not None:
            best = starved
        peer.turn += 1
        best.last_turn = peer.turn
        for serving in serves:
            if serving is not best and serving.passed_over >= 0 and queues[serving.queue_no].waiting > 0:
                serving.passed_over += 1
        best.passed_over = 0
        return best

    def offer(self, m: Message, queue: Queue) -> bool:
        """Lease a message that is in no line to an idle worker, if there is one that takes it. True when it needs no line: it is
        leased, or its record turned out to be damaged."""
        if queue.is_paused or queue.is_behind or self.is_stopped:
            return False
        if m.is_loaded:
            return self.offer_loaded(m, queue)
        if not self.state.ensure_body(m):
            self.quarantine.put_damaged(m, queue)
            return True
        is_leased = self.offer_loaded(m, queue)
        if not is_leased:
            self.state.unload(m)
        return is_leased

    def offer_loaded(self, m: Message, queue: Queue) -> bool:
        for rank in queue.idle_lines:
            idle = rank.line
            if queue.chosen_by_load > 0 and len(idle) > 1:
                peer = self.least_loaded(m, idle)
                if peer is not None:
                    self.lease(m, queue, peer)
                    return True
                continue
            for _ in range(len(idle)):
                serving = idle[0]
                peer = serving.peer
                if peer.slots <= 0 or peer.is_leaving or peer.is_blocked:
                    idle.popleft()
                    serving.is_idle = False
                    queue.idle -= 1
                    continue
                if peer.pickiness != TAKES_ANYTHING and not self.is_fit(m, peer):
                    idle.rotate(-1)
                    continue
                if peer.slots == 1:  # its last: it stands at the back when it has room again
                    idle.popleft()
                    serving.is_idle = False
                    queue.idle -= 1
                elif len(idle) > 1:
                    idle.rotate(-1)
                self.lease(m, queue, peer)
                return True
        return False

    def least_loaded(self, m: Message, idle: deque[Serving]) -> Peer | None:
        """Of the idle workers that take it, the one that holds least; of several, the one served longest ago."""
        best: Serving | None = None
        for serving in idle:
            peer = serving.peer
            if peer.slots <= 0 or peer.is_leaving or peer.is_blocked:
                continue
            if best is not None and len(peer.held) >= len(best.peer.held):
                continue
            if peer.pickiness == TAKES_ANYTHING or self.is_fit(m, peer):
                best = serving
        if best is None:
            return None
        if best is idle[0]:
            idle.rotate(-1)
        else:
            idle.remove(best)
            idle.append(best)
        return best.peer

    def drain(self, queue: Queue) -> None:
        """Give what waits to whoever is idle: after a pause, a release, or a delay that came due."""
        unfit: list[Serving] = []  # workers for whom there is nothing fit here: the others may still want it
        left = LEASES_PER_STEP_MAX
        while queue.waiting > 0 and queue.idle > 0 and not queue.is_paused and not self.is_stopped:
            if left == 0:
                self.fall_behind(queue)
                break
            serving = self.next_idle(queue)
            peer = serving.peer
            if peer.slots <= 0 or peer.is_leaving or peer.is_blocked:
                continue
            m = self.pop(queue, peer)
            if m is None:
                unfit.append(serving)
                if self.is_tired:
                    self.fall_behind(queue)
                    break
                continue
            left -= 1
            self.lease(m, queue, peer)
            if peer.slots > 0:
                queue.set_idle(serving)
        for serving in unfit:
            queue.set_idle(serving)

    def next_idle(self, queue: Queue) -> Serving:
        """Take the next worker out of the idle lines."""
        for rank in queue.idle_lines:
            idle = rank.line
            if not idle:
                continue
            best = idle[0]
            if queue.chosen_by_load > 0:
                for serving in idle:
                    if len(serving.peer.held) < len(best.peer.held):
                        best = serving
            queue.unset_idle(best)
            return best
        raise AssertionError("a queue that counts idle workers has one")

    def pop(self, queue: Queue, peer: Peer) -> Message | None:
        """The next message of a queue for this worker; None when there is none fit, or none among so many (`is_tired`)."""
        kind = peer.pickiness
        left = LEASES_PER_STEP_MAX
        self.is_tired = False
        while True:
            if left == 0:
                self.is_tired = True
                return None
            left -= 1
            m = self.pop_lanes(queue, best_lanes(queue, kind) if queue.unfit else queue.lanes)
            if m is None:
                return None
            if not m.is_loaded and not self.state.ensure_body(m):
                self.quarantine.put_damaged(m, queue)
                continue
            if kind == TAKES_ANYTHING or self.is_fit(m, peer):
                return m
            self.state.enqueue_returned(m, queue)

    def is_fit(self, m: Message, peer: Peer) -> bool:
        """Whether this worker can be sent the body, decided before every lease."""
        assert m.is_loaded, "a worker must not judge the empty bytes in the place of a body that is on disk only"
        if peer.accepts(m):
            return True
        assert m.unfit & peer.pickiness, "a worker that turns a message down says so on it"
        return False

    def pop_lanes(self, queue: Queue, lanes: list[Lane]) -> Message | None:
        for lane in lanes:
            line = lane.current()
            if line is None:
                continue
            m = line.pop()
            if m is None:
                refill(self.state, queue, lane, line)
                m = line.pop()
                assert m is not None, "a line that counts messages must yield one"
            lane.turn()
            queue.waiting -= 1
            return m
        return None

    def lease(self, m: Message, queue: Queue, peer: Peer) -> None:
        """Put a message that is in no line into a worker's hands."""
        state = self.state
        assert m.where == NOWHERE
        assert m.is_loaded, "what is leased was read before a worker was chosen"
        state.on_leased(m, queue, peer.number)
        self.log.leased(m, peer.number)
        if m.attempt == 1:
            self.tallies.count_first_lease(m, queue)
        m.worker = peer
        timeout_ns = m.timeout_ns
        if timeout_ns == 0:
            timeout_ns = peer.lease_ns if peer.lease_ns != 0 else state.settings.timeout_ns
        if timeout_ns != 0:
            m.lease_until_ns = state.now_ns + timeout_ns + peer.lease_grace_ns
            peer.timed_leases += 1
        else:
            m.lease_until_ns = 0
        peer.held[m.number] = m
        peer.slots -= 1
        peer.last_leased_ns = state.now_ns
        peer.deliver(m)
        if state.bodies_size > state.settings.large_bodies_max:
            lighten(state, m)
        if m.flags & HANDOVER_WANTED and not m.is_handed_over and not peer.says_delivered:
            self.hand_over(m)

    def hand_over(self, m: Message) -> None:
        """Tell the client, once, that a worker has its message; not one that was sent its failure (at the quarantine) and whose id may
        stand for another request by now."""
        m.is_handed_over = True
        is_over = not m.is_answerable and m.flags & REPLY_WANTED != 0
        client = self.routes.client_of(m) if not is_over else None
        if client is not None:
            client.handed_over(m)

    def end_lease(self, m: Message) -> Peer | None:
        """Take a message out of its holder's hands."""
        peer = m.worker
        if peer is not None:
            peer.held.pop(m.number, None)
            if m.lease_until_ns != 0:
                m.lease_until_ns = 0
                peer.timed_leases -= 1
            m.worker = None
        return peer


def best_lanes(queue: Queue, kind: int) -> list[Lane]:
    """Where the next message for a worker of this pickiness waits: the highest priority, and where those are equal, what fewer other
    workers can help with."""
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
    """The highest priority that waits; -1 when nothing does."""
    for lane in lanes:
        if lane.current() is not None:
            return lane.priority
    return -1
