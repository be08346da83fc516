"""The operation that ends a connection."""

from __future__ import annotations

from dragoman.core import lookup
from dragoman.core.core import Core
from dragoman.runtime.operations.face import BrokerFace, Name, Operation, Tell, act, not_found


class Disconnect(Operation):
    """End a worker's connection now. What it holds goes back to its queues; that counts as its leaving, not as its death."""

    worker: Name

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        def change(core: Core) -> object:
            peer = lookup.find_worker(core, self.worker)
            if peer is None:
                raise not_found("worker", self.worker)
            leased = len(peer.held)
            core.leave(peer)
            # A worker of rq is one of several on its connection; where it comes from tells which that is.
            for session, connection in list(face.broker.connections.items()):
                if session.remote == peer.remote and session.listener == peer.listener:
                    connection.abort()
            return leased

        return {"worker": self.worker, "leased": await act(face, change)}
