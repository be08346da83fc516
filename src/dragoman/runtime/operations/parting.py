"""Operations that keep workers from work: dismiss and admit them, or end their connection."""

from __future__ import annotations

from dragoman.core import lookup, views
from dragoman.core.core import Core
from dragoman.model.peer import Peer
from dragoman.model.words import BY_OPERATOR
from dragoman.runtime.operations.face import (
    BrokerFace,
    Name,
    Operation,
    OperationRefused,
    Tell,
    act,
    known_worker,
    not_found,
)


class Disconnect(Operation):
    """End a worker's connection now. What is held through it goes back to its queues; that counts as leaving, not as a death."""

    worker: Name

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        def change(core: Core) -> object:
            peer = known_worker(core, self.worker)
            end = peer.near_end()
            leased = 0
            for worker in [other for other in core.workers.values() if other.near_end() is end]:
                leased += len(worker.held)
                core.roster.leave(worker, BY_OPERATOR)
            connection = face.broker.connections.get(end)
            if connection is not None:
                connection.session.lost(BY_OPERATOR)
                connection.abort()
            return leased

        return {"worker": self.worker, "leased": await act(face, change)}


class Dismiss(Operation):
    """Give a worker nothing new until it is admitted or restarted. It stays connected, and what it holds it may answer. Where several
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
        return {"worker": self.worker, "workers": workers, "leased": sum(len(peer.held) for peer in found)}


class Admit(Operation):
    """End a worker's dismissal, by its id, number or identity, also while it is not connected; or all dismissals."""

    worker: str = ""
    all: bool = False

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        if bool(self.worker) == self.all:
            raise OperationRefused("BAD_ARGUMENT", "say which: one worker, or all")

        def change(core: Core) -> list[str]:
            if self.all:
                found = [peer for peer in core.workers.values() if peer.is_dismissed]
                absent = lookup.absent_dismissals(core)
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
    """The worker of this name and those that were dismissed with it."""
    one = lookup.find_worker(core, key)
    if one is None or not one.is_dismissed:
        return []
    end, lasting_id = one.near_end(), one.lasting_id
    return [
        peer
        for peer in core.workers.values()
        if peer.is_dismissed and (peer.near_end() is end or (lasting_id != b"" and peer.lasting_id == lasting_id))
    ]
