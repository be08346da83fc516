"""The core: commands decide, facts are written, mutators apply.

Every method that changes durable state writes its fact to `log` and calls the mutator of `State` that replay calls too. What peers
are to be told is said through their verbs; the runtime sends it only once the facts written before are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from dragoman.core.dispatch import Dispatch
from dragoman.core.lifecycle import ANSWER, CANCEL, LEASED, STATE_NAMES
from dragoman.core.peek import peek_by_id
from dragoman.core.queue import Queue
from dragoman.core.routes import Routes
from dragoman.core.schedule import Schedule, is_cron, next_due
from dragoman.core.settings import CoreSettings
from dragoman.core.settling import Settling
from dragoman.core.state import State
from dragoman.core.topics import Topics
from dragoman.limits import (
    HEADERS_SIZE_MAX,
    ID_SIZE_MAX,
    NAME_SIZE_MAX,
    NOTES_MAX,
    QUEUES_MAX,
    SCHEDULES_MAX,
)
from dragoman.model.exchange import Exchange, QueueCount
from dragoman.model.message import NOWHERE, Message
from dragoman.model.peer import Peer
from dragoman.model.records import (
    LATE,
    QUEUE_NAMED,
    SCHEDULED,
    STARTED,
    UNSCHEDULED,
    WORKER_JOINED,
    WORKER_LEFT,
    FactLog,
    schedule_text,
    worker_text,
)
from dragoman.model.serving import Serving
from dragoman.model.words import (
    ANSWERED,
    ANSWERED_LATE,
    BAD_SCHEDULE,
    BY_OPERATOR,
    CONNECTION_ENDED,
    DROPPED,
    DUPLICATE,
    FAILED,
    KEEP_SAME,
    KEPT_WANTED,
    NO_HASTE,
    NOT_FOUND,
    QUEUE_FULL,
    SUPERSEDED,
    TAKEN,
    TOO_LONG,
    WORKER_LOST,
    WRONG_STATE,
)
from dragoman.model.words import (
    QUEUES_MAX as TOO_MANY_QUEUES,
)
from dragoman.model.words import (
    SCHEDULES_MAX as TOO_MANY_SCHEDULES,
)
from dragoman.model.words import WORKER_LEFT as REASON_LEFT


@final
class Core(Exchange):
    """One broker's mind."""

    def __init__(self, settings: CoreSettings, load: Callable[[int], bytes]) -> None:
        self.settings = settings
        self.log = FactLog()
        self.load_kept = load
        self.state = State(settings, self.load)
        self.routes = Routes()
        self.dispatch = Dispatch(self.state, self.log, self.routes)
        self.settling = Settling(self.state, self.log, self.routes, self.dispatch)
        self.topics = Topics()
        self.workers: dict[int, Peer] = {}
        self.notes: dict[str, int] = {}
        self.refusing: int = TAKEN  # why new work is refused at the moment
        self.now_ns = 0

    def load(self, place: int) -> bytes:
        """The record at a place, whether the journal has it already or not."""
        record = self.log.find(place)
        return record if record else self.load_kept(place)

    def set_time(self, now_ns: int) -> None:
        """One clock read per tick; never backwards, and still while a block fills: its facts share one instant."""
        if now_ns > self.now_ns and self.log.count == 0:
            self.now_ns = now_ns
            self.state.now_ns = now_ns

    def start(self, boot_no: int, version: bytes) -> None:
        """A new boot: its number is kept before anything is numbered by it."""
        self.log.numbered(STARTED, boot_no, 0, version)
        self.state.on_started(boot_no)

    # -- clients --------------------------------------------------------------------------------------------------------

    def hello(self, peer: Peer) -> None:
        self.routes.add(peer)
        self.settling.leftovers.say_to(peer)

    def submit(self, message: Message) -> int:
        if self.refusing != TAKEN:
            return self.refusing
        state = self.state
        queue = state.queues.get(message.queue)
        if queue is None:
            refusal = self.check_name(message.queue)
            if refusal != TAKEN:
                return refusal
            queue = self.name_queue(message.queue)
        refusal = self.check_limits(message, queue)
        if refusal != TAKEN:
            return refusal
        message.number = state.take_number()
        message.queue_no = queue.number
        self.log.accepted(message)
        state.on_accepted(message, queue)
        if message.flags & KEPT_WANTED:
            client = message.client
            if client is not None:
                client.kept(message)
        self.place(message, queue)
        return TAKEN

    def place(self, message: Message, queue: Queue) -> None:
        """A fresh message goes to an idle worker or into its line."""
        if message.due_ns <= self.now_ns and queue.idle and self.dispatch.offer(message, queue):
            return
        self.state.enqueue(message, queue)

    def check_name(self, name: bytes) -> int:
        if len(name) > NAME_SIZE_MAX:
            return TOO_LONG
        return TOO_MANY_QUEUES if len(self.state.queues) >= QUEUES_MAX else TAKEN

    def check_limits(self, message: Message, queue: Queue) -> int:
        if len(message.client_id) > ID_SIZE_MAX or len(message.headers) > HEADERS_SIZE_MAX:
            return TOO_LONG
        most = self.settings.queue_messages_max
        if most != 0 and queue.waiting + queue.delayed >= most:
            return QUEUE_FULL
        if message.dedupe:
            if len(message.dedupe) > ID_SIZE_MAX:
                return TOO_LONG
            known = queue.dedupe.get(message.dedupe)
            if known is not None and known[1] > self.now_ns:
                self.adopt(known[0], message)
                return DUPLICATE
        return TAKEN

    def adopt(self, number: int, again: Message) -> None:
        """A client that came back asks once more: the answer of the first goes to its new connection."""
        first = self.state.messages.get(number)
        if again.client is not None and again.client.takes_one_answer:
            return  # it hears of the duplicate
        if first is not None and self.routes.client_of(first) is None:
            first.client = again.client
            first.address = again.address if first.where == NOWHERE else first.address

    def name_queue(self, name: bytes) -> Queue:
        number = len(self.state.queues) + 1
        self.log.numbered(QUEUE_NAMED, number, 0, name)
        return self.state.on_queue_named(number, name)

    def find(self, wire_id: bytes) -> Message | None:
        return self.state.by_wire_id.get(wire_id)

    def lookup(self, client_id: bytes) -> Message | None:
        message = self.state.by_wire_id.get(client_id)
        return message if message is not None else peek_by_id(self.state, client_id)

    def state_name(self, message: Message) -> str:
        return STATE_NAMES[message.state]

    def settled_state(self, client_id: bytes) -> str:
        return self.settling.state_of(client_id)

    def cancel(self, message: Message, reason: int) -> int:
        held = self.state.take(message.number)  # what was found may be a copy of one on disk
        if held is None:
            return NOT_FOUND
        if held.state > LEASED and reason != BY_OPERATOR and reason != DROPPED:
            return WRONG_STATE
        self.settling.close(held, CANCEL, reason, b"", None)
        return TAKEN

    # -- workers --------------------------------------------------------------------------------------------------------

    def join(self, peer: Peer, queues: list[tuple[int, bytes]]) -> int:
        unknown = 0
        for _, name in queues:
            if name not in self.state.queues:
                unknown += 1
                refusal = self.check_name(name)
                if refusal != TAKEN:
                    return refusal
        if unknown > 0 and len(self.state.queues) + unknown > QUEUES_MAX:
            return TOO_MANY_QUEUES
        if peer.is_worker:
            self.drop_servings(peer, SUPERSEDED)
        else:
            peer.number = self.state.take_number()
            peer.is_worker = True
            peer.joined_ns = self.now_ns
            self.workers[peer.number] = peer
        peer.is_leaving = False
        peer.slots = 0
        names: list[bytes] = []
        for weight, name in queues:
            queue = self.state.queues.get(name)
            if queue is None:
                queue = self.name_queue(name)
            serving = Serving(peer, queue.number, name, weight)
            queue.add(serving)
            peer.serves.append(serving)
            names.append(b"%d %s" % (weight, name))
        peer.serves.sort(key=serving_weight, reverse=True)
        self.log.numbered(WORKER_JOINED, peer.number, peer.dialect, worker_text(peer, names))
        return TAKEN

    def ready(self, peer: Peer, slots: int) -> None:
        self.dispatch.add_slots(peer, slots)

    def unblock(self, peer: Peer) -> None:
        peer.is_blocked = False
        self.dispatch.feed(peer)

    def reply(self, peer: Peer, message: Message, value: bytes, is_failure: bool) -> None:
        """The first answer wins, from whoever held the message; a failure counts only from its present holder. What nobody ever
        held has no answer: this one is to an earlier message of the same id."""
        holder = message.worker
        if message.attempt == 0 or (is_failure and holder is not peer):
            self.late(peer, message.wire_id)
            return
        if is_failure:
            peer.failed += 1
            self.settling.give_back(message, FAILED, value)
            return
        peer.settled += 1
        reason = ANSWERED if holder is peer or holder is None else ANSWERED_LATE
        self.settling.close(message, ANSWER, reason, value, peer)

    def late(self, peer: Peer, wire_id: bytes) -> None:
        """An answer to something settled already, or never asked: recorded, dropped. A stranger's is only counted."""
        if peer.is_worker:
            self.log.numbered(LATE, peer.number, peer.dialect, wire_id[:ID_SIZE_MAX])
        else:
            self.note(peer, "LATE_FROM_A_STRANGER")

    def leave(self, peer: Peer) -> None:
        peer.is_leaving = True
        peer.slots = 0
        self.drop_servings(peer, REASON_LEFT)

    def lose(self, peer: Peer, reason: int) -> None:
        if not peer.is_worker:
            return
        self.drop_servings(peer, reason)
        peer.is_worker = False
        peer.slots = 0
        del self.workers[peer.number]
        self.log.numbered(WORKER_LEFT, peer.number, reason, b"")
        why = REASON_LEFT if peer.is_leaving else WORKER_LOST
        for message in list(peer.held.values()):
            self.settling.give_back(message, why, b"")
        assert not peer.held, "a lost worker holds nothing"

    def goodbye(self, peer: Peer) -> None:
        peer.is_connected = False
        self.routes.remove(peer)
        self.lose(peer, CONNECTION_ENDED)

    def drop_servings(self, peer: Peer, reason: int) -> None:
        for serving in peer.serves:
            queue = self.state.queues_by_no[serving.queue_no]
            queue.drop(serving)
            queue.last_worker_left_ns = self.now_ns
            queue.last_worker_left_reason = reason
        peer.serves = []

    # -- schedules ------------------------------------------------------------------------------------------------------

    def schedule(self, template: Message, interval_ns: int, cron: str, runs: int) -> int:
        if self.refusing != TAKEN:
            return self.refusing
        if interval_ns <= 0 and not is_cron(cron):
            return BAD_SCHEDULE
        if len(template.client_id) > ID_SIZE_MAX or len(template.headers) > HEADERS_SIZE_MAX:
            return TOO_LONG
        refusal = TAKEN if template.queue in self.state.queues else self.check_name(template.queue)
        if refusal != TAKEN:
            return refusal
        if len(self.state.schedules) >= SCHEDULES_MAX and template.dedupe not in self.state.schedules_by_key:
            return TOO_MANY_SCHEDULES
        queue = self.state.queues.get(template.queue)
        if queue is None:
            queue = self.name_queue(template.queue)
        template.queue_no = queue.number
        earlier = self.state.schedules_by_key.get(template.dedupe)
        if template.flags & KEEP_SAME and earlier is not None and earlier.is_like(template, interval_ns, cron, runs):
            return TAKEN
        schedule = Schedule(self.state.take_number(), template, max(interval_ns, 0), cron, runs)
        if not template.flags & NO_HASTE:
            schedule.next_due_ns = self.now_ns  # by cron too, as the original does
        else:
            schedule.next_due_ns = next_due(schedule, self.now_ns, self.settings.timezone)
        self.log.numbered(
            SCHEDULED, schedule.number, schedule.next_due_ns, schedule_text(template, interval_ns, cron, runs)
        )
        self.state.on_scheduled(schedule)
        return TAKEN

    def unschedule(self, key: bytes) -> int:
        schedule = self.state.schedules_by_key.get(key)
        if schedule is None:
            return NOT_FOUND
        self.log.numbered(UNSCHEDULED, schedule.number, BY_OPERATOR, b"")
        self.state.on_unscheduled(schedule)
        return TAKEN

    def is_cron(self, expression: str) -> bool:
        return is_cron(expression)

    # -- topics and oddities --------------------------------------------------------------------------------------------

    def publish(self, topic: bytes, body: bytes) -> int:
        return self.topics.publish(topic, body)

    def subscribe(self, peer: Peer, prefix: bytes) -> None:
        self.topics.subscribe(peer, prefix)

    def unsubscribe(self, peer: Peer, prefix: bytes) -> None:
        self.topics.unsubscribe(peer, prefix)

    def note(self, peer: Peer, code: str) -> None:
        if code in self.notes or len(self.notes) < NOTES_MAX:
            self.notes[code] = self.notes.get(code, 0) + 1

    # -- counts ---------------------------------------------------------------------------------------------------------

    def queue_counts(self) -> list[QueueCount]:
        counts: list[QueueCount] = []
        for queue in self.state.queues.values():
            leased_ever = max(queue.accepted - queue.waiting - queue.delayed, 1)
            name = queue.name.decode("utf-8", "backslashreplace")
            mean_ms = queue.wait_ns // leased_ever // 1_000_000
            settled = queue.done + queue.failed
            counts.append(
                QueueCount(name, queue.waiting, queue.leased, settled, mean_ms, queue.wait_max_ns // 1_000_000)
            )
        return counts

    def all_workers(self) -> list[Peer]:
        return list(self.workers.values())


def serving_weight(serving: Serving) -> int:
    return serving.weight
