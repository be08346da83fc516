"""The state as plain values, for the admin socket: dicts, lists, texts and numbers, no objects of the core.

Instants are nanoseconds since 1970 (0: never), durations nanoseconds; numbers of messages, workers and schedules come in both forms
(`number` and `id`). Every list is a page of what was asked for, with the total count.
"""

from __future__ import annotations

from heapq import nsmallest

from dragoman.core.core import Core
from dragoman.core.lifecycle import LEASED, WAITING
from dragoman.core.queries.lookup import count_ahead, identity_text, worker_name
from dragoman.core.queries.matching import Wanted, find
from dragoman.core.state.queue import Queue
from dragoman.core.state.schedule import Schedule
from dragoman.core.tallies import oldest_ns
from dragoman.limits import KEPT_OUT_SHOWN_MAX
from dragoman.model import enums
from dragoman.model.buckets import summed
from dragoman.model.facts.decode import client_id_text, flag_words
from dragoman.model.message import IN_DELAYED, NOWHERE, Message
from dragoman.model.peer import Peer
from dragoman.model.phrases import body_constraint_text, number_text
from dragoman.model.units import SECOND_NS


def fields_of(thing: object, *names: str) -> dict[str, object]:
    """The fields of these names, as they are."""
    return {name: getattr(thing, name) for name in names}


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
        "refusing": enums.REFUSAL_CODES[core.refusing] if core.refusing != 0 else "",
    }


def queues(core: Core, offset: int, limit: int, prefix: str) -> dict[str, object]:
    """Queues whose names begin with `prefix`, in the order they were named."""
    chosen = queues_like(core, prefix)
    return {"total": len(chosen), "queues": [queue_view(queue) for queue in chosen[offset : offset + limit]]}


def queues_like(core: Core, prefix: str) -> list[Queue]:
    start = prefix.encode("utf-8", "surrogateescape")
    return [queue for queue in core.state.queues_by_no.values() if queue.name.startswith(start)]


def queue_view(queue: Queue) -> dict[str, object]:
    slots = 0
    for serving in queue.servings:
        slots += serving.peer.work.slots
    leased_ever = queue.accepted - queue.waiting - queue.delayed
    return {
        "queue": enums.shown(queue.name),
        "queue_no": queue.number,
        **fields_of(queue, "is_paused", "is_draining", "waiting", "delayed", "leased", "quarantined"),
        "workers": len(queue.servings),
        "slots_free": slots,
        **fields_of(queue, "accepted", "done", "failed", "released"),
        "wait_mean_ns": queue.wait_ns // leased_ever if leased_ever > 0 else 0,
        **fields_of(queue, "wait_max_ns", "last_worker_left_ns"),
    }


def workers(core: Core, offset: int, limit: int, queue: str) -> dict[str, object]:
    """Workers, or only those that serve `queue`, in the order they joined."""
    name = queue.encode("utf-8", "surrogateescape")
    chosen = [peer for peer in core.workers.values() if not name or serves(peer, name)]
    found = [worker_view(peer) for peer in chosen[offset : offset + limit]]
    return {"total": len(chosen), "workers": found, "kept_out": kept_out(core)}


def kept_out(core: Core) -> list[dict[str, object]]:
    """Dismissed workers that are not connected, the newest first, at most KEPT_OUT_SHOWN_MAX."""
    present = {peer.lasting_id for peer in core.workers.values()}
    absent = core.roster.dismissals.absent(present, core.now_ns)
    return [
        {
            "id": "w" + number_text(one.worker_no),
            "name": identity_text(one.identity) if one.identity else one.remote,
            "dialect": enums.word(enums.DIALECT_NAMES, one.dialect),
            **fields_of(one, "remote", "since_ns", "until_ns"),
        }
        for one in absent[: -KEPT_OUT_SHOWN_MAX - 1 : -1]
    ]


def serves(peer: Peer, name: bytes) -> bool:
    return any(serving.queue == name for serving in [*peer.work.serves, *peer.work.claims])


def worker_id(peer: Peer) -> str:
    return "w" + number_text(peer.number)


def worker_view(peer: Peer) -> dict[str, object]:
    servings = peer.work.claims if peer.work.is_dismissed else peer.work.serves
    state = "ready"
    if peer.work.is_dismissed:
        state = "dismissed"
    elif peer.work.is_leaving:
        state = "leaving"
    elif peer.is_blocked:
        state = "not reading"
    elif peer.work.slots == 0:
        state = "busy" if peer.work.leases else "no room yet"
    return {
        "number": peer.number,
        "id": worker_id(peer),
        "name": worker_name(peer),
        "dialect": enums.word(enums.DIALECT_NAMES, peer.dialect),
        **fields_of(peer, "listener", "remote"),
        "state": state,
        "takes_only": body_constraint_text(peer.body_constraint),
        "queues": [{"queue": enums.shown(serving.queue), "weight": serving.weight} for serving in servings],
        "slots_free": peer.work.slots,
        "leased": len(peer.work.leases),
        **fields_of(peer.work, "settled", "failed", "last_leased_ns"),
        "joined_ns": peer.joined_ns,
        "last_sign_ns": peer.connection_peer().last_sign_ns,
    }


def held_views(peer: Peer, most: int) -> list[dict[str, object]]:
    """Up to `most` messages leased to a worker, in short, the longest leased first."""
    return [
        {
            "id": number_text(m.number),
            "client_id": client_id_text(m.dialect, m.client_id),
            "queue": enums.shown(m.queue),
            **fields_of(m, "attempt", "leased_ns"),
        }
        for m in list(peer.work.leases.values())[:most]
    ]


def message_view(core: Core, m: Message) -> dict[str, object]:
    """An open message with everything but its body, and how many messages are ahead of it."""
    view = listed_view(core, m)
    if m.state == WAITING and m.where != IN_DELAYED:
        view["ahead"] = count_ahead(core, m)
    return view


def listed_view(core: Core, m: Message) -> dict[str, object]:
    """The same for a list: without the messages ahead, because counting them walks the whole line."""
    worker = m.worker
    view: dict[str, object] = {
        "number": m.number,
        "id": number_text(m.number),
        "client_id": client_id_text(m.dialect, m.client_id),
        "wire_id": enums.shown(core.ids.of(m)),
        "queue": enums.shown(core.state.queues_by_no[m.queue_no].name),
        "state": enums.STATE_NAMES[m.state],
        "is_delayed": m.where == IN_DELAYED,
        "is_on_disk_only": m.state == WAITING and m.where == NOWHERE,
        "attempt": m.attempt,
        "worker": worker_id(worker) if worker is not None else "",
        "dialect": enums.word(enums.DIALECT_NAMES, m.dialect),
        "priority": m.priority,
        "flags": flag_words(m.flags),
        "headers": enums.shown(m.headers),
        **fields_of(m, "body_size", "retries_left", "timeout_ns", "accepted_ns", "first_leased_ns", "leased_ns"),
        **fields_of(m, "lease_until_ns", "due_ns", "expires_ns"),
        "last_reason": enums.REASON_NAMES[m.last_reason],
        "died_with": ["w" + number_text(worker_no) for worker_no in m.died_with or []],
        "damage": enums.shown(m.damage),
        "schedule": "s" + number_text(m.schedule_no) if m.schedule_no != 0 else "",
        "dedupe": enums.shown(m.dedupe),
    }
    if m.state == LEASED and worker is not None:
        view["worker_name"] = worker_name(worker)
    return view


def quarantine(core: Core, offset: int, limit: int, wanted: Wanted) -> dict[str, object]:
    """Quarantined messages that match, oldest first."""
    chosen = [m for m in core.state.quarantine.values() if wanted.matches(m)]
    return {"total": len(chosen), "messages": [listed_view(core, m) for m in chosen[offset : offset + limit]]}


def messages(core: Core, offset: int, limit: int, wanted: Wanted) -> dict[str, object]:
    """Open messages that match, by queue, the oldest of each first. `total` counts matches among the messages examined."""
    matches = find(core, wanted)
    found = [listed_view(core, m) for m in matches.found[offset : offset + limit]]
    return {"messages": found, "total": len(matches.found), "is_cut": matches.is_cut}


def delayed_messages(core: Core, queue_no: int, most: int) -> list[Message]:
    """Up to `most` delayed messages of a queue: the objects themselves, for a purge."""
    found: list[Message] = []
    for entry in core.state.delayed:
        if core.state.is_delayed(entry) and core.state.messages[entry[1]].queue_no == queue_no:
            if len(found) >= most:
                break
            found.append(core.state.messages[entry[1]])
    return found


def schedules(core: Core, offset: int, limit: int) -> dict[str, object]:
    chosen = list(core.state.schedules.values())
    return {"total": len(chosen), "schedules": [schedule_view(one) for one in chosen[offset : offset + limit]]}


def schedule_view(schedule: Schedule) -> dict[str, object]:
    template = schedule.template
    return {
        "number": schedule.number,
        "id": "s" + number_text(schedule.number),
        "queue": enums.shown(template.queue),
        "interval_s": schedule.interval_ns / SECOND_NS if schedule.interval_ns > 0 else 0.0,
        "cron": schedule.cron if schedule.interval_ns <= 0 else "",
        "next_due_ns": schedule.due_ns(),
        **fields_of(schedule, "last_due_ns", "fired", "runs_left"),
        "headers": enums.shown(template.headers),
        "body": enums.shown(template.body[:200]),
        "body_size": template.body_size,
    }


def tallies(core: Core) -> dict[str, object]:
    """The counters and the durations. `crossings` omits pairs of dialects without a settled message."""
    view = counters(core)
    view["boot_no"] = core.state.boot_no
    view["started_ns"] = core.state.started_ns
    spans = [*core.tallies.own_spans, core.tallies.other_spans]
    view["wait"] = summed([s.wait for s in spans])
    view["total"] = summed([s.total for s in spans])
    dialects: list[dict[str, object]] = []
    crossings: list[dict[str, object]] = []
    for client in range(enums.DIALECTS_MAX):
        name = enums.word(enums.DIALECT_NAMES, client)
        settled = 0
        for worker in range(enums.ROW_SIZE):
            count: int = core.tallies.settled[client * enums.ROW_SIZE + worker].count
            settled += count
            if count > 0 and worker != enums.NOBODY:
                crossings.append({"client": name, "worker": enums.word(enums.DIALECT_NAMES, worker), "count": count})
        accepted: int = core.tallies.accepted[client].count
        if accepted + settled > 0 or not name.startswith("unknown"):
            dialects.append({"dialect": name, "accepted": accepted, "settled": settled})
    view["dialects"] = dialects
    view["crossings"] = crossings
    return view


def queue_tallies(core: Core, offset: int, limit: int, prefix: str, is_by_depth: bool) -> dict[str, object]:
    """Like `views.queues`, each with the age of its oldest waiting message and its durations; by depth, or in the order they were named."""
    chosen = queues_like(core, prefix)
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
