"""Workers that the operator dismissed: they stay connected, finish what they hold, and get no new leases until they are admitted.

A dismissal belongs to the worker, not to one connection. `Peer.lasting_id` recognises a worker when it reconnects: the program id
that our SDK sends, else its identity and host. A worker with neither is dismissed only until its connection ends. Dismissals are not
durable: a restart of the broker forgets them.
"""

from __future__ import annotations

from typing import final

from dragoman.limits import DISMISSALS_MAX
from dragoman.model.peer import BY_IDENTITY, Peer


@final
class Dismissal:
    """One dismissed worker."""

    def __init__(self, peer: Peer, since_ns: int) -> None:
        self.dialect = peer.dialect
        self.identity = peer.identity
        self.remote = peer.remote
        self.worker_no = peer.number
        self.since_ns = since_ns
        self.until_ns: int = 0  # 0: for as long as the broker runs


@final
class Dismissals:
    """Dismissals by lasting id, the oldest first."""

    def __init__(self) -> None:
        self.by_id: dict[bytes, Dismissal] = {}

    def add(self, peer: Peer, now_ns: int) -> None:
        if peer.lasting_id:
            self.by_id.pop(peer.lasting_id, None)
            self.by_id[peer.lasting_id] = Dismissal(peer, now_ns)
            if len(self.by_id) > DISMISSALS_MAX:
                del self.by_id[next(iter(self.by_id))]

    def remove(self, lasting_id: bytes) -> None:
        self.by_id.pop(lasting_id, None)

    def holds(self, lasting_id: bytes, now_ns: int) -> bool:
        """Whether a worker with this lasting id is dismissed."""
        if not lasting_id:
            return False
        found = self.by_id.get(lasting_id)
        if found is None:
            return False
        if found.until_ns != 0 and found.until_ns <= now_ns:
            del self.by_id[lasting_id]
            return False
        found.until_ns = 0  # it is connected: the time runs from its next departure
        return True

    def departed(self, peer: Peer, now_ns: int, kept_out_ns: int) -> None:
        """Limit a dismissal by identity once its connection ended: another program may use that identity later. A program id is never reused."""
        found = self.by_id.get(peer.lasting_id) if peer.lasting_id.startswith(BY_IDENTITY) else None
        if found is not None:
            found.until_ns = now_ns + kept_out_ns

    def absent(self, present: set[bytes], now_ns: int) -> list[Dismissal]:
        """The dismissed workers that are not connected."""
        found: list[Dismissal] = []
        for lasting_id in list(self.by_id):
            if lasting_id in present:
                continue
            one = self.by_id[lasting_id]
            if one.until_ns != 0 and one.until_ns <= now_ns:
                del self.by_id[lasting_id]
            else:
                found.append(one)
        return found
