"""Ends attempts: a message is retried, settled or quarantined, and its client is notified."""

from __future__ import annotations

from collections import deque
from typing import Final, final

from dragoman.core.dispatch import Dispatch
from dragoman.core.lifecycle import ANSWER, CANCEL, DONE, EXPIRE, LEASED, REJECT, moved
from dragoman.core.retries import AGAIN, END, judge
from dragoman.core.routes import Routes
from dragoman.core.state.lines import line_key
from dragoman.core.state.state import State
from dragoman.core.tallies import Tallies
from dragoman.limits import ANSWERS_HELD_NS, ANSWERS_HELD_SIZE_MAX, ENDED_REMEMBERED_MAX
from dragoman.model import enums
from dragoman.model.facts.records import FactLog
from dragoman.model.message import Message
from dragoman.model.peer import ANONYMOUS, Peer

UNDELIVERED_SIZE: Final = 512  # bytes that even an empty answer counts as


@final
class UndeliveredAnswer:
    def __init__(self, message: Message, outcome: int, reason: int, value: bytes, until_ns: int) -> None:
        self.message = message
        self.outcome = outcome
        self.reason = reason
        self.value = value
        self.until_ns = until_ns
        self.is_sent: bool = False


@final
class UndeliveredAnswers:
    """Answers for clients that are disconnected, by address and in the order in which they expire: stored in memory, for a limited time and up to a
    limited size.

    After a restart or a broken connection a worker may reconnect before the client. The message is settled (with `reply_undeliverable`);
    its answer is sent when a client with its address connects.
    """

    def __init__(self) -> None:
        self.by_address: dict[bytes, deque[UndeliveredAnswer]] = {}
        self.line: deque[UndeliveredAnswer] = deque()
        self.size: int = 0
        self.size_max: int = ANSWERS_HELD_SIZE_MAX

    def add(self, message: Message, outcome: int, reason: int, value: bytes, now_ns: int) -> None:
        answer = UndeliveredAnswer(message, outcome, reason, value, now_ns + ANSWERS_HELD_NS)
        self.by_address.setdefault(message.address, deque()).append(answer)
        self.line.append(answer)
        self.size += max(len(value), UNDELIVERED_SIZE)
        while self.size > self.size_max:
            self.drop_oldest()

    def send_to(self, peer: Peer) -> None:
        """Send a peer that connected the answers kept for its address, once."""
        if peer.takes_one_answer or peer.address not in self.by_address:
            return
        for answer in self.by_address.pop(peer.address):
            answer.is_sent = True
            if answer.outcome == DONE:
                peer.answered(answer.message, answer.value)
            else:  # a worker's error text is not an answer
                peer.failed_for_good(answer.message, answer.outcome, answer.reason, answer.value)

    def sweep(self, now_ns: int) -> None:
        while self.line and (self.line[0].is_sent or self.line[0].until_ns <= now_ns):
            self.drop_oldest()

    def drop_oldest(self) -> None:
        answer = self.line.popleft()
        self.size -= max(len(answer.value), UNDELIVERED_SIZE)
        if answer.is_sent:
            return
        address = answer.message.address
        rest = self.by_address[address]
        assert rest[0] is answer, "the oldest of all is the oldest of its address"
        rest.popleft()
        if not rest:
            del self.by_address[address]


@final
class Settling:
    """Releases, settles and quarantines messages, each with its fact."""

    def __init__(self, state: State, log: FactLog, routes: Routes, dispatch: Dispatch, tallies: Tallies) -> None:
        self.state = state
        self.log = log
        self.routes = routes
        self.dispatch = dispatch
        self.tallies = tallies
        self.undelivered = UndeliveredAnswers()
        # Latest outcomes of kept requests (KEPT_WANTED) and of those whose client was away, by client id. Two halves: dropping
        # a dict's oldest key one by one gets slower with every key dropped before.
        self.ended: dict[bytes, int] = {}
        self.ended_before: dict[bytes, int] = {}

    def end_attempt(self, message: Message, reason: int, value: bytes, soonest_ns: int = 0) -> None:
        """End an attempt that did not succeed: retry (not before `soonest_ns`), settle or quarantine, as core/retries decides."""
        state = self.state
        queue = state.queues_by_no[message.queue_no]
        peer = message.worker
        assert peer is not None, "only a held message is given back"
        worker_no = message.worker_no  # at the time of the lease: the peer may have a new number by now
        died_with = worker_no if reason == enums.WORKER_LOST else 0
        deaths = len(message.died_with) if message.died_with is not None else 0
        if died_with != 0 and (message.died_with is None or died_with not in message.died_with):
            deaths += 1
        verdict = judge(message, reason, deaths, state.settings, state.now_ns)
        if verdict.what == AGAIN and 0 < message.expires_ns <= state.now_ns:
            self.close(message, EXPIRE, enums.PAST_EXPIRY, b"", peer)
            return
        if verdict.what == END:
            why = enums.RETRIES_USED_UP if message.retries_left == 0 and message.attempt > 1 else reason
            self.close(message, REJECT, why, value, peer)
            return
        if verdict.what == AGAIN:
            due_ns = max(verdict.due_ns, soonest_ns)
            self.log.released(message, worker_no, peer.dialect, verdict.retries_left, due_ns, reason, died_with != 0)
            state.on_released(message, queue, verdict.retries_left, due_ns, reason, died_with)
            self.dispatch.end_lease(message, peer)
            self.dispatch.lease_waiting(queue)
            return
        self.dispatch.quarantine.put(message, queue, worker_no, peer.dialect, verdict.reason, died_with)
        self.dispatch.end_lease(message, peer)

    def close(self, message: Message, move: int, reason: int, value: bytes, by: Peer | None) -> None:
        """Settle a message: write the closed fact, with all its timings, and notify the worker that holds it and the client."""
        state = self.state
        outcome = moved(message.state, move)
        queue = state.queue_of(message.queue_no)
        holder = message.worker
        client = self.routes.client_of(message)
        is_away = client is None and message.flags & enums.REPLY_WANTED != 0 and message.is_answerable
        if is_away and move == ANSWER:
            reason = enums.REPLY_UNDELIVERABLE
        worker_no = by.number if by is not None else 0
        worker_dialect = by.dialect if by is not None else 0
        holder_no = holder.number if holder is not None else 0
        self.log.closed(message, worker_no, worker_dialect, len(value), outcome, reason, holder_no)
        state.on_closed(message, queue, outcome)
        if holder is not None:
            self.dispatch.end_lease(message, holder)
        self.tallies.count_closed(message, queue, by, state.now_ns)
        if is_away or message.flags & enums.KEPT_WANTED:
            self.remember(message.client_id, outcome)
        if holder is not None and holder is not by:
            holder.withdraw(message, reason)
        if is_away and by is not None and can_come_back(message.address):
            self.undelivered.add(message, outcome, reason, value, state.now_ns)
        if client is None or not message.is_answerable:
            return
        message.is_answerable = False
        if outcome == DONE:
            client.answered(message, value)
        else:
            client.failed_for_good(message, outcome, reason, value)

    def cancel_all(self, client: Peer, reason: int) -> int:
        """Cancel every unsettled request of this connection that wants a reply; messages without REPLY_WANTED go on."""
        state = self.state
        numbers = [m.number for m in state.messages.values() if m.client is client or m.address == client.address]
        for queue in state.queues.values():
            for lane in queue.lanes:
                line = lane.lines.get(line_key(client.address))
                if line is not None:
                    numbers.extend(line.tail.live_numbers())
        count = 0
        for number in numbers:
            m = state.take(number)
            if m is None or m.state > LEASED or not m.flags & enums.REPLY_WANTED:
                continue
            if m.client is client or m.address == client.address:  # several clients may share a line
                self.close(m, CANCEL, reason, b"", None)
                count += 1
        return count

    def remember(self, client_id: bytes, outcome: int) -> None:
        if len(self.ended) >= ENDED_REMEMBERED_MAX // 2:
            self.ended_before = self.ended
            self.ended = {}
        self.ended[client_id] = outcome

    def state_of(self, client_id: bytes) -> str:
        """Outcome of a request, as a name; "unknown" when it is not remembered."""
        outcome = self.ended.get(client_id, -1)
        if outcome < 0:
            outcome = self.ended_before.get(client_id, -1)
        return enums.STATE_NAMES[outcome] if outcome >= 0 else "unknown"


def can_come_back(address: bytes) -> bool:
    """Whether a client may reconnect under this address: an anonymous peer's ends with its connection."""
    return len(address) > 0 and address[0] < ANONYMOUS
