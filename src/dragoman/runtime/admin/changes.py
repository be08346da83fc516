"""Admin operations that change something. Bulk changes run in steps, so that they do not delay peers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from dragoman.core import operator
from dragoman.core.core import Core
from dragoman.core.lifecycle import LEASED
from dragoman.core.queries import lookup, views
from dragoman.limits import ADMIN_STEP_COUNT
from dragoman.model.message import IN_DELAYED, Message
from dragoman.model.peer import Peer
from dragoman.model.words import BY_OPERATOR, DROPPED, PURGED, TAKEN
from dragoman.runtime.admin.face import (
    BrokerFace,
    Name,
    Operation,
    OperationRefused,
    Tell,
    act,
    check,
    held_message,
    known_queue,
    known_worker,
    not_found,
    open_message,
)
from dragoman.runtime.admin.filters import Age, Filter

PROGRESS_INTERVAL_S: Final = 0.1


class Cancel(Operation):
    """Cancel an open message; a worker that holds it loses its lease."""

    id: Name

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        def change(core: Core) -> object:
            m = held_message(core, self.id)
            view = views.message_view(core, m)
            check(core.cancel(m, BY_OPERATOR))
            return view

        return {"cancelled": await act(face, change)}


class QuarantineChange(Operation):
    """Selects quarantined messages: by ids; by the given fields of queue, reason, dialect and age; or all."""

    ids: tuple[str, ...] = ()
    queue: str = ""
    reason: str = ""
    dialect: str = ""
    older_than_s: Age = 0.0
    all: bool = False

    def filter(self) -> Filter:
        return Filter(queue=self.queue, reason=self.reason, dialect=self.dialect, older_than_s=self.older_than_s)


class QuarantineRetry(QuarantineChange):
    """Queue quarantined messages for another attempt."""

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        return {"retried": await each_quarantined(face, tell, self, _requeue)}


class QuarantineDrop(QuarantineChange):
    """Cancel quarantined messages."""

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        return {"dropped": await each_quarantined(face, tell, self, _drop)}


def _requeue(core: Core, m: Message) -> int:
    return operator.requeue(core, m)


def _drop(core: Core, m: Message) -> int:
    return core.cancel(m, DROPPED)


async def each_quarantined(
    face: BrokerFace, tell: Tell, which: QuarantineChange, do: Callable[[Core, Message], int]
) -> int:
    matching = which.filter()
    if bool(which.ids) + matching.says_something + which.all != 1:
        raise OperationRefused("BAD_ARGUMENT", "say which: ids; a queue, reason, dialect or age; or all (one of these)")
    if which.ids:
        numbers = [open_message(face.core, key).number for key in which.ids]
    else:
        numbers = views.quarantined_numbers(face.core, matching.wanted(face.core))

    def step(part: list[int], core: Core) -> int:
        count = 0
        for number in part:
            m = core.state.quarantine.get(number)
            if m is not None:
                check(do(core, m))
                count += 1
        return count

    if which.ids and not all(number in face.core.state.quarantine for number in numbers):
        raise OperationRefused("WRONG_STATE", "not all of these messages are quarantined; nothing was changed")
    done = 0
    for start in range(0, len(numbers), ADMIN_STEP_COUNT):
        part = numbers[start : start + ADMIN_STEP_COUNT]
        done += await act(face, partial(step, part))
        tell(start + len(part), len(numbers))
    return done


class Unschedule(Operation):
    """Delete a schedule; messages that it already created are not affected."""

    id: Name

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        def change(core: Core) -> object:
            schedule = lookup.find_schedule(core, self.id)
            if schedule is None:
                raise not_found("schedule", self.id)
            view = views.schedule_view(schedule)
            check(core.unschedule(schedule.template.dedupe))
            return view

        return {"unscheduled": await act(face, change)}


async def set_paused(face: BrokerFace, queue: str, is_paused: bool) -> object:
    name = known_queue(face.core, queue).name
    check(await act(face, lambda core: operator.set_paused(core, name, is_paused)))
    return {"queue": queue, "is_paused": is_paused}


class Retry(Operation):
    """Retry a message at once: one that is quarantined, or one that waits for its next attempt."""

    id: Name

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        def change(core: Core) -> object:
            m = open_message(core, self.id)
            view = views.message_view(core, m)
            if operator.requeue(core, m) != TAKEN:
                raise OperationRefused("WRONG_STATE", f"there is nothing to retry: {why_no_retry(m)}")
            return view

        return {"retried": await act(face, change)}


def why_no_retry(m: Message) -> str:
    if m.where == IN_DELAYED:
        return "its client asked for the delay, and it was not tried yet"
    if m.state == LEASED:
        return "a worker has it"
    return "it waits for a worker already"


class Pause(Operation):
    """Pause a queue: it accepts and keeps messages and assigns none; survives restarts."""

    queue: Name

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        return await set_paused(face, self.queue, True)


class DrainQueue(Operation):
    """Drain a queue: it assigns its waiting messages and refuses new ones until it is resumed; survives restarts, ends a pause."""

    queue: Name

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        queue = known_queue(face.core, self.queue)
        name = queue.name
        check(await act(face, lambda core: operator.set_draining(core, name)))
        return {"queue": self.queue, "is_draining": True, "waiting": queue.waiting, "leased": queue.leased}


class Resume(Operation):
    """End a pause or a drain."""

    queue: Name

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        return await set_paused(face, self.queue, False)


class Purge(Operation):
    """Cancel everything that waits in a queue now and, with `delayed`, delayed messages too; leased messages are not affected."""

    queue: Name
    delayed: bool = False

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        queue = known_queue(face.core, self.queue)
        total = queue.waiting + (queue.delayed if self.delayed else 0)
        done = 0
        # Limited to the number that waited at the beginning: a busy client must not keep the purge running forever.
        while done < total:
            step = min(ADMIN_STEP_COUNT, total - done)
            count = await act(face, partial(_purge_waiting, queue.name, step))
            if count == 0 and self.delayed:
                count = await act(face, partial(_purge_delayed, queue.number, step))
            if count == 0:
                break
            done += count
            tell(done, total)
        return {"queue": self.queue, "purged": done}


class Forget(Operation):
    """Delete queues that nothing refers to: one by its name, those whose names begin with a prefix, or all."""

    queue: str = ""
    prefix: str = ""
    all: bool = False

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        if bool(self.queue) + bool(self.prefix) + self.all != 1:
            raise OperationRefused("BAD_ARGUMENT", "say which: a queue, a prefix or all (one of these)")
        if self.queue:
            name = known_queue(face.core, self.queue).name
            use = await act(face, partial(_forget, name))
            if use:
                raise OperationRefused("WRONG_STATE", f"{self.queue} is in use: {use}")
            return {"forgotten": 1, "kept": 0}
        start = self.prefix.encode("utf-8", "surrogateescape")
        names = [name for name in face.core.state.queues if name.startswith(start)]
        forgotten = 0
        for at in range(0, len(names), ADMIN_STEP_COUNT):
            part = names[at : at + ADMIN_STEP_COUNT]
            forgotten += await act(face, partial(_forget_some, part))
            tell(at + len(part), len(names))
        return {"forgotten": forgotten, "kept": len(names) - forgotten}


def _forget(name: bytes, core: Core) -> str:
    return core.forgetting.forget_by_operator(name) if name in core.state.queues else ""


def _forget_some(names: list[bytes], core: Core) -> int:
    return sum(name in core.state.queues and not core.forgetting.forget_by_operator(name) for name in names)


def _purge_waiting(name: bytes, most: int, core: Core) -> int:
    return operator.purge(core, name, most)


def _purge_delayed(queue_no: int, most: int, core: Core) -> int:
    found = views.delayed_messages(core, queue_no, most)
    for m in found:
        check(core.cancel(m, PURGED))
    return len(found)


class Disconnect(Operation):
    """Close a worker's connection now. Its leased messages return to their queues; this counts as leaving, not as a death."""

    worker: Name

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        def change(core: Core) -> object:
            peer = known_worker(core, self.worker)
            end = peer.near_end()
            leased = 0
            for worker in [other for other in core.workers.values() if other.near_end() is end]:
                leased += len(worker.work.held)
                core.roster.leave(worker, BY_OPERATOR)
            connection = face.broker.connections.get(end)
            if connection is not None:
                connection.session.lost(BY_OPERATOR)
                connection.abort()
            return leased

        return {"worker": self.worker, "leased": await act(face, change)}


class Dismiss(Operation):
    """Give a worker no new work until it is admitted or restarted. It stays connected and may answer what it holds. If several
    workers share a connection (rq), all of them are dismissed."""

    worker: Name

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        def change(core: Core) -> list[Peer]:
            end = known_worker(core, self.worker).near_end()
            found = [peer for peer in core.workers.values() if peer.near_end() is end]
            for peer in found:
                core.roster.dismiss(peer)
            return found

        found = await act(face, change)
        workers = [views.worker_id(peer) for peer in found]
        return {"worker": self.worker, "workers": workers, "leased": sum(len(peer.work.held) for peer in found)}


class Admit(Operation):
    """End a worker's dismissal, by its id, number or identity, even while it is not connected; or all dismissals."""

    worker: str = ""
    all: bool = False

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        if bool(self.worker) == self.all:
            raise OperationRefused("BAD_ARGUMENT", "say which: one worker, or all")

        def change(core: Core) -> list[str]:
            if self.all:
                found = [peer for peer in core.workers.values() if peer.work.is_dismissed]
                absent = list(core.roster.dismissals.by_id)
            else:
                found = dismissed_workers(core, self.worker)
                absent = [] if found else lookup.find_absent(core, self.worker)
                if not found and not absent:
                    raise not_found("dismissed worker", self.worker)
            for peer in found:
                core.roster.admit(peer)
            for lasting_id in absent:
                core.roster.dismissals.remove(lasting_id)
            return [views.worker_id(peer) for peer in found]

        admitted = await act(face, change)
        return {"worker": self.worker, "workers": admitted}


def dismissed_workers(core: Core, key: str) -> list[Peer]:
    """The worker with this key and those that were dismissed with it."""
    one = lookup.find_worker(core, key)
    if one is None or not one.work.is_dismissed:
        return []
    end, lasting_id = one.near_end(), one.lasting_id
    return [
        peer
        for peer in core.workers.values()
        if peer.work.is_dismissed and (peer.near_end() is end or (lasting_id != b"" and peer.lasting_id == lasting_id))
    ]


class Backup(Operation):
    """Copy the current journal into a new directory on the broker's machine."""

    target: Name

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        from dragoman.journal.tools.backup import backup

        if not Path(self.target).is_absolute():
            raise OperationRefused("BAD_ARGUMENT", "the target is an absolute path on the broker's machine")
        if face.config.journal.durability == "memory":
            raise OperationRefused("NOTHING_KEPT", "durability `memory` keeps nothing that could be copied")
        loop = asyncio.get_running_loop()
        last_s = 0.0

        def progress(done: int, total: int) -> None:
            nonlocal last_s
            now_s = loop.time()
            if now_s - last_s >= PROGRESS_INTERVAL_S or done >= total:
                last_s = now_s
                loop.call_soon_threadsafe(tell, done, total)

        return msgspec.to_builtins(await asyncio.to_thread(backup, str(face.config.data), self.target, progress))


class Stop(Operation):
    """Drain and exit; a second call: exit at once."""

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        face.request_stop()
        return {"stopping": True}


class Reload(Operation):
    """Read the settings again, as SIGHUP does."""

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        return face.reload()
