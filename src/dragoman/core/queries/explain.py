"""Explains in sentences why a message, a queue or a worker is not making progress.

The first sentence is the reason; the others add what helps an operator to act.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.core.core import Core
from dragoman.core.lifecycle import LEASED, QUARANTINED
from dragoman.core.queries.lookup import count_ahead, lane_size, worker_name
from dragoman.core.queries.views import delayed_messages
from dragoman.core.state.queue import Queue
from dragoman.limits import MESSAGES_LOOKED_AT_MAX
from dragoman.model import enums
from dragoman.model.facts.decode import client_id_text
from dragoman.model.message import IN_DELAYED, Message
from dragoman.model.peer import TAKES_ANYTHING, TAKES_JSON_JOBS, Peer
from dragoman.model.phrases import body_constraint_text, count_of, duration, instant, number_text

# Why a queue's last worker left.
LEFT_TEXTS: Final = {
    enums.BROKER_STARTED: "the broker started anew, and it did not come back",
    enums.BY_OPERATOR: "the operator sent it away",
    enums.CONNECTION_ENDED: "its connection ended without a goodbye",
    enums.HEARTBEAT_LOST: "heartbeat lost",
    enums.PROTOCOL_FAULT: "it broke its protocol",
    enums.SUPERSEDED: "it serves other queues now",
    enums.WORKER_LEFT: "it said goodbye",
}
# Why an earlier attempt ended.
ENDED_TEXTS: Final = {
    enums.FAILED: "the worker answered that it failed",
    enums.RETURNED: "the worker gave it back",
    enums.TIMED_OUT: "it took longer than its time bound",
    enums.WORKER_LEFT: "the worker had said goodbye, or was sent away, and went",
    enums.WORKER_LOST: "the worker was lost",
    enums.WORKERS_DIED: "it was set aside as one that kills workers, and let out again",
}


@final
class Workforce:
    """The workers of a queue, counted by what prevents them from taking more."""

    def __init__(self, queue: Queue, unfit: int) -> None:
        """`unfit`: the kinds of workers that cannot take the message in question (`Message.unfit`)."""
        self.workers = len(queue.servings)
        self.unable = 0  # because of their body_constraint
        self.free_slots = 0  # of the workers that could take it now
        self.leased = 0
        self.without_slots: int = 0  # hold nothing and have announced no free slot
        self.blocked = 0
        for serving in queue.servings:
            peer = serving.peer
            self.leased += len(peer.work.leases)
            if peer.body_constraint & unfit != 0:
                self.unable += 1
                if not peer.is_blocked and (peer.work.slots > 0 or peer.work.leases):
                    continue
            if peer.is_blocked:
                self.blocked += 1
            elif peer.work.slots == 0 and not peer.work.leases:
                self.without_slots += 1
            else:
                self.free_slots += peer.work.slots


def explain_message(core: Core, m: Message) -> list[str]:
    """Explain an open message; of a settled one only the outcome is known here, the journal has the rest."""
    if m.state == LEASED:
        return explain_leased(core, m)
    if m.state == QUARANTINED:
        return explain_quarantined(core, m)
    if m.state > QUARANTINED:
        return [f"settled: {enums.STATE_NAMES[m.state]}"]
    queue = core.state.queues_by_no[m.queue_no]
    if m.where == IN_DELAYED:
        lines = [delayed_line(core, m)]
        if queue.is_paused:
            lines.append(f"then it waits on: the queue `{enums.shown(queue.name)}` is paused")
        return lines
    ahead = count_ahead(core, m)
    lines = blocking_lines(core, queue, m.unfit)
    if ahead > 0:
        lines.append(f"waits behind {count_of(ahead, 'other')}")
    elif not lines:
        lines.append("waits, and is next: a worker with a free slot takes it in a moment")
    if m.expires_ns != 0:
        lines.append(f"expires {when(m.expires_ns, core.now_ns)} if nobody has taken it by then")
    return lines


def delayed_line(core: Core, m: Message) -> str:
    until = f"waits: delayed until {instant(m.due_ns, core.now_ns)} ({duration(m.due_ns - core.now_ns)} from now; "
    if m.attempt == 0:
        return until + "its client asked for the delay)"
    return until + f"attempt {m.attempt + 1} is next: before, {text_of(ENDED_TEXTS, m.last_reason)})"


def blocking_lines(core: Core, queue: Queue, unfit: int) -> list[str]:
    """What prevents the first message of a queue from being leased; empty: nothing."""
    name = enums.shown(queue.name)
    if core.dispatch.is_stopped:
        return ["waits: the broker is draining and gives nothing to workers; it is served after the next start"]
    if queue.is_paused:
        return [f"waits: the queue `{name}` is paused; `dragoman queues resume {name}` lets it go on"]
    force = Workforce(queue, unfit)
    if force.workers == 0:
        return [no_worker_line(core, queue)]
    if unfit == TAKES_JSON_JOBS and force.unable == force.workers:
        return [
            f"waits: not a JSON job; only original EventMQ workers serve `{name}`, and such a body would reset them"
        ]
    if unfit != 0 and force.unable == force.workers:
        return [f"waits: no worker of `{name}` can be sent this body; one of another dialect could be"]
    if force.free_slots > 0:
        return []
    return [busy_line(name, force, unfit)]


def no_worker_line(core: Core, queue: Queue) -> str:
    name = enums.shown(queue.name)
    if queue.last_worker_left_ns == 0:
        return f"waits: no worker serves `{name}`, and none is known to have"
    left = instant(queue.last_worker_left_ns, core.now_ns)
    ago = duration(core.now_ns - queue.last_worker_left_ns)
    reason = text_of(LEFT_TEXTS, queue.last_worker_left_reason)
    return f"waits: no worker serves `{name}`; the last one left {left}, {ago} ago ({reason})"


def busy_line(name: str, force: Workforce, unfit: int) -> str:
    verb = "serves" if force.workers == 1 else "serve"
    who = f"{count_of(force.workers, 'worker')} {verb} `{name}`"
    if force.blocked == force.workers:
        return f"waits: {who}, but what is sent to them is not read"
    if force.without_slots + force.blocked == force.workers:
        return f"waits: {who}, but none has said that it has room (eMQP: no READY came)"
    if unfit == TAKES_JSON_JOBS:
        return f"waits: not a JSON job, and of {count_of(force.workers, 'worker')} on `{name}` no free one takes other bodies"
    if unfit != 0:
        return f"waits: of {count_of(force.workers, 'worker')} on `{name}` no free one can be sent this body"
    return f"waits: {who} and all their slots are taken ({force.leased} leased)"


def explain_leased(core: Core, m: Message) -> list[str]:
    peer = m.worker
    attempt = f"(attempt {m.attempt})"
    if peer is None:
        return [f"leased {attempt}, but its worker's session has ended: it goes back to its queue"]
    held = duration(core.now_ns - m.leased_ns)
    bound = "no time bound"
    if m.lease_until_ns > core.now_ns:
        bound = f"time bound in {duration(m.lease_until_ns - core.now_ns)}"
    elif m.lease_until_ns != 0:
        bound = "its time bound has just passed"
    lines = [f"leased to worker {worker_label(peer)} for {held} {attempt}, {bound}"]
    if peer.work.is_dismissed:
        lines.append("that worker is dismissed: it takes nothing new and may still answer")
    elif peer.work.is_leaving:
        lines.append("that worker is leaving: it takes nothing new and may still answer")
    if peer.is_blocked:
        lines.append("that worker does not read what is sent to it")
    lines.append(sign_line(core, peer))
    if m.attempt > 1 and m.last_reason != 0:
        lines.append(f"the attempt before ended because {text_of(ENDED_TEXTS, m.last_reason)}")
    return lines


def explain_quarantined(core: Core, m: Message) -> list[str]:
    number = number_text(m.number)
    verb = "tries"
    if m.last_reason == enums.WORKERS_DIED and m.died_with is not None:
        names = ", ".join([f"w{number_text(worker_no)}" for worker_no in m.died_with])
        reason = f"{count_of(len(m.died_with), 'worker')} died holding it ({names})"
    elif m.last_reason == enums.DAMAGED:
        reason = f"its record in the journal is damaged ({enums.shown(m.damage)})"
        verb = "reads"
    else:
        ended = text_of(ENDED_TEXTS, m.last_reason)
        reason = f"it is guaranteed and its retries are used up (attempt {m.attempt}: {ended})"
    commands = f"`dragoman quarantine retry {number}` {verb} it again, `dragoman quarantine drop {number}` ends it"
    return [f"quarantined: {reason}", commands]


def explain_queue(core: Core, queue: Queue) -> list[str]:
    lines: list[str] = []
    if core.refusing != enums.TAKEN:
        lines.append(f"takes no new work: {enums.REFUSAL_TEXTS[core.refusing]}")
    if queue.is_draining:
        lines.append(
            f"takes no new messages: it is being drained; `dragoman queues resume {enums.shown(queue.name)}` ends that"
        )
    if queue.waiting > 0:
        unfit = 0
        kinds = 0
        for group in queue.unfit:
            for lane in group.lanes:
                if lane_size(lane) > 0:
                    unfit += lane_size(lane)
                    kinds |= group.kinds
        blocking = blocking_lines(core, queue, kinds if unfit == queue.waiting else 0)
        lines.extend(blocking)
        if not blocking:
            lines.append(f"moves: {count_of(queue.waiting, 'message')} waiting, and workers with free slots take them")
        else:
            lines.append(f"{count_of(queue.waiting, 'message')} waiting")
        if 0 < unfit < queue.waiting:
            what = "are not JSON jobs: original EventMQ workers are not offered them"
            if kinds != TAKES_JSON_JOBS:
                what = "cannot be sent to every worker: some dialects would take such a body for a command of their own"
            lines.append(f"{unfit} of them {what}")
    else:
        lines.append(idle_line(core, queue))
    if queue.leased > 0:
        lines.append(f"{count_of(queue.leased, 'message')} leased")
    if queue.delayed > 0:
        lines.append(delayed_count_line(core, queue))
    if queue.quarantined > 0:
        lines.append(f"{count_of(queue.quarantined, 'message')} quarantined: `dragoman quarantine list` shows them")
    return lines


def idle_line(core: Core, queue: Queue) -> str:
    if queue.is_paused:
        return "nothing waits, and the queue is paused"
    force = Workforce(queue, 0)
    if force.workers == 0:
        return no_worker_line(core, queue).replace("waits: ", "nothing waits; ", 1)
    return f"nothing waits; {count_of(force.workers, 'worker')} with {count_of(force.free_slots, 'free slot')}"


def delayed_count_line(core: Core, queue: Queue) -> str:
    """The number of delayed messages; with the next due instant unless too many are delayed in all queues to scan them."""
    text = f"{count_of(queue.delayed, 'message')} delayed"
    if len(core.state.delayed) > MESSAGES_LOOKED_AT_MAX:
        return text
    delayed = delayed_messages(core, queue.number, queue.delayed)
    return f"{text}, the next until {when(min([m.due_ns for m in delayed]), core.now_ns)}" if delayed else text


def explain_worker(core: Core, peer: Peer) -> list[str]:
    lines = [worker_line(core, peer)]
    if peer.work.leases:
        lines.append(longest_line(core, peer))
    for serving in peer.work.serves:
        queue = core.state.queues_by_no[serving.queue_no]
        if serving.is_waiting:
            lines.append(f"waits to serve `{enums.shown(queue.name)}`: an exclusive claim stands between")
        else:
            counts = f"{queue.waiting} waiting, {queue.leased} leased{', paused' if queue.is_paused else ''}"
            lines.append(f"serves `{enums.shown(queue.name)}` (weight {serving.weight}): {counts}")
    if peer.body_constraint == TAKES_JSON_JOBS:
        lines.append("is an original EventMQ worker: it is offered JSON jobs only")
    elif peer.body_constraint != TAKES_ANYTHING:
        lines.append(f"can be sent only {body_constraint_text(peer.body_constraint)}")
    lines.append(sign_line(core, peer))
    return lines


def worker_line(core: Core, peer: Peer) -> str:
    holding = f"{len(peer.work.leases)} leased"
    if peer.work.is_dismissed:
        admit = f"`dragoman workers admit w{number_text(peer.number)}` ends that"
        return f"takes nothing new: the operator dismissed it ({holding}; it may still answer them); {admit}"
    if peer.work.is_leaving:
        return f"takes nothing new: it is leaving ({holding}; it may still answer them)"
    if peer.is_blocked:
        return f"takes nothing new: it does not read what is sent to it ({holding})"
    if peer.work.slots == 0 and not peer.work.leases:
        return "takes nothing: it has joined but has not said that it has room (eMQP: no READY came)"
    if peer.work.slots == 0:
        return f"takes nothing new: all its slots are taken ({holding})"
    for serving in peer.work.serves:
        queue = core.state.queues_by_no[serving.queue_no]
        if queue.waiting > 0 and not queue.is_paused:
            free = count_of(peer.work.slots, "free slot")
            return f"has {free}; what waits in its queues is not for it or comes in a moment"
    return f"has {count_of(peer.work.slots, 'free slot')}, and nothing that may be given out waits in its queues"


def longest_line(core: Core, peer: Peer) -> str:
    longest = next(iter(peer.work.leases.values()))  # in the order in which they were leased
    label = client_id_text(longest.dialect, longest.client_id) or number_text(longest.number)
    return (
        f"has held message {label} the longest: {duration(core.now_ns - longest.leased_ns)} (attempt {longest.attempt})"
    )


def sign_line(core: Core, peer: Peer) -> str:
    """When the worker was last heard from. Some sessions count only from the first heartbeat, so joining counts too."""
    silent_ns = core.now_ns - max(peer.connection_peer().last_sign_ns, peer.joined_ns)
    return f"last sign of life from worker w{number_text(peer.number)} {duration(silent_ns)} ago"


def worker_label(peer: Peer) -> str:
    name = worker_name(peer)
    return f"w{number_text(peer.number)} ({name})" if name else f"w{number_text(peer.number)}"


def when(at_ns: int, now_ns: int) -> str:
    return f"{instant(at_ns, now_ns)} (in {duration(at_ns - now_ns)})"


def text_of(texts: dict[int, str], reason: int) -> str:
    """A reason as text; one that has none here by its name in facts."""
    return texts.get(reason, enums.REASON_NAMES[reason])
