"""Workers: they join, claim queues, leave or are lost.

| event                              | servings            | leases                 | facts                    | reason                           |
|------------------------------------|---------------------|------------------------|--------------------------|----------------------------------|
| join again                         | replaced            | stay                   | worker_joined            | of the old servings SUPERSEDED   |
| leave: it said goodbye             | end                 | stay until it answers  | none yet                 | WORKER_LEFT                      |
| dismiss: by the operator           | end, kept as claims | stay until it answers  | none yet                 | BY_OPERATOR                      |
| lose: silence, a protocol fault    | end                 | end, by `take_back`    | worker_left, per lease * | as given                         |
| goodbye of the core: no connection | end                 | end, by `take_back`    | worker_left, per lease * | CONNECTION_ENDED; that of leave  |
|                                    |                     |                        |                          | or dismiss if it had no leases   |

`take_back` ends LEASES_PER_STEP_MAX leases per step, and writes worker_left with the last. * Each lease ends as core/retries decides (released,
closed or quarantined), with the reason WORKER_LEFT after leave or dismiss, RETURNED from a relay, else WORKER_LOST.
"""

from __future__ import annotations

from collections import deque
from operator import attrgetter
from typing import final

from dragoman.core.dispatch import Dispatch
from dragoman.core.settling import Settling
from dragoman.core.state.queue import Queue
from dragoman.core.state.state import State
from dragoman.limits import DISMISSALS_MAX, LEASES_PER_STEP_MAX, NAME_SIZE_MAX, QUEUE_NO_MAX, QUEUES_MAX, SERVED_MAX
from dragoman.model import enums
from dragoman.model.facts.layout import QUEUE_NAMED, WORKER_JOINED
from dragoman.model.facts.layout import WORKER_LEFT as WORKER_LEFT_FACT
from dragoman.model.facts.records import FactLog, worker_text
from dragoman.model.peer import BY_IDENTITY, RANK_NORMAL, Peer, Serving


@final
class Dismissal:
    """One dismissed worker."""

    def __init__(self, peer: Peer, since_ns: int) -> None:
        self.dialect = peer.dialect
        self.identity = peer.identity
        self.remote = peer.remote
        self.worker_no = peer.number
        self.since_ns = since_ns
        self.until_ns: int = 0  # 0: for as long as the broker runs


@final
class Dismissals:
    """Workers that the operator dismissed, by lasting id, the oldest first: they stay connected, finish their leases, and get no new ones until they
    are admitted.

    A dismissal belongs to the worker, not to one connection. `Peer.lasting_id` recognises a worker when it reconnects: the program id
    that our SDK sends, else its identity and host. A worker with neither is dismissed only until its connection ends. Dismissals are not
    durable: a restart of the broker forgets them.
    """

    def __init__(self) -> None:
        self.by_id: dict[bytes, Dismissal] = {}

    def add(self, peer: Peer, now_ns: int) -> None:
        if peer.lasting_id:
            self.by_id.pop(peer.lasting_id, None)
            self.by_id[peer.lasting_id] = Dismissal(peer, now_ns)
            if len(self.by_id) > DISMISSALS_MAX:
                del self.by_id[next(iter(self.by_id))]

    def remove(self, lasting_id: bytes) -> None:
        self.by_id.pop(lasting_id, None)

    def holds(self, lasting_id: bytes, now_ns: int) -> bool:
        """Whether a worker with this lasting id is dismissed."""
        if not lasting_id:
            return False
        found = self.by_id.get(lasting_id)
        if found is None:
            return False
        if found.until_ns != 0 and found.until_ns <= now_ns:
            del self.by_id[lasting_id]
            return False
        found.until_ns = 0  # it is connected: the time runs from its next departure
        return True

    def departed(self, peer: Peer, now_ns: int, kept_out_ns: int) -> None:
        """Limit a dismissal by identity once its connection ended: another program may use that identity later. A program id is never reused."""
        found = self.by_id.get(peer.lasting_id) if peer.lasting_id.startswith(BY_IDENTITY) else None
        if found is not None:
            found.until_ns = now_ns + kept_out_ns

    def absent(self, present: set[bytes], now_ns: int) -> list[Dismissal]:
        """The dismissed workers that are not connected."""
        found: list[Dismissal] = []
        for lasting_id in list(self.by_id):
            if lasting_id in present:
                continue
            one = self.by_id[lasting_id]
            if one.until_ns != 0 and one.until_ns <= now_ns:
                del self.by_id[lasting_id]
            else:
                found.append(one)
        return found


@final
class LostWorker:
    """A worker that is gone, and its leases. It may rejoin under another number before all of them are released."""

    def __init__(self, peer: Peer, reason: int, why: int, promoted: list[Serving]) -> None:
        self.peer = peer
        self.number = peer.number
        self.leases = peer.work.leases
        self.reason = reason  # why the worker left
        self.why = why  # why its leases end
        self.promoted = promoted  # claims that waited for its claims to end


@final
class Roster:
    """The workers, and the names of the queues they and the clients use."""

    def __init__(self, state: State, log: FactLog, dispatch: Dispatch, settling: Settling) -> None:
        self.state = state
        self.log = log
        self.dispatch = dispatch
        self.settling = settling
        self.workers: dict[int, Peer] = {}
        self.lost: deque[LostWorker] = deque()  # not all of their leases are released yet
        self.dismissals = Dismissals()

    def check_name(self, name: bytes) -> int:
        """Whether a queue of this name may be created: TAKEN, or why not."""
        if len(name) > NAME_SIZE_MAX:
            return enums.TOO_LONG
        is_full = len(self.state.queues) >= QUEUES_MAX or self.state.next_queue_no + SERVED_MAX > QUEUE_NO_MAX
        return enums.TOO_MANY_QUEUES if is_full else enums.TAKEN

    def name_queue(self, name: bytes) -> Queue:
        number = self.state.next_queue_no
        self.log.numbered(QUEUE_NAMED, number, 0, name)
        return self.state.on_queue_named(number, name)

    def queue_of(self, name: bytes) -> Queue:
        queue = self.state.queues.get(name)
        return queue if queue is not None else self.name_queue(name)

    def join(self, peer: Peer, queues: list[tuple[int, bytes]]) -> int:
        if len(queues) > SERVED_MAX:
            return enums.TOO_MANY_SERVED
        unknown = 0
        for _, name in queues:
            if name not in self.state.queues:
                unknown += 1
                refusal = self.check_name(name)
                if refusal != enums.TAKEN:
                    return refusal
        if unknown > 0 and len(self.state.queues) + unknown > QUEUES_MAX:
            return enums.TOO_MANY_QUEUES
        self.enter(peer)
        claims: list[bytes] = []
        for weight, name in queues:
            self.claim(peer, self.queue_of(name), weight, RANK_NORMAL, False)
            claims.append(b"%d %s" % (weight, name))
        peer.work.serves.sort(key=attrgetter("weight"), reverse=True)
        self.note_joined(peer, claims)
        return enums.TAKEN

    def consume(self, peer: Peer, name: bytes, rank: int, is_exclusive: bool) -> int:
        refusal = enums.TAKEN if name in self.state.queues else self.check_name(name)
        if refusal != enums.TAKEN:
            return refusal
        queue = self.queue_of(name)
        if not self.claims_anew(peer, queue, rank, is_exclusive):
            self.enter(peer)
            self.claim(peer, queue, rank, rank, is_exclusive)
        self.note_joined(peer, [b"%d %s" % (rank, name)])
        return enums.TAKEN

    def claim(self, peer: Peer, queue: Queue, weight: int, rank: int, is_exclusive: bool) -> None:
        serving = Serving(peer, queue.number, queue.name, weight, rank, is_exclusive)
        if peer.work.is_dismissed:
            peer.work.claims.append(serving)
        else:
            queue.add(serving)
            peer.work.serves.append(serving)

    def note_joined(self, peer: Peer, claims: list[bytes]) -> None:
        text = worker_text(peer, claims)
        self.log.numbered(WORKER_JOINED, peer.number, peer.dialect, text)
        state = self.state
        state.serving_history.on_joined(peer.number, text, state.queues, state.queues_by_no, state.now_ns)

    def claims_anew(self, peer: Peer, queue: Queue, rank: int, is_exclusive: bool) -> bool:
        """Update a repeated claim that is as exclusive as before and keep its position among the claims; False for any other claim."""
        if len(peer.work.serves) != 1 or peer.work.serves[0].queue_no != queue.number:
            return False
        serving = peer.work.serves[0]
        if serving.is_exclusive != is_exclusive:
            return False
        queue.unset_idle(serving)
        serving.rank = serving.weight = rank
        peer.work.slots = 0
        return True

    def enter(self, peer: Peer) -> None:
        """Register a new worker, or reset one that declares its queues again."""
        if peer.is_worker:
            self.promote(self.drop_servings(peer, enums.SUPERSEDED))
        else:
            peer.number = self.state.take_number()
            peer.is_worker = True
            peer.joined_ns = self.state.now_ns
            self.workers[peer.number] = peer
        peer.work.is_leaving = False
        peer.work.slots = 0
        peer.work.claims = []
        if peer.connection_peer().work.is_dismissed or self.dismissals.holds(peer.lasting_id, self.state.now_ns):
            peer.work.is_dismissed = True
            peer.work.leaving_reason = enums.BY_OPERATOR

    def leave(self, peer: Peer, reason: int = enums.WORKER_LEFT) -> None:
        peer.work.is_leaving = True
        peer.work.leaving_reason = reason
        peer.work.slots = 0
        peer.work.claims = []
        self.promote(self.drop_servings(peer, reason))

    def dismiss(self, peer: Peer) -> None:
        """Stop leasing to a worker. It stays connected and may answer what it holds; its free slots are still counted, for when it is admitted."""
        if peer.work.is_dismissed:
            return
        claims = peer.work.serves
        peer.work.is_dismissed = True
        peer.connection_peer().work.is_dismissed = True
        peer.work.leaving_reason = enums.BY_OPERATOR
        self.dismissals.add(peer, self.state.now_ns)
        self.promote(self.drop_servings(peer, enums.BY_OPERATOR))
        peer.work.claims = claims
        peer.dismissed()

    def admit(self, peer: Peer) -> None:
        """End a dismissal: the worker's claims are active again, behind those made meanwhile."""
        claims = peer.work.claims
        peer.work.claims = []
        peer.work.is_dismissed = False
        peer.connection_peer().work.is_dismissed = False
        self.dismissals.remove(peer.lasting_id)
        names: list[bytes] = []
        for claim in claims:
            if claim.queue in self.state.queues or self.check_name(claim.queue) == enums.TAKEN:
                self.claim(peer, self.queue_of(claim.queue), claim.weight, claim.rank, claim.is_exclusive)
                names.append(b"%d %s" % (claim.weight, claim.queue))
        if names:
            self.note_joined(peer, names)
        peer.admitted()
        self.dispatch.feed(peer)

    def lose(self, peer: Peer, reason: int) -> None:
        if not peer.is_worker:
            return
        is_going = peer.work.is_leaving or peer.work.is_dismissed
        if reason == enums.CONNECTION_ENDED and is_going and not peer.work.leases:
            reason = peer.work.leaving_reason  # it had finished its leases: an orderly departure
        promoted = self.drop_servings(peer, reason)
        peer.is_worker = False
        peer.work.slots = 0
        del self.workers[peer.number]
        if peer.work.is_dismissed:
            peer.work.claims = []
            self.dismissals.departed(peer, self.state.now_ns, self.state.settings.dismissed_ns)
        why = enums.WORKER_LEFT if is_going else enums.RETURNED if peer.is_relay else enums.WORKER_LOST
        self.lost.append(LostWorker(peer, reason, why, promoted))
        peer.work.leases = {}
        peer.work.timed_leases = 0
        if len(self.lost) == 1:
            self.take_back()

    def has_more(self) -> bool:
        """Whether work was interrupted to let other work run: `go_on` should be called soon."""
        return bool(self.lost) or self.dispatch.has_more()

    def go_on(self) -> None:
        if self.lost:
            self.take_back()
        self.dispatch.go_on()

    def take_back(self) -> None:
        """Release the leases of a lost worker in batches. Its worker_left fact comes with the last batch, so that in the facts no lease is held by a
        worker that has left before."""
        lost = self.lost[0]
        if len(lost.leases) <= LEASES_PER_STEP_MAX:
            self.log.numbered(WORKER_LEFT_FACT, lost.number, lost.reason, b"")
            self.state.serving_history.on_left(lost.number, lost.reason, self.state.queues_by_no, self.state.now_ns)
        for number in list(lost.leases)[:LEASES_PER_STEP_MAX]:
            message = lost.leases.pop(number)
            if message.worker is lost.peer and message.worker_no == lost.number:  # else settled meanwhile
                message.lease_until_ns = 0
                self.settling.end_attempt(message, lost.why, b"")
        if not lost.leases:
            self.lost.popleft()
            self.promote(lost.promoted)  # only now that its messages are back in their lines

    def drop_servings(self, peer: Peer, reason: int) -> list[Serving]:
        """End a worker's claims; returns the waiting claims of others that become active."""
        promoted: list[Serving] = []
        for serving in peer.work.serves:
            queue = self.state.queues_by_no[serving.queue_no]
            promoted.extend(queue.drop(serving))
            queue.last_worker_left_ns = self.state.now_ns
            queue.last_worker_left_reason = reason
        peer.work.serves = []
        return promoted

    def promote(self, promoted: list[Serving]) -> None:
        promoted.sort(key=attrgetter("rank"), reverse=True)
        for serving in promoted:
            serving.peer.promoted(serving.queue)
            self.dispatch.feed(serving.peer)

    def has_room_elsewhere(self, queue: Queue, peer: Peer) -> bool:
        """Whether another worker has a free slot for a queue."""
        return any(
            s.peer is not peer and s.takes() and s.peer.work.slots > 0 and not s.peer.is_blocked for s in queue.servings
        )

    def has_another(self, queue: Queue, peer: Peer) -> bool:
        """Whether another worker takes messages of a queue."""
        return any(serving.peer is not peer and serving.takes() for serving in queue.servings)
