"""Admin operations that change something. Bulk changes run in steps, so that they do not delay peers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar, cast

import msgspec

from dragoman.core import operator
from dragoman.core.core import Core
from dragoman.core.lifecycle import LEASED
from dragoman.core.queries import lookup, views
from dragoman.dialects.session import Session
from dragoman.limits import ADMIN_STEP_COUNT
from dragoman.model.enums import BY_OPERATOR, DROPPED, PURGED, TAKEN
from dragoman.model.message import IN_DELAYED, Message
from dragoman.model.peer import Peer
from dragoman.model.phrases import read_number
from dragoman.runtime.admin import operation as admin
from dragoman.runtime.admin.operation import Name, Progress, Server, act, check, known_queue, operation

PROGRESS_INTERVAL_S: Final = 0.1
T = TypeVar("T")


async def in_steps(server: Server, progress: Progress, items: list[T], step: Callable[[list[T], Core], int]) -> int:
    """Change the items, a limited number at a time. Return the sum of what `step` returned."""
    done = 0
    for start in range(0, len(items), ADMIN_STEP_COUNT):
        part = items[start : start + ADMIN_STEP_COUNT]
        done += await act(server, partial(step, part))
        progress(start + len(part), len(items))
    return done


@operation
async def cancel(server: Server, *, id_: Name) -> object:
    """Cancel an open message; a worker that has it loses its lease."""

    def change(core: Core) -> object:
        # Loaded, if it was on disk only: it is about to change.
        m = core.state.take(admin.open_message(core, id_).number)
        assert m is not None, "found a moment ago"
        view = views.message_view(core, m)
        check(core.cancel(m, BY_OPERATOR))
        return view

    return {"cancelled": await act(server, change)}


class QuarantineSelection(admin.QuarantineFilter):
    """Quarantined messages: by ids; by the given fields of the filter; or all."""

    ids: tuple[str, ...] = ()
    all: bool = False


@operation
async def quarantine_retry(server: Server, progress: Progress, which: QuarantineSelection) -> object:
    """Queue quarantined messages for another attempt."""
    return {"retried": await _each_quarantined(server, progress, which, operator.requeue)}


@operation
async def quarantine_drop(server: Server, progress: Progress, which: QuarantineSelection) -> object:
    """Cancel quarantined messages."""
    return {"dropped": await _each_quarantined(server, progress, which, lambda core, m: core.cancel(m, DROPPED))}


async def _each_quarantined(
    server: Server, progress: Progress, which: QuarantineSelection, do: Callable[[Core, Message], int]
) -> int:
    has_filter = any(getattr(which, name) for name in admin.QuarantineFilter.__struct_fields__)
    if bool(which.ids) + has_filter + which.all != 1:
        raise admin.OperationRefused(
            "BAD_ARGUMENT", "say which: ids; a queue, reason, dialect or age; or all (one of these)"
        )
    core = server.core
    if which.ids:
        numbers = [admin.open_message(core, key).number for key in which.ids]
        if not all(number in core.state.quarantine for number in numbers):
            raise admin.OperationRefused(
                "WRONG_STATE", "not all of these messages are quarantined; nothing was changed"
            )
    else:
        wanted = which.wanted(core)
        numbers = [m.number for m in core.state.quarantine.values() if wanted.matches(m)]

    def step(part: list[int], core: Core) -> int:
        count = 0
        for number in part:
            m = core.state.quarantine.get(number)
            if m is not None:
                check(do(core, m))
                count += 1
        return count

    return await in_steps(server, progress, numbers, step)


@operation
async def unschedule(server: Server, *, id_: Name) -> object:
    """Delete a schedule; messages that it already created are not affected."""

    def change(core: Core) -> object:
        schedule = admin.found(core.state.schedules.get(read_number(id_.removeprefix("s"))), "schedule", id_)
        view = views.schedule_view(schedule)
        check(core.unschedule(schedule.template.dedupe, BY_OPERATOR))
        return view

    return {"unscheduled": await act(server, change)}


@operation
async def retry(server: Server, *, id_: Name) -> object:
    """Retry a message at once: one that is quarantined, or one that waits for its next attempt."""

    def change(core: Core) -> object:
        m = admin.open_message(core, id_)
        view = views.message_view(core, m)
        if operator.requeue(core, m) != TAKEN:
            raise admin.OperationRefused("WRONG_STATE", f"there is nothing to retry: {_why_no_retry(m)}")
        return view

    return {"retried": await act(server, change)}


def _why_no_retry(m: Message) -> str:
    if m.where == IN_DELAYED:
        return "its client asked for the delay, and it was not tried yet"
    if m.state == LEASED:
        return "a worker has it"
    return "it waits for a worker already"


@operation
async def pause(server: Server, *, queue: Name) -> object:
    """Pause a queue: it accepts and stores messages and assigns none; survives restarts."""
    return await _set_paused(server, queue, True)


@operation
async def resume(server: Server, *, queue: Name) -> object:
    """End a pause or a drain."""
    return await _set_paused(server, queue, False)


async def _set_paused(server: Server, queue: str, is_paused: bool) -> object:
    name = known_queue(server.core, queue).name
    check(await act(server, lambda core: operator.set_paused(core, name, is_paused)))
    return {"queue": queue, "is_paused": is_paused}


@operation
async def drain_queue(server: Server, *, queue: Name) -> object:
    """Drain a queue: it assigns its waiting messages and refuses new ones until it is resumed; survives restarts, ends a pause."""
    drained = known_queue(server.core, queue)
    name = drained.name
    check(await act(server, lambda core: operator.set_draining(core, name)))
    return {"queue": queue, "is_draining": True, "waiting": drained.waiting, "leased": drained.leased}


@operation
async def purge(server: Server, progress: Progress, *, queue: Name, delayed: bool = False) -> object:
    """Cancel everything that waits in a queue now and, with `delayed`, delayed messages too; leased messages are not affected."""
    purged = known_queue(server.core, queue)
    total = purged.waiting + (purged.delayed if delayed else 0)
    done = 0
    # Limited to the number that waited at the beginning: a busy client must not keep the purge running forever.
    while done < total:
        step = min(ADMIN_STEP_COUNT, total - done)
        count = await act(server, partial(operator.purge, name=purged.name, most=step))
        if count == 0 and delayed:
            count = await act(server, partial(_purge_delayed, queue_no=purged.number, most=step))
        if count == 0:
            break
        done += count
        progress(done, total)
    return {"queue": queue, "purged": done}


def _purge_delayed(core: Core, queue_no: int, most: int) -> int:
    delayed = views.delayed_messages(core, queue_no, most)
    for m in delayed:
        check(core.cancel(m, PURGED))
    return len(delayed)


@operation
async def forget(
    server: Server, progress: Progress, *, queue: str = "", prefix: str = "", all_: bool = False
) -> object:
    """Delete queues that nothing refers to: one by its name, those whose names begin with a prefix, or all."""
    if bool(queue) + bool(prefix) + all_ != 1:
        raise admin.OperationRefused("BAD_ARGUMENT", "say which: a queue, a prefix or all (one of these)")
    if queue:
        use = await act(server, partial(_forget, known_queue(server.core, queue).name))
        if use:
            raise admin.OperationRefused("WRONG_STATE", f"{queue} is in use: {use}")
        return {"forgotten": 1, "kept": 0}
    start = prefix.encode("utf-8", "surrogateescape")
    names = [name for name in server.core.state.queues if name.startswith(start)]
    forgotten = await in_steps(server, progress, names, _forget_some)
    return {"forgotten": forgotten, "kept": len(names) - forgotten}


def _forget(name: bytes, core: Core) -> str:
    return core.forgetting.forget_by_operator(name) if name in core.state.queues else ""


def _forget_some(names: list[bytes], core: Core) -> int:
    return sum(name in core.state.queues and not core.forgetting.forget_by_operator(name) for name in names)


def _on_same_connection(core: Core, peer: Peer) -> list[Peer]:
    """The worker and those that share its connection (rq)."""
    end = peer.connection_peer()
    return [other for other in core.workers.values() if other.connection_peer() is end]


@operation
async def disconnect(server: Server, *, worker: Name) -> object:
    """Close a worker's connection now. Its leased messages return to their queues; this counts as leaving, not as a death."""

    def change(core: Core) -> object:
        peer = admin.known_worker(core, worker)
        leased = 0
        for one in _on_same_connection(core, peer):
            leased += len(one.work.leases)
            core.roster.leave(one, BY_OPERATOR)
        connection = server.broker.connections.get(cast(Session, peer.connection_peer()))
        if connection is not None and connection.session is not None:
            connection.session.lost(BY_OPERATOR)
            connection.abort()
        return leased

    return {"worker": worker, "leased": await act(server, change)}


@operation
async def dismiss(server: Server, *, worker: Name) -> object:
    """Give a worker no new work until it is admitted or restarted. It stays connected and may answer what is leased to it. If several
    workers share a connection (rq), all of them are dismissed."""

    def change(core: Core) -> list[Peer]:
        peers = _on_same_connection(core, admin.known_worker(core, worker))
        for peer in peers:
            core.roster.dismiss(peer)
        return peers

    dismissed = await act(server, change)
    workers = [views.worker_id(peer) for peer in dismissed]
    return {"worker": worker, "workers": workers, "leased": sum(len(peer.work.leases) for peer in dismissed)}


@operation
async def admit(server: Server, *, worker: str = "", all_: bool = False) -> object:
    """End a worker's dismissal, by its id, number or identity, even while it is not connected; or all dismissals."""
    if bool(worker) == all_:
        raise admin.OperationRefused("BAD_ARGUMENT", "say which: one worker, or all")

    def change(core: Core) -> list[str]:
        if all_:
            peers = [peer for peer in core.workers.values() if peer.work.is_dismissed]
            absent = list(core.roster.dismissals.by_id)
        else:
            peers = _dismissed_workers(core, worker)
            absent = [] if peers else lookup.find_absent(core, worker)
            admin.found(peers or absent or None, "dismissed worker", worker)
        for peer in peers:
            core.roster.admit(peer)
        for lasting_id in absent:
            core.roster.dismissals.remove(lasting_id)
        return [views.worker_id(peer) for peer in peers]

    return {"worker": worker, "workers": await act(server, change)}


def _dismissed_workers(core: Core, key: str) -> list[Peer]:
    """The worker with this key and those that were dismissed with it."""
    one = lookup.find_worker(core, key)
    if one is None or not one.work.is_dismissed:
        return []
    end, lasting_id = one.connection_peer(), one.lasting_id
    return [
        peer
        for peer in core.workers.values()
        if peer.work.is_dismissed
        and (peer.connection_peer() is end or (lasting_id != b"" and peer.lasting_id == lasting_id))
    ]


@operation
async def backup(server: Server, progress: Progress, *, target: Name) -> object:
    """Copy the current journal into a new directory on the broker's machine."""
    from dragoman.journal.tools import backup

    if not Path(target).is_absolute():
        raise admin.OperationRefused("BAD_ARGUMENT", "the target is an absolute path on the broker's machine")
    if server.config.journal.durability == "memory":
        raise admin.OperationRefused("NOTHING_KEPT", "durability `memory` keeps nothing that could be copied")
    loop = asyncio.get_running_loop()
    last_s = 0.0

    def report(done: int, total: int) -> None:
        nonlocal last_s
        now_s = loop.time()
        if now_s - last_s >= PROGRESS_INTERVAL_S or done >= total:
            last_s = now_s
            loop.call_soon_threadsafe(progress, done, total)

    return msgspec.to_builtins(await asyncio.to_thread(backup.backup, str(server.config.data), target, report))


@operation
def stop(server: Server) -> object:
    """Drain and exit; a second call: exit at once."""
    server.request_stop()
    return {"stopping": True}


@operation
def reload(server: Server) -> object:
    """Read the settings again, as SIGHUP does."""
    return server.reload()
