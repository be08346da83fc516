"""Leases waiting messages to workers with free slots.

A free slot takes from the worker's non-empty queue of the highest weight; of equal weights, from the one served longest ago. A
non-empty queue that was passed over `starve_turns` times is served next, whatever its weight. A message goes to the longest idle
of the highest-ranked workers with a free slot; if any worker of the queue is chosen by load, to the one with the fewest leases.
"""

from __future__ import annotations

from collections import deque
from typing import final

from dragoman.core.quarantine import Quarantine
from dragoman.core.routes import Routes
from dragoman.core.state.lines import Lane
from dragoman.core.state.queue import Queue
from dragoman.core.state.state import State
from dragoman.core.tallies import Tallies
from dragoman.errors import RecordDamaged
from dragoman.limits import JUDGED_SIZE_MAX, LEASES_PER_STEP_MAX, SLOTS_MAX
from dragoman.model.enums import HANDOVER_WANTED, REPLY_WANTED
from dragoman.model.facts.record_load import RecordLoad
from dragoman.model.facts.records import FactLog
from dragoman.model.message import IN_FRESH, IN_RETURNED, NOWHERE, Message
from dragoman.model.peer import TAKES_ANYTHING, Peer, Serving


@final
class BodyLoad:
    """Reads a large body back from disk in steps, for a worker that will lease its message. The message stays in its line meanwhile: it may be
    cancelled, expire, or be carried to another segment."""

    def __init__(self, m: Message, queue: Queue, peer: Peer) -> None:
        self.m = m
        self.queue = queue
        self.peer = peer
        self.position: int = 0  # the record's when the current read began
        self.source: RecordLoad | None = None

    def step(self, state: State, size: int) -> bool:
        """Read the next `size` bytes; True when the message has its body. Raises `RecordDamaged`."""
        m = self.m
        stored = state.stored
        source = self.source
        if (
            source is None or m.position != self.position
        ):  # the record was carried meanwhile: its old segment may be deleted
            source = stored.begin(m.position, m.number, False)
            self.source = source
            self.position = m.position
        stored.read_cost += size
        if not source.step(size):
            return False
        stored.set_body(m, source.head, source.taken())
        state.bodies_size += m.body_size
        return True

    def is_wanted(self, state: State) -> bool:
        """Whether the message still waits in a line, without its body."""
        m = self.m
        is_in_line = m.where == IN_FRESH or m.where == IN_RETURNED
        return is_in_line and not m.is_loaded and state.messages.get(m.number) is m


@final
class Dispatch:
    """Chooses which worker leases which message."""

    def __init__(self, state: State, log: FactLog, routes: Routes, tallies: Tallies, quarantine: Quarantine) -> None:
        self.state = state
        self.quarantine = quarantine
        self.log = log
        self.routes = routes
        self.tallies = tallies
        self.is_stopped: bool = False  # the broker is draining: no new leases
        # The last `pop` gave up: the worker turned down too many messages, or too many bytes would have to be read.
        self.is_interrupted: bool = False
        # Interrupted work that `go_on` resumes: workers with free slots, queues with idle workers, a body being read from disk.
        self.unfed_workers: deque[Peer] = deque()
        self.unserved_queues: deque[Queue] = deque()
        self.load: BodyLoad | None = None
        self.is_load_next: bool = False
        self.are_queues_first: bool = False  # `go_on` alternates which list comes first: flipped whenever a load begins
        self.cost_before: int = 0  # `StoredRecords.read_cost` when this step began
        self.lane: Lane | None = None  # the lane that the last `pop_lanes` took from

    def add_slots(self, peer: Peer, slots: int) -> None:
        work = peer.work
        if work.slots <= 0:
            for serving in work.serves:
                if serving.is_idle:  # stale, from before it was busy: workers idle meanwhile come first
                    self.state.queues_by_no[serving.queue_no].unset_idle(serving)
        work.slots = min(work.slots + slots, SLOTS_MAX)
        self.feed(peer)

    def feed(self, peer: Peer) -> None:
        """Fill a worker's free slots; if some stay free, the worker enters the idle lines of its queues."""
        work = peer.work
        serves = work.serves
        if work.is_leaving or peer.is_blocked or self.is_stopped or not serves:
            return
        left = LEASES_PER_STEP_MAX
        while work.slots > 0 and not peer.is_blocked:  # a delivery may fill its output buffer and block it
            if left == 0:
                self.interrupt_feed(peer)
                return
            serving = serves[0] if len(serves) == 1 else next_serving(self.state, peer)
            if serving is None:
                break
            queue = self.state.queue_of(serving.queue_no)
            if queue.waiting == 0 or queue.is_paused or not serving.takes():
                break
            m = self.pop(queue, peer)
            if m is None and self.is_interrupted:  # not counted as a turn: this queue is resumed first
                self.interrupt_feed(peer)
                return
            if len(serves) > 1:
                count_turn(self.state, peer, serving)
            if m is None:
                if len(serves) == 1:
                    break
                serving.passed_over = -1  # nothing that waits there fits this worker: try its other queues
                continue
            left -= 1
            self.lease(m, queue, peer)
        has_room = work.slots > 0
        for serving in serves:
            if has_room and not serving.is_idle:
                self.state.queues_by_no[serving.queue_no].set_idle(serving)
            if serving.passed_over < 0:
                serving.passed_over = 0

    def interrupt_feed(self, peer: Peer) -> None:
        """Interrupt feeding a worker so that other work can run. It leaves all idle lines, so that no new message overtakes a waiting one."""
        for serving in peer.work.serves:
            if serving.is_idle:
                self.state.queues_by_no[serving.queue_no].unset_idle(serving)
        if not peer.work.is_feeding_interrupted:
            peer.work.is_feeding_interrupted = True
            self.unfed_workers.append(peer)

    def interrupt_leasing(self, queue: Queue) -> None:
        if not queue.is_unserved:
            queue.is_unserved = True
            self.unserved_queues.append(queue)

    def has_more(self) -> bool:
        """Whether work was interrupted, or bodies were read: the next step has a new read budget."""
        is_broken_off = bool(self.unfed_workers) or bool(self.unserved_queues) or self.load is not None
        return is_broken_off or self.cost_before != self.state.stored.read_cost

    def go_on(self) -> None:
        """Resume interrupted work: every other call reads on the body load in progress, if there is one."""
        self.is_load_next = not self.is_load_next
        if self.load is not None and not self.is_load_next:
            self.go_on_loading(self.load)
            return
        self.cost_before = self.state.stored.read_cost
        if self.are_queues_first:
            self.lease_next_queue()
            self.feed_next()
        else:
            self.feed_next()
            self.lease_next_queue()

    def feed_next(self) -> None:
        if self.unfed_workers:
            peer = self.unfed_workers.popleft()
            peer.work.is_feeding_interrupted = False
            self.feed(peer)

    def lease_next_queue(self) -> None:
        if self.unserved_queues:
            queue = self.unserved_queues.popleft()
            queue.is_unserved = False
            self.lease_waiting(queue)

    def go_on_loading(self, load: BodyLoad) -> None:
        """Read the next part of a body. Once it is loaded, its worker is fed in the same call, before anything can unload the body."""
        state, m = self.state, load.m
        # A REQ worker that gave its slot back asks again soon.
        asks_again = load.peer.takes_one_answer and len(load.peer.work.serves) > 0
        is_awaited = has_room(load.peer) or asks_again or bool(self.unfed_workers) or bool(self.unserved_queues)
        if self.is_stopped or load.queue.is_paused or not is_awaited or not load.is_wanted(state):
            self.load = None
            return
        try:
            if not load.step(state, state.settings.load_step_size):
                return
        except RecordDamaged as damaged:
            m.damage = damaged.evidence
            self.quarantine.put_damaged(m, load.queue)
        # `self.load` stays set until here, so that no new load begins ahead of workers and queues that have waited longer.
        self.feed(load.peer)
        if load.peer.work.is_feeding_interrupted:
            self.unfed_workers.remove(load.peer)
            self.unfed_workers.append(load.peer)
        if m.where != NOWHERE:
            self.lease_waiting(load.queue)
        self.load = None
        if m.where != NOWHERE:  # the worker that wanted it is gone or leased another message
            state.unload_if_short(m)

    def must_wait(self, m: Message, queue: Queue, peer: Peer) -> bool:
        """Whether a body must not be read now: it is large, or this step's read budget is used up. For a large body a load begins, unless
        another one is in progress."""
        if m.body_size <= self.state.settings.load_step_size:
            return self.is_enough_read()
        load = self.load
        if load is None:
            self.load = BodyLoad(m, queue, peer)
            self.are_queues_first = not self.are_queues_first
        elif load.m is m and not has_room(load.peer):
            load.peer = peer
        return True

    def is_enough_read(self) -> bool:
        return self.state.stored.read_cost - self.cost_before >= self.state.settings.load_step_size

    def put_back(self, m: Message, queue: Queue) -> None:
        """Undo the last `pop_lanes` exactly: no fact records it, so a replay must find the same order."""
        assert self.lane is not None, "something was popped"
        self.lane.turn_back().put_back(m)
        queue.waiting += 1

    def offer(self, m: Message, queue: Queue) -> bool:
        """Lease a message that is in no line to an idle worker, if there is one that takes it. True when it need not be enqueued: it is
        leased, or quarantined because its record is damaged."""
        if queue.is_paused or queue.is_unserved or self.is_stopped:
            return False
        if m.is_loaded:
            return self.offer_loaded(m, queue)
        if m.body_size > self.state.settings.load_step_size or self.is_enough_read():
            self.interrupt_leasing(queue)  # `lease_waiting` leases it from its line once its body is loaded
            return False
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
                work = peer.work
                if work.slots <= 0 or work.is_leaving or peer.is_blocked:
                    idle.popleft()
                    serving.is_idle = False
                    queue.idle -= 1
                    continue
                if peer.body_constraint != TAKES_ANYTHING and not self.is_fit(m, peer):
                    idle.rotate(-1)
                    continue
                if work.slots == 1:  # its last slot: it re-enters at the back when a slot is free again
                    idle.popleft()
                    serving.is_idle = False
                    queue.idle -= 1
                elif len(idle) > 1:
                    idle.rotate(-1)
                self.lease(m, queue, peer)
                return True
        return False

    def least_loaded(self, m: Message, idle: deque[Serving]) -> Peer | None:
        """Of the idle workers that accept the message, the one with the fewest leases; among equals, the one served longest ago."""
        best: Serving | None = None
        for serving in idle:
            peer = serving.peer
            if peer.work.slots <= 0 or peer.work.is_leaving or peer.is_blocked:
                continue
            if best is not None and len(peer.work.leases) >= len(best.peer.work.leases):
                continue
            if peer.body_constraint == TAKES_ANYTHING or self.is_fit(m, peer):
                best = serving
        if best is None:
            return None
        if best is idle[0]:
            idle.rotate(-1)
        else:
            idle.remove(best)
            idle.append(best)
        return best.peer

    def lease_waiting(self, queue: Queue) -> None:
        """Lease waiting messages to idle workers: after a pause, a release, or a delay that came due."""
        unfit: list[Serving] = []  # workers that accept nothing that waits here: others may
        left = LEASES_PER_STEP_MAX
        while queue.waiting > 0 and queue.idle > 0 and not queue.is_paused and not self.is_stopped:
            if left == 0:
                self.interrupt_leasing(queue)
                break
            serving = self.next_idle(queue)
            peer = serving.peer
            if peer.work.slots <= 0 or peer.work.is_leaving or peer.is_blocked:
                continue
            m = self.pop(queue, peer)
            if m is None:
                if self.is_interrupted:
                    queue.set_idle_first(serving)
                    self.interrupt_leasing(queue)
                    break
                unfit.append(serving)
                continue
            left -= 1
            self.lease(m, queue, peer)
            if peer.work.slots > 0:
                queue.set_idle(serving)
        for serving in unfit:
            queue.set_idle(serving)

    def next_idle(self, queue: Queue) -> Serving:
        """Remove the next worker from the idle lines."""
        for rank in queue.idle_lines:
            idle = rank.line
            if not idle:
                continue
            best = idle[0]
            if queue.chosen_by_load > 0:
                for serving in idle:
                    if len(serving.peer.work.leases) < len(best.peer.work.leases):
                        best = serving
            queue.unset_idle(best)
            return best
        raise AssertionError("a queue that counts idle workers has one")

    def pop(self, queue: Queue, peer: Peer) -> Message | None:
        """The next message of a queue for this worker; None when none fits, or when the search was interrupted (`is_interrupted`)."""
        kind = peer.body_constraint
        left = LEASES_PER_STEP_MAX
        left_size = JUDGED_SIZE_MAX
        self.is_interrupted = False
        while True:
            if left == 0 or left_size <= 0:
                self.is_interrupted = True
                return None
            left -= 1
            m = self.pop_lanes(queue, best_lanes(queue, kind) if queue.unfit else queue.lanes, True)
            if m is None:
                return None
            if not m.is_loaded:
                if m.is_unreadable and not self.state.is_sound(m):
                    self.quarantine.put_damaged(m, queue)
                    continue
                if self.must_wait(m, queue, peer):
                    self.put_back(m, queue)
                    self.is_interrupted = True
                    return None
                if not self.state.ensure_body(m):
                    self.quarantine.put_damaged(m, queue)
                    continue
            if kind == TAKES_ANYTHING or self.is_fit(m, peer):
                return m
            left_size -= m.body_size
            self.state.enqueue_returned(m, queue)

    def is_fit(self, m: Message, peer: Peer) -> bool:
        """Whether this worker can be sent the body, decided before every lease."""
        assert m.is_loaded, "a worker must not judge the empty bytes in the place of a body that is on disk only"
        if peer.accepts(m):
            return True
        assert m.unfit & peer.body_constraint, "a worker that turns a message down says so on it"
        return False

    def pop_lanes(self, queue: Queue, lanes: list[Lane], is_bounded: bool) -> Message | None:
        """The next message of these lanes. `is_bounded`: None, and `is_interrupted`, if it would exceed this step's read budget."""
        for lane in lanes:
            line = lane.current()
            if line is None:
                continue
            m = line.pop()
            if m is None:
                if is_bounded and self.is_enough_read():
                    self.is_interrupted = True
                    return None
                self.state.refill(queue, lane, line)
                m = line.pop()
                assert m is not None, "a line that counts messages must yield one"
            lane.turn()
            self.lane = lane
            queue.waiting -= 1
            return m
        return None

    def lease(self, m: Message, queue: Queue, peer: Peer) -> None:
        """Lease a message that is in no line to a worker."""
        state = self.state
        assert m.where == NOWHERE
        assert m.is_loaded, "what is leased was read before a worker was chosen"
        self.log.leased(m, peer.number)
        state.on_leased(m, queue, peer.number)
        if m.attempt == 1:
            self.tallies.count_first_lease(m, queue)
        m.worker = peer
        work = peer.work
        timeout_ns = m.timeout_ns
        if timeout_ns == 0:
            timeout_ns = peer.lease_ns if peer.lease_ns != 0 else state.settings.timeout_ns
        if timeout_ns != 0:
            m.lease_until_ns = state.now_ns + timeout_ns + peer.lease_grace_ns
            work.timed_leases += 1
        else:
            m.lease_until_ns = 0
        work.leases[m.key] = m
        work.slots -= 1
        work.last_leased_ns = state.now_ns
        peer.deliver(m)
        if state.bodies_size > state.settings.large_bodies_max:
            state.unload_if_short(m)
        if m.flags & HANDOVER_WANTED and not m.is_handed_over and not peer.says_delivered:
            self.hand_over(m)

    def hand_over(self, m: Message) -> None:
        """Notify the client, once, that a worker has its message; but not a client that was already sent the failure (at the quarantine):
        it may have reused the id for another request."""
        m.is_handed_over = True
        is_over = not m.is_answerable and m.flags & REPLY_WANTED != 0
        client = self.routes.client_of(m) if not is_over else None
        if client is not None:
            client.handed_over(m)

    def end_lease(self, m: Message, holder: Peer) -> None:
        """End a message's lease, after the fact that says so."""
        work = holder.work
        held = work.leases
        if m.key in held:  # else the worker is lost: the roster has its leases, and they count no more
            del held[m.key]
            if m.lease_until_ns != 0:
                work.timed_leases -= 1
        m.lease_until_ns = 0
        m.worker = None


def has_room(peer: Peer) -> bool:
    """Whether a worker can take a message now."""
    return peer.work.slots > 0 and not peer.work.is_leaving and not peer.is_blocked and len(peer.work.serves) > 0


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
