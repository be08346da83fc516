"""The operation that ends a connection."""

from __future__ import annotations

from dragoman.core.core import Core
from dragoman.model.words import BY_OPERATOR
from dragoman.runtime.operations.face import BrokerFace, Name, Operation, Tell, act, known_worker


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
