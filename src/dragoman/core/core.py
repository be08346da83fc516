"""The core: each command decides, writes its fact and applies it.

Every method that changes durable state writes its fact to `log` and calls the mutator of `State` that replay calls too. Peers are
notified through the methods of `Peer`; the runtime sends that output only once the facts written before it are kept.

| command                                | implemented by                             | facts                                             |
|----------------------------------------|--------------------------------------------|---------------------------------------------------|
| start                                  | here                                       | started, released, queue_named, quarantined       |
| submit                                 | here; Dispatch.offer                       | queue_named, accepted, leased                     |
| schedule, unschedule                   | here                                       | queue_named, scheduled; unscheduled               |
| join, consume                          | Roster                                     | queue_named, worker_joined                        |
| ready, unblock                         | Dispatch.add_slots, feed                   | leased                                            |
| delivered                              | here                                       | delivered                                         |
| reply; reject; cancel, cancel_all      | Settling.close                             | closed; late for an answer that does not count    |
| reply with a failure; give_back        | Settling.end_attempt                       | released, closed or quarantined                   |
| leave                                  | Roster.leave                               | none; worker_left when it is lost                 |
| lose, goodbye                          | Roster.lose, take_back                     | worker_left; per lease as give_back               |
| publish, note                          | Topics.publish; here                       | none; Timers writes the counts: published, noted  |
| requeue, pause, drain, purge           | core/operator                              | requeued; paused, resumed; closed                 |
| schedules, steps of the wall clock     | Timers                                     | fired, accepted, unscheduled; clock_stepped       |
| expiries, timeouts, unused queues      | Timers; Forgetting                         | closed; as give_back; queue_forgotten             |

What ends a lease or adds a slot may lease waiting messages at once: `leased` follows.
"""

from __future__ import annotations

from itertools import islice
from typing import final

from mypy_extensions import i64

from dragoman.core.dispatch import Dispatch
from dragoman.core.lifecycle import ANSWER, CANCEL, LEASED, QUARANTINED, REJECT, leased_messages
from dragoman.core.quarantine import Quarantine
from dragoman.core.retries import backoff_ns
from dragoman.core.roster import Roster
from dragoman.core.routes import Routes
from dragoman.core.settings import CoreSettings
from dragoman.core.settling import Settling
from dragoman.core.state.forgetting import Forgetting
from dragoman.core.state.queue import Queue
from dragoman.core.state.schedule import Schedule, is_cron, next_due
from dragoman.core.state.state import State
from dragoman.core.storage.stored import BeginLoad, Look, ReadRecord, StoredRecords, peek_by_id, peek_expiring
from dragoman.core.tallies import Tallies
from dragoman.limits import HEADERS_SIZE_MAX, ID_SIZE_MAX, NOTES_MAX, QUEUES_LISTED_MAX, SCHEDULES_MAX
from dragoman.model import enums
from dragoman.model.exchange import Exchange, QueueCount
from dragoman.model.facts.layout import LATE, NO_DIALECT, QUEUE_NAMED, SCHEDULED, STARTED, UNSCHEDULED
from dragoman.model.facts.records import FactLog, schedule_text
from dragoman.model.message import NOWHERE, Message, fact_id_of
from dragoman.model.peer import Peer
from dragoman.model.topics import Topics


@final
class Core(Exchange):
    """Decides every command of one broker."""

    def __init__(
        self,
        settings: CoreSettings,
        read_record: ReadRecord,
        look: Look | None = None,
        begin_load: BeginLoad | None = None,
    ) -> None:
        self.settings = settings
        self.log = FactLog()
        self.state = State(settings, StoredRecords(self.log, read_record, look, begin_load))
        self.ids = self.state.ids
        self.routes = Routes()
        self.tallies = Tallies()
        self.quarantine = Quarantine(self.state, self.log, self.routes)
        self.dispatch = Dispatch(self.state, self.log, self.routes, self.tallies, self.quarantine)
        self.settling = Settling(self.state, self.log, self.routes, self.dispatch, self.tallies)
        self.roster = Roster(self.state, self.log, self.dispatch, self.settling)
        self.workers = self.roster.workers
        self.forgetting = Forgetting(self.state, self.log, self.tallies)
        self.topics = Topics()
        self.notes: dict[str, int] = {}
        self.refusing: int = enums.TAKEN  # why new work is refused at the moment
        self.now_ns = 0
        self.wall_ahead_ns: int = 0  # wall clock minus `now_ns`: cron uses the wall clock, all else `now_ns`

    def set_time(self, now_ns: int) -> None:
        """Advance the time: when a tick is scheduled, at a new connection and at a sweep. It never goes back, and does not change while a block
        fills: its facts share one instant."""
        if now_ns > self.now_ns and self.log.count == 0:
            self.now_ns = now_ns
            self.state.now_ns = now_ns

    def start(self, boot_no: int, version: bytes, id_key: bytes = b"") -> None:
        """Begin a boot: its number is journaled before anything is numbered by it. `id_key` is used if the journal has no key yet; if that is
        empty too, ids on the wire are plain numbers."""
        state = self.state
        self.log.numbered(STARTED, boot_no, 0, version)
        state.ids.begin(id_key, boot_no)
        if state.ids.key:
            state.ids.write_key(self.log.out)
        # One fact each for readers that know no state before this boot; replay derives all of it from `started`.
        for m in leased_messages(state.messages):
            self.log.released(m, m.worker_no, NO_DIALECT, m.retries_left, m.due_ns, enums.BROKER_STARTED, False)
        for queue in state.queues.values():
            self.log.numbered(QUEUE_NAMED, queue.number, 0, queue.name)
        state.on_started(boot_no)
        self.quarantine.put_all_damaged()

    def hello(self, peer: Peer) -> None:
        self.routes.add(peer)
        self.settling.undelivered.send_to(peer)

    def submit(self, message: Message) -> int:
        if self.refusing != enums.TAKEN:
            return self.refusing
        state = self.state
        queue = state.queue_named(message.queue)
        if queue is None:  # named only if nothing refuses the message; a new queue itself refuses none
            refusal = self.roster.check_name(message.queue)
            if refusal == enums.TAKEN:
                refusal = self.check_message(message)
            if refusal != enums.TAKEN:
                return refusal
            queue = self.roster.name_queue(message.queue)
        else:
            refusal = self.check_limits(message, queue)
            if refusal != enums.TAKEN:
                return refusal
        message.number = state.take_number()
        message.queue = queue.name  # one object for all messages of a queue: its hash is computed once
        message.queue_no = queue.number
        self.log.accepted(message)
        state.on_accepted(message, queue)
        self.tallies.count_accepted(message)
        if message.flags & enums.KEPT_WANTED:
            client = message.client
            if client is not None:
                client.kept(message)
        self.lease_or_enqueue(message, queue)
        return enums.TAKEN

    def lease_or_enqueue(self, message: Message, queue: Queue) -> None:
        """Lease a message that was never leased to an idle worker, or enqueue it."""
        if message.due_ns <= self.now_ns and queue.idle > 0 and self.dispatch.offer(message, queue):
            return
        self.state.enqueue(message, queue)

    def check_message(self, message: Message) -> int:
        """The limits that do not depend on the queue."""
        if len(message.client_id) > ID_SIZE_MAX or len(message.headers) > HEADERS_SIZE_MAX:
            return enums.TOO_LONG
        if len(message.dedupe) > ID_SIZE_MAX:
            return enums.TOO_LONG
        if self.state.memory_size() > i64(self.settings.messages_size_max):
            return enums.MEMORY_FULL
        return enums.TAKEN

    def check_limits(self, message: Message, queue: Queue) -> int:
        refusal = self.check_message(message)
        if refusal != enums.TAKEN:
            return refusal
        most = self.settings.queue_messages_max
        if most != 0 and queue.waiting + queue.delayed >= most:
            return enums.QUEUE_FULL
        if queue.strict > 0 and queue.strict == len(queue.servings) and not queue.is_expressible(message):
            return enums.INEXPRESSIBLE
        if len(message.dedupe) > 0:
            known = queue.dedupe.get(message.dedupe)
            if known is not None and known[1] > self.now_ns:
                self.adopt(known[0], message)
                return enums.DUPLICATE
        return enums.QUEUE_CLOSED if queue.is_draining else enums.TAKEN

    def adopt(self, number: int, again: Message) -> None:
        """A client reconnected and sent the same request again: the answer to the first one goes to its new connection."""
        first = self.state.messages.get(number)
        if again.client is not None and again.client.takes_one_answer:
            return  # it is sent the refusal as its one answer
        if first is not None and again.client is not None and self.routes.client_of(first) is None:
            self.readdress(first, again.client)

    def find(self, wire_id: bytes) -> Message | None:
        return self.state.find(wire_id)

    def by_digits(self, peer: Peer, text: bytes, at: int) -> Message | None:
        return self.ids.find(self.state.messages, text, at, peer)

    def by_number(self, number: int) -> Message | None:
        return self.state.messages.get(number)

    def fetch(self, number: int) -> Message | None:
        return self.state.take(number)

    def body_of(self, message: Message) -> bytes:
        """Empty if its record is damaged."""
        self.state.ensure_body(message)
        return message.body

    def open_messages(self, dialect: int) -> list[Message]:
        found = {m.number: m for m in peek_expiring(self.state, dialect)}
        found.update({m.number: m for m in self.state.messages.values() if m.dialect == dialect})
        return [found[number] for number in sorted(found)]

    def readdress(self, message: Message, client: Peer) -> None:
        """A message that waits in a line keeps its address: the line is chosen by the address it was accepted with."""
        message.client = client
        if message.where == NOWHERE:
            message.address = client.address

    def lookup(self, client_id: bytes) -> Message | None:
        message = self.state.by_wire_id.get(client_id)
        return message if message is not None else peek_by_id(self.state, client_id)

    def state_name(self, message: Message) -> str:
        if message.state == LEASED and message.delivered_ns != 0:
            return "delivered"
        return enums.STATE_NAMES[message.state]

    def settled_state(self, client_id: bytes) -> str:
        return self.settling.state_of(client_id)

    def cancel(self, message: Message, reason: int) -> int:
        held = self.state.take(message.number)  # the argument may be a copy of a message on disk
        if held is None:
            return enums.NOT_FOUND
        if held.state > LEASED and reason != enums.BY_OPERATOR and reason != enums.DROPPED:
            return enums.WRONG_STATE
        self.settling.close(held, CANCEL, reason, b"", None)
        return enums.TAKEN

    def cancel_all(self, client: Peer, reason: int) -> int:
        return self.settling.cancel_all(client, reason)

    def join(self, peer: Peer, queues: list[tuple[int, bytes]]) -> int:
        return self.roster.join(peer, queues)

    def consume(self, peer: Peer, queue: bytes, rank: int, is_exclusive: bool) -> int:
        return self.roster.consume(peer, queue, rank, is_exclusive)

    def ready(self, peer: Peer, slots: int) -> None:
        self.dispatch.add_slots(peer, slots)

    def busy(self, peer: Peer) -> None:
        peer.work.slots = 0

    def unblock(self, peer: Peer) -> None:
        peer.is_blocked = False
        self.dispatch.feed(peer)

    def reply(self, peer: Peer, message: Message, value: bytes, is_failure: bool) -> None:
        """Settle with the first answer, from any worker that held the message; a failure counts only from its current holder. A message
        that was never leased has no answer: this one belongs to an earlier message of the same id."""
        holder = message.worker
        if message.attempt == 0 or (is_failure and holder is not peer):
            self.late(peer, fact_id_of(message))
            return
        if is_failure:
            peer.work.failed += 1
            self.settling.end_attempt(message, enums.FAILED, value)
            return
        peer.work.settled += 1
        reason = enums.ANSWERED if holder is peer or holder is None else enums.ANSWERED_LATE
        if message.flags & enums.HANDOVER_WANTED and not message.is_handed_over:
            self.dispatch.hand_over(message)  # the worker answered without confirming the delivery first
        self.settling.close(message, ANSWER, reason, value, peer)

    def delivered(self, peer: Peer, message: Message) -> None:
        if message.worker is not peer or message.delivered_ns != 0:
            return
        self.log.delivered(message, peer.number)
        self.state.on_delivered(message)
        if message.flags & enums.HANDOVER_WANTED and not message.is_handed_over:
            self.dispatch.hand_over(message)

    def reject(self, peer: Peer, message: Message, value: bytes) -> None:
        if message.attempt == 0 or message.state == QUARANTINED:
            self.late(peer, fact_id_of(message))
            return
        peer.work.failed += 1
        self.settling.close(message, REJECT, enums.REFUSED_BY_WORKER, value, peer)

    def give_back(self, peer: Peer, message: Message) -> None:
        if message.worker is not peer:
            self.late(peer, fact_id_of(message))
            return
        peer.work.failed += 1
        queue = self.state.queues_by_no[message.queue_no]
        may_end = message.retries_left > 0 and message.flags & enums.GUARANTEED == 0
        if may_end and not self.roster.has_another(queue, peer):
            self.settling.close(message, REJECT, enums.RETURNED, b"", peer)
            return
        message_due_ns = (
            0 if self.roster.has_room_elsewhere(queue, peer) else self.now_ns + backoff_ns(1, self.settings)
        )
        was_blocked = peer.is_blocked
        peer.is_blocked = True  # other free workers come before the one that returned it
        self.settling.end_attempt(message, enums.RETURNED, b"", message_due_ns)
        peer.is_blocked = was_blocked
        self.dispatch.feed(peer)

    def late(self, peer: Peer, wire_id: bytes) -> None:
        """Drop an answer to a message that is settled or unknown. A worker's is recorded as a fact; any other peer's is only counted."""
        if peer.is_worker:
            self.log.numbered(LATE, peer.number, peer.dialect, wire_id[:ID_SIZE_MAX])
        else:
            self.note(peer, "LATE_FROM_A_STRANGER")

    def leave(self, peer: Peer) -> None:
        self.roster.leave(peer)

    def lose(self, peer: Peer, reason: int) -> None:
        self.roster.lose(peer, reason)

    def goodbye(self, peer: Peer) -> None:
        peer.is_connected = False
        self.routes.remove(peer)
        self.roster.lose(peer, enums.CONNECTION_ENDED)

    def schedule(self, template: Message, interval_ns: int, cron: str, runs: int) -> int:
        if self.refusing != enums.TAKEN:
            return self.refusing
        if interval_ns <= 0 and not is_cron(cron):
            return enums.BAD_SCHEDULE
        if len(template.client_id) > ID_SIZE_MAX or len(template.headers) > HEADERS_SIZE_MAX:
            return enums.TOO_LONG
        refusal = enums.TAKEN if template.queue in self.state.queues else self.roster.check_name(template.queue)
        if refusal != enums.TAKEN:
            return refusal
        if len(self.state.schedules) >= SCHEDULES_MAX and template.dedupe not in self.state.schedules_by_key:
            return enums.TOO_MANY_SCHEDULES
        template.queue_no = self.roster.queue_of(template.queue).number
        earlier = self.state.schedules_by_key.get(template.dedupe)
        if (
            template.flags & enums.KEEP_SAME
            and earlier is not None
            and earlier.is_like(template, interval_ns, cron, runs)
        ):
            return enums.TAKEN
        schedule = Schedule(self.state.take_number(), template, max(interval_ns, 0), cron, runs)
        clock_ns = self.now_ns if schedule.interval_ns > 0 else self.now_ns + self.wall_ahead_ns
        if not template.flags & enums.NO_HASTE:
            schedule.next_due_ns = clock_ns  # a cron schedule too: the original EventMQ does so
        else:
            schedule.next_due_ns = next_due(schedule, clock_ns, self.settings.timezone)
        self.log.numbered(
            SCHEDULED, schedule.number, schedule.next_due_ns, schedule_text(template, interval_ns, cron, runs)
        )
        self.state.on_scheduled(schedule)
        return enums.TAKEN

    def unschedule(self, key: bytes, reason: int) -> int:
        schedule = self.state.schedules_by_key.get(key)
        if schedule is None:
            return enums.NOT_FOUND
        self.log.numbered(UNSCHEDULED, schedule.number, reason, b"")
        self.state.on_unscheduled(schedule)
        return enums.TAKEN

    def is_cron(self, expression: str) -> bool:
        return is_cron(expression)

    def publish(self, peer: Peer, topic: bytes, body: bytes) -> int:
        if topic in self.topics.reserved:
            self.note(peer, "RESERVED_TOPIC")
            return 0
        return self.topics.publish(topic, body)

    def note(self, peer: Peer, code: str) -> None:
        if code in self.notes or len(self.notes) < NOTES_MAX:
            self.notes[code] = self.notes.get(code, 0) + 1

    def queue_counts(self) -> list[QueueCount]:
        counts: list[QueueCount] = []
        for queue in islice(self.state.queues.values(), QUEUES_LISTED_MAX):
            leased_ever = max(queue.accepted - queue.waiting - queue.delayed, 1)
            name = enums.shown(queue.name)
            mean_ms = queue.wait_ns // leased_ever // 1_000_000
            settled = queue.done + queue.failed
            counts.append(
                QueueCount(name, queue.waiting, queue.leased, settled, mean_ms, queue.wait_max_ns // 1_000_000)
            )
        return counts

    def all_workers(self) -> list[Peer]:
        return list(self.workers.values())
