"""The state as plain values, for the admin socket: dicts, lists, texts and numbers, no objects of the core.

Instants are nanoseconds since 1970 (0: never), durations nanoseconds; numbers of messages, workers and schedules come in both forms
(`number` and `id`). Every list is a page of what was asked for, with the total count.
"""

from __future__ import annotations

from heapq import nsmallest

from dragoman.core.core import Core
from dragoman.core.lifecycle import LEASED, WAITING
from dragoman.core.queries.lookup import identity_text, place_of, worker_name
from dragoman.core.queries.matching import Wanted, find
from dragoman.core.state.queue import Queue
from dragoman.core.state.schedule import Schedule
from dragoman.core.tallies import oldest_ns
from dragoman.limits import KEPT_OUT_SHOWN_MAX
from dragoman.model.buckets import summed
from dragoman.model.facts.decode import client_id_text, flag_words
from dragoman.model.message import IN_DELAYED, NOWHERE, Message
from dragoman.model.peer import Peer
from dragoman.model.phrases import number_text, picky_text
from dragoman.model.units import SECOND_NS
from dragoman.model.words import (
    DIALECT_NAMES,
    DIALECTS_MAX,
    NOBODY,
    REASON_NAMES,
    REFUSAL_CODES,
    ROW_SIZE,
    STATE_NAMES,
    shown,
    word,
)


def counters(core: Core) -> dict[str, object]:
    """The broker's counters: cheap enough for a call every second."""
    state = core.state
    waiting = 0
    delayed = 0
    leased = 0
    done = state.forgotten.done
    failed = state.forgotten.failed
    released = state.forgotten.released
    for queue in state.queues.values():
        waiting += queue.waiting
        delayed += queue.delayed
        leased += queue.leased
        done += queue.done
        failed += queue.failed
        released += queue.released
    slots = 0
    for peer in core.workers.values():
        slots += peer.work.slots
    return {
        "now_ns": core.now_ns,
        "queues": len(state.queues),
        "workers": len(core.workers),
        "slots_free": slots,
        "waiting": waiting,
        "delayed": delayed,
        "leased": leased,
        "quarantined": len(state.quarantine),
        "schedules": len(state.schedules),
        "accepted": state.accepted,
        "settled": state.settled,
        "done": done,
        "failed": failed,
        "released": released,
        "published": core.topics.published,
        "subscriptions": len(core.topics.prefixes),
        "refusing": REFUSAL_CODES[core.refusing] if core.refusing != 0 else "",
    }


def queues(core: Core, offset: int, limit: int, prefix: str) -> dict[str, object]:
    """Queues whose names begin with `prefix`, in the order they were named."""
    found: list[dict[str, object]] = []
    total = 0
    start = prefix.encode("utf-8", "surrogateescape")
    for queue in core.state.queues_by_no.values():
        if start and not queue.name.startswith(start):
            continue
        if offset <= total < offset + limit:
            found.append(queue_view(queue))
        total += 1
    return {"total": total, "queues": found}


def queue_view(queue: Queue) -> dict[str, object]:
    slots = 0
    for serving in queue.servings:
        slots += serving.peer.work.slots
    leased_ever = queue.accepted - queue.waiting - queue.delayed
    return {
        "queue": shown(queue.name),
        "queue_no": queue.number,
        "is_paused": queue.is_paused,
        "is_draining": queue.is_draining,
        "waiting": queue.waiting,
        "delayed": queue.delayed,
        "leased": queue.leased,
        "quarantined": queue.quarantined,
        "workers": len(queue.servings),
        "slots_free": slots,
        "accepted": queue.accepted,
        "done": queue.done,
        "failed": queue.failed,
        "released": queue.released,
        "wait_mean_ns": queue.wait_ns // leased_ever if leased_ever > 0 else 0,
        "wait_max_ns": queue.wait_max_ns,
        "last_worker_left_ns": queue.last_worker_left_ns,
    }


def workers(core: Core, offset: int, limit: int, queue: str) -> dict[str, object]:
    """Workers, or only those that serve `queue`, in the order they joined."""
    found: list[dict[str, object]] = []
    total = 0
    name = queue.encode("utf-8", "surrogateescape")
    for peer in core.workers.values():
        if name and not serves(peer, name):
            continue
        if offset <= total < offset + limit:
            found.append(worker_view(peer))
        total += 1
    return {"total": total, "workers": found, "kept_out": kept_out(core)}


def kept_out(core: Core) -> list[dict[str, object]]:
    """Dismissed workers that are not connected, the newest first, at most KEPT_OUT_SHOWN_MAX."""
    present: set[bytes] = set()
    for peer in core.workers.values():
        present.add(peer.lasting_id)
    absent = core.roster.dismissals.absent(present, core.now_ns)
    found: list[dict[str, object]] = []
    for one in reversed(absent):
        if len(found) == KEPT_OUT_SHOWN_MAX:
            break
        found.append(
            {
                "id": "w" + number_text(one.worker_no),
                "name": identity_text(one.identity) if one.identity else one.remote,
                "dialect": word(DIALECT_NAMES, one.dialect),
                "remote": one.remote,
                "since_ns": one.since_ns,
                "until_ns": one.until_ns,
            }
        )
    return found


def serves(peer: Peer, name: bytes) -> bool:
    return name in [serving.queue for serving in peer.work.serves] or name in [
        claim.queue for claim in peer.work.claims
    ]


def worker_id(peer: Peer) -> str:
    return "w" + number_text(peer.number)


def worker_view(peer: Peer) -> dict[str, object]:
    served: list[dict[str, object]] = []
    for serving in peer.work.claims if peer.work.is_dismissed else peer.work.serves:
        served.append({"queue": shown(serving.queue), "weight": serving.weight})
    state = "ready"
    if peer.work.is_dismissed:
        state = "dismissed"
    elif peer.work.is_leaving:
        state = "leaving"
    elif peer.is_blocked:
        state = "not reading"
    elif peer.work.slots == 0:
        state = "busy" if peer.work.held else "no room yet"
    return {
        "number": peer.number,
        "id": "w" + number_text(peer.number),
        "name": worker_name(peer),
        "dialect": word(DIALECT_NAMES, peer.dialect),
        "listener": peer.listener,
        "remote": peer.remote,
        "state": state,
        "takes_only": picky_text(peer.body_constraint),
        "queues": served,
        "slots_free": peer.work.slots,
        "leased": len(peer.work.held),
        "settled": peer.work.settled,
        "failed": peer.work.failed,
        "joined_ns": peer.joined_ns,
        "last_sign_ns": peer.near_end().last_sign_ns,
        "last_leased_ns": peer.work.last_leased_ns,
    }


def held_view(m: Message) -> dict[str, object]:
    """A leased message, in short."""
    return {
        "id": number_text(m.number),
        "client_id": client_id_text(m.dialect, m.client_id),
        "queue": shown(m.queue),
        "attempt": m.attempt,
        "leased_ns": m.leased_ns,
    }


def held_views(peer: Peer, most: int) -> list[dict[str, object]]:
    """Up to `most` messages leased to a worker, the longest held first."""
    held = list(peer.work.held.values())
    return [held_view(m) for m in held[:most]]


def message_view(core: Core, m: Message) -> dict[str, object]:
    """An open message with everything but its body, and how many messages are ahead of it."""
    view = listed_view(core, m)
    if m.state == WAITING and m.where != IN_DELAYED:
        view["ahead"] = place_of(core, m).ahead
    return view


def listed_view(core: Core, m: Message) -> dict[str, object]:
    """The same for a list: without the messages ahead, because counting them walks the whole line."""
    queue = core.state.queues_by_no[m.queue_no]
    worker = m.worker
    died_with: list[str] = []
    if m.died_with is not None:
        for worker_no in m.died_with:
            died_with.append("w" + number_text(worker_no))
    view: dict[str, object] = {
        "number": m.number,
        "id": number_text(m.number),
        "client_id": client_id_text(m.dialect, m.client_id),
        "wire_id": shown(core.ids.of(m)),
        "queue": shown(queue.name),
        "state": STATE_NAMES[m.state],
        "is_delayed": m.where == IN_DELAYED,
        "is_on_disk_only": m.state == WAITING and m.where == NOWHERE,
        "attempt": m.attempt,
        "worker": "w" + number_text(worker.number) if worker is not None else "",
        "dialect": word(DIALECT_NAMES, m.dialect),
        "priority": m.priority,
        "flags": flag_words(m.flags),
        "headers": shown(m.headers),
        "body_size": m.body_size,
        "retries_left": m.retries_left,
        "timeout_ns": m.timeout_ns,
        "accepted_ns": m.accepted_ns,
        "first_leased_ns": m.first_leased_ns,
        "leased_ns": m.leased_ns,
        "lease_until_ns": m.lease_until_ns,
        "due_ns": m.due_ns,
        "expires_ns": m.expires_ns,
        "last_reason": REASON_NAMES[m.last_reason],
        "died_with": died_with,
        "damage": shown(m.damage),
        "schedule": "s" + number_text(m.schedule_no) if m.schedule_no != 0 else "",
        "dedupe": shown(m.dedupe),
    }
    if m.state == LEASED and worker is not None:
        view["worker_name"] = worker_name(worker)
    return view


def quarantine(core: Core, offset: int, limit: int, wanted: Wanted) -> dict[str, object]:
    """Quarantined messages that match, oldest first."""
    found: list[dict[str, object]] = []
    total = 0
    for m in core.state.quarantine.values():
        if not wanted.matches(m):
            continue
        if offset <= total < offset + limit:
            found.append(listed_view(core, m))
        total += 1
    return {"total": total, "messages": found}


def quarantined_numbers(core: Core, wanted: Wanted) -> list[int]:
    return [m.number for m in core.state.quarantine.values() if wanted.matches(m)]


def messages(core: Core, offset: int, limit: int, wanted: Wanted) -> dict[str, object]:
    """Open messages that match, by queue, the oldest of each first. `total` counts matches among the messages examined."""
    matches = find(core, wanted)
    found = [listed_view(core, m) for m in matches.found[offset : offset + limit]]
    return {"messages": found, "total": len(matches.found), "is_cut": matches.is_cut}


def delayed_messages(core: Core, queue_no: int, most: int) -> list[Message]:
    """Up to `most` delayed messages of a queue: the objects themselves, for a purge."""
    found: list[Message] = []
    for due_ns, number in core.state.delayed:
        m = core.state.messages.get(number)
        if m is not None and m.where == IN_DELAYED and m.queue_no == queue_no and m.due_ns == due_ns:
            if len(found) >= most:
                break
            found.append(m)
    return found


def schedules(core: Core, offset: int, limit: int) -> dict[str, object]:
    found: list[dict[str, object]] = []
    total = 0
    for schedule in core.state.schedules.values():
        if offset <= total < offset + limit:
            found.append(schedule_view(schedule))
        total += 1
    return {"total": total, "schedules": found}


def schedule_view(schedule: Schedule) -> dict[str, object]:
    template = schedule.template
    return {
        "number": schedule.number,
        "id": "s" + number_text(schedule.number),
        "queue": shown(template.queue),
        "interval_s": schedule.interval_ns / SECOND_NS if schedule.interval_ns > 0 else 0.0,
        "cron": schedule.cron if schedule.interval_ns <= 0 else "",
        "next_due_ns": schedule.due_ns(),
        "last_due_ns": schedule.last_due_ns,
        "fired": schedule.fired,
        "runs_left": schedule.runs_left,
        "headers": shown(template.headers),
        "body": shown(template.body[:200]),
        "body_size": template.body_size,
    }


def tallies(core: Core) -> dict[str, object]:
    """The counters and the durations. `crossings` omits pairs of dialects without a settled message."""
    view = counters(core)
    view["boot_no"] = core.state.boot_no
    view["started_ns"] = core.state.started_ns
    spans = core.tallies.all_spans()
    view["wait"] = summed([s.wait for s in spans])
    view["total"] = summed([s.total for s in spans])
    dialects: list[dict[str, object]] = []
    crossings: list[dict[str, object]] = []
    for client in range(DIALECTS_MAX):
        name = word(DIALECT_NAMES, client)
        settled = 0
        for worker in range(ROW_SIZE):
            count: int = core.tallies.settled[client * ROW_SIZE + worker].count
            settled += count
            if count > 0 and worker != NOBODY:
                crossings.append({"client": name, "worker": word(DIALECT_NAMES, worker), "count": count})
        accepted: int = core.tallies.accepted[client].count
        if accepted + settled > 0 or not name.startswith("unknown"):
            dialects.append({"dialect": name, "accepted": accepted, "settled": settled})
    view["dialects"] = dialects
    view["crossings"] = crossings
    return view


def queue_tallies(core: Core, offset: int, limit: int, prefix: str, is_by_depth: bool) -> dict[str, object]:
    """Like `views.queues`, each with the age of its oldest waiting message and its durations; by depth, or in the order they were named."""
    chosen: list[Queue] = []
    start = prefix.encode("utf-8", "surrogateescape")
    for queue in core.state.queues_by_no.values():
        if not start or queue.name.startswith(start):
            chosen.append(queue)
    total = len(chosen)
    if is_by_depth:
        chosen = nsmallest(offset + limit, chosen, key=by_depth)  # takes half as long as sorting 100,000 queues
    return {"total": total, "queues": [queue_tally(core, queue) for queue in chosen[offset : offset + limit]]}


def by_depth(queue: Queue) -> tuple[int, int]:
    """Sort key: most open messages first, then most accepted; equal ones stay in the order they were named."""
    return (-queue.waiting - queue.leased, -queue.accepted)


def queue_tally(core: Core, queue: Queue) -> dict[str, object]:
    """One queue. Its durations are empty if they are counted together with those of other queues."""
    view = queue_view(queue)
    spans = queue.spans
    has_own = spans is not None and spans is not core.tallies.other_spans
    view["oldest_ns"] = oldest_ns(queue)
    view["wait"] = spans.wait.pairs() if spans is not None and has_own else []
    view["total_time"] = spans.total.pairs() if spans is not None and has_own else []
    return view
