"""Timers of the core: `sweep` does what is due, `when_next` returns when something is due next.

No timer object per message: delays are a heap, expiries are grouped by tenths of a second, and leases with a timeout are scanned
worker by worker.
"""

from __future__ import annotations

import heapq
from typing import Final, final

from dragoman.core.core import Core
from dragoman.core.lifecycle import EXPIRE, LEASED, WAITING
from dragoman.core.settings import CATCH_UP_ALL, CATCH_UP_NONE
from dragoman.core.state.schedule import Schedule, latest_due, next_due, rewind
from dragoman.core.state.state import State
from dragoman.core.storage.stored import TailRow
from dragoman.limits import DUE_PER_SWEEP_MAX, FIRED_PER_SWEEP_MAX, REWINDS_PER_SWEEP_MAX
from dragoman.model.enums import EXPIRES_HELD, INTERNAL, NO_REASON, PAST_EXPIRY, TAKEN, TIMED_OUT
from dragoman.model.facts.layout import CLOCK_STEPPED, FIRED, NOTED, PUBLISHED, UNSCHEDULED
from dragoman.model.facts.records import fired_text
from dragoman.model.message import Message
from dragoman.model.units import SECOND_NS

LEASE_SWEEP_NS: Final = 100_000_000


@final
class Timers:
    """Runs what is due in a core: delays, expiries, lease timeouts, schedules, counts."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.next_lease_sweep_ns: int = 0
        self.has_due_schedules: bool = False  # more were due than one sweep fires
        self.next_count_ns: int = 0
        self.wall_ns: int = 0  # wall clock at the last sweep; 0: none yet
        self.first_wall_ns: int = 0  # wall clock at the start of this boot: a cron instant before it was missed
        self.to_rewind: list[Schedule] = []  # cron schedules to recompute since the wall clock was set back

    def sweep(self, now_ns: int, wall_ns: int) -> None:
        """Do everything that is due. Cron uses the wall clock, everything else the broker's clock (runtime/clock)."""
        self.core.set_time(now_ns)
        # The core's time does not advance while a block waits for the disk: what is due by it is delayed until then.
        self.core.wall_ahead_ns = wall_ns - now_ns
        if wall_ns < self.wall_ns or self.wall_ns == 0:
            self.wall_set_back(wall_ns)
        self.wall_ns = wall_ns
        if self.to_rewind:
            self.rewind_some(wall_ns)
        now_ns = self.core.now_ns
        self.sweep_delayed(now_ns)
        self.sweep_expiries(now_ns)
        if now_ns >= self.next_lease_sweep_ns:
            self.next_lease_sweep_ns = now_ns + LEASE_SWEEP_NS
            self.sweep_leases(now_ns)
        if self.core.refusing == TAKEN:
            self.sweep_schedules(now_ns, wall_ns)
        if now_ns >= self.next_count_ns:
            self.next_count_ns = now_ns + SECOND_NS
            self.write_counts()
            self.core.settling.undelivered.sweep(now_ns)
        self.core.forgetting.sweep(now_ns)

    def when_next(self) -> int:
        """The next instant at which `sweep` has something to do."""
        state = self.core.state
        soonest = self.core.now_ns if self.to_rewind or self.has_due_schedules else self.next_count_ns
        for peer in self.core.workers.values():
            if peer.work.timed_leases > 0:
                soonest = min(soonest, self.next_lease_sweep_ns)
                break
        if state.delayed:
            soonest = min(soonest, state.delayed[0][0])
        expiry_ns = state.expiries.next_ns()
        if expiry_ns != 0:
            soonest = min(soonest, expiry_ns)
        if self.core.refusing == TAKEN:  # else schedules do not fire, even if due
            for schedule in state.schedules.values():
                # Cron uses the wall clock; the runtime's sweeps every tenth of a second are enough for it.
                if schedule.interval_ns > 0:
                    soonest = min(soonest, schedule.next_due_ns)
        return soonest

    def sweep_delayed(self, now_ns: int) -> None:
        state = self.core.state
        delayed = state.delayed
        left = DUE_PER_SWEEP_MAX
        while delayed and delayed[0][0] <= now_ns and left > 0:
            left -= 1
            entry = heapq.heappop(delayed)
            if not state.is_delayed(entry):  # the message was cancelled or answered meanwhile
                state.delayed_stale -= 1
                continue
            m = state.messages[entry[1]]
            queue = state.queues_by_no[m.queue_no]
            state.undelay(m, queue)
            if m.attempt == 0:
                self.core.lease_or_enqueue(m, queue)
            else:
                state.enqueue_returned(m, queue)
                self.core.dispatch.lease_waiting(queue)

    def sweep_expiries(self, now_ns: int) -> None:
        state = self.core.state
        due = state.expiries.take(now_ns, DUE_PER_SWEEP_MAX)
        cost_max = state.stored.read_cost + state.settings.load_step_size
        for at in range(0, len(due), 2):
            if state.stored.read_cost >= cost_max:  # large records used up the read budget
                state.expiries.give_back(now_ns, due, at)
                return
            m = take_at(state, due[at], due[at + 1])
            if m is not None and (m.state == WAITING or (m.state == LEASED and expires_held(m))):
                self.core.settling.close(m, EXPIRE, PAST_EXPIRY, b"", None)

    def sweep_leases(self, now_ns: int) -> None:
        overdue: list[Message] = []
        for peer in self.core.workers.values():
            if peer.work.timed_leases > 0:
                for m in peer.work.leases.values():
                    if m.lease_until_ns != 0 and m.lease_until_ns <= now_ns:
                        overdue.append(m)
        if len(overdue) > DUE_PER_SWEEP_MAX:
            self.next_lease_sweep_ns = now_ns
        for m in overdue[:DUE_PER_SWEEP_MAX]:
            holder = m.worker
            if holder is not None:
                holder.withdraw(m, TIMED_OUT)
                self.core.settling.end_attempt(m, TIMED_OUT, b"")

    def wall_set_back(self, wall_ns: int) -> None:
        """Have all cron schedules recomputed: the wall clock was set back, or may have been before this boot."""
        if self.wall_ns == 0:
            self.first_wall_ns = wall_ns
        self.to_rewind = [schedule for schedule in self.core.state.schedules.values() if schedule.interval_ns == 0]

    def rewind_some(self, wall_ns: int) -> None:
        for _ in range(min(len(self.to_rewind), REWINDS_PER_SWEEP_MAX)):
            rewind(self.to_rewind.pop(), wall_ns, self.core.settings.timezone)

    def sweep_schedules(self, now_ns: int, wall_ns: int) -> None:
        due: list[Schedule] = []
        for schedule in self.core.state.schedules.values():
            if schedule.sooner_ns != 0:
                schedule.forget_rewind(wall_ns)
            if schedule.due_ns() <= (now_ns if schedule.interval_ns > 0 else wall_ns):
                due.append(schedule)
        self.has_due_schedules = len(due) > FIRED_PER_SWEEP_MAX
        if self.has_due_schedules:
            due.sort(key=Schedule.due_ns)
        for schedule in due[:FIRED_PER_SWEEP_MAX]:
            self.fire(schedule, now_ns if schedule.interval_ns > 0 else wall_ns)

    def fire(self, schedule: Schedule, now_ns: int) -> None:
        """Fire a due schedule: at most one message per due instant; `catch_up` decides about missed instants."""
        core = self.core
        zone = core.settings.timezone
        due_ns = schedule.due_ns()
        following_ns = next_due(schedule, due_ns, zone)
        began_ns = core.state.started_ns if schedule.interval_ns > 0 else self.first_wall_ns
        was_missed = due_ns < began_ns
        if following_ns <= now_ns and core.settings.catch_up != CATCH_UP_ALL:
            was_missed = True
            due_ns = latest_due(schedule, due_ns, now_ns, zone)
            following_ns = next_due(schedule, due_ns, zone)
        queue = core.state.queues_by_no[schedule.template.queue_no]
        skips = queue.is_draining or (was_missed and core.settings.catch_up == CATCH_UP_NONE)
        message = copy_template(schedule, core.now_ns)
        runs_left = schedule.runs_left
        if skips:
            message.number = 0
        else:
            message.number = core.state.take_number()
            runs_left = runs_left - 1 if runs_left > 0 else runs_left
        core.log.numbered(FIRED, schedule.number, due_ns, fired_text(message.number, following_ns, runs_left))
        core.state.on_fired(schedule, due_ns, following_ns, runs_left)
        if not skips:
            core.log.accepted(message)
            core.state.on_accepted(message, queue)
            core.tallies.count_accepted(message)
            core.lease_or_enqueue(message, queue)
        if schedule.runs_left == 0:
            core.log.numbered(UNSCHEDULED, schedule.number, NO_REASON, b"")
            core.state.on_unscheduled(schedule)

    def write_counts(self) -> None:
        """Write the counts of the last second: publishes by topic, peers' odd behaviour by code."""
        core = self.core
        if core.topics.counts:
            for topic, count in core.topics.take_counts().items():
                core.log.numbered(PUBLISHED, count, 0, topic)
        if core.notes:
            notes = core.notes
            core.notes = {}
            for code, count in notes.items():
                core.log.numbered(NOTED, count, 0, code.encode())

    def clock_stepped(self, delta_ns: int) -> None:
        """Record that the wall clock jumped: that affects cron, not leases and delays."""
        self.core.log.numbered(CLOCK_STEPPED, abs(delta_ns), 1 if delta_ns > 0 else 0, b"")


def take_at(state: State, number: int, code: int) -> Message | None:
    """The open message of this number, if it is in memory or in the tail of the line with this `line_code` (-1: none)."""
    m = state.messages.get(number)
    if m is not None or code < 0:
        return m
    queue = state.queues_by_no.get(code >> 24)
    if queue is None:  # the queue was forgotten: all its messages have ended
        return None
    lane = queue.lane(code >> 16 & 0xFF)
    line = lane.lines.get((code & 0xFFFF).to_bytes(2, "big"))
    if line is None:
        return None
    at = line.tail.find(number) if line.tail.live > 0 else -1
    return state.take_row(TailRow(queue, lane, line, at)) if at >= 0 else None


def expires_held(m: Message) -> bool:
    """Whether it expires while leased, too; if its client wants to be notified of the hand-over, only until that."""
    return m.flags & EXPIRES_HELD != 0 and not m.is_handed_over


def copy_template(schedule: Schedule, now_ns: int) -> Message:
    """The message that a due instant creates; a template's `expires_ns` is relative: each message expires that long after it fires."""
    t = schedule.template
    m = Message(INTERNAL, t.queue, b"", t.body)
    for name in ("headers", "flags", "priority", "retries_left", "timeout_ns", "queue_no"):
        setattr(m, name, getattr(t, name))
    m.expires_ns = now_ns + t.expires_ns if t.expires_ns > 0 else 0
    m.schedule_no = schedule.number
    return m
