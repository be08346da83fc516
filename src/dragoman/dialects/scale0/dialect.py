"""State shared by all Scale0 sessions of a broker: settings, the configuration and its version, bans, and the broadcast of the newest
original."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from dragoman.dialects.contract import Dialect
from dragoman.dialects.scale0.commands import PING
from dragoman.dialects.scale0.configuration.documents import Documents
from dragoman.dialects.scale0.phrases import Phrases
from dragoman.dialects.scale0.settings import Scale0Settings
from dragoman.dialects.session import Outboxes
from dragoman.limits import BANS_MAX
from dragoman.model.units import SECOND_NS

# Peers, and bytes, of a new configuration that are sent in one turn: some ms of the event loop.
PUSHED_MAX: Final = 100
PUSHED_SIZE_MAX: Final = 64 * 1024

if TYPE_CHECKING:
    from dragoman.dialects.scale0.sessions import Scale0Session, Scale0Subscriber


@final
class Scale0Dialect(Dialect):
    """Shared by the sessions of all Scale0 listeners."""

    def __init__(self, outboxes: Outboxes, settings: Scale0Settings) -> None:
        super().__init__(outboxes)
        self.settings = settings
        self.documents = Documents(settings.tree, settings.heartbeat_ns / SECOND_NS)
        self.phrases = Phrases(self.documents.version.encode(), self.exchange.ids)
        self.routed: dict[int, Scale0Session] = {}  # sessions of the ROUTER ports, by connection number
        self.listeners: dict[int, Scale0Subscriber] = {}  # sessions of the PUB port
        self.bans: dict[bytes, int] = {}  # host and identity → end of the ban
        self.is_draining: bool = False
        self.next_broadcast_ns: int = 0
        self.unpushed: dict[int, Scale0Session] = {}  # sessions that a new configuration must still be sent to

    def reconfigured(self) -> None:
        """Send the new configuration to all peers, if it has changed."""
        documents = Documents(self.settings.tree, self.settings.heartbeat_ns / SECOND_NS)
        if documents.version == self.documents.version:
            return
        silent = [other.address for other in self.documents.others if not other.is_live]
        self.documents = documents
        for address in silent:
            self.note_check(address, False, -1.0)
        self.phrases = Phrases(documents.version.encode(), self.exchange.ids)
        self.unpushed = dict(self.routed)
        self.push_some()

    def push_some(self) -> None:
        """Send the new configuration to some of the peers that do not have it yet; the rest follows with the next sweeps."""
        count = 0
        size = 0
        while self.unpushed and count < PUSHED_MAX and size < PUSHED_SIZE_MAX:
            session = self.unpushed.pop(next(iter(self.unpushed)))
            before = len(session.free_out)
            session.push_config()
            size += len(session.free_out) - before
            count += 1

    def wall_ns(self) -> int:
        """The time to compare peers' clocks with. The core's time ignores steps of the wall clock, and stands still while the disk is
        blocked."""
        return self.outboxes.wall_ns if self.outboxes.wall_ns != 0 else self.exchange.now_ns

    def draining(self) -> None:
        self.is_draining = True
        for session in list(self.routed.values()):
            session.send_away()

    def excuse(self, stall_ns: int) -> None:
        super().excuse(stall_ns)
        now_ns = self.exchange.now_ns
        for session in self.routed.values():
            session.last_message_ns = min(session.last_message_ns + stall_ns, now_ns)

    def went_on(self, still_ns: int) -> None:
        super().went_on(still_ns)
        now_ns = self.exchange.now_ns - 1
        for session in self.routed.values():
            if session.last_message_ns == still_ns:
                session.last_message_ns = now_ns

    # -- other brokers --------------------------------------------------------------------------------------------------

    def broker_for(self, services: list[bytes], is_client: bool) -> str:
        """The address of the least loaded broker that serves all of these; empty when there is none. This broker is considered if the
        configuration has its address and it accepts new peers."""
        documents = self.documents
        best_rank = 0
        best_load = 2.0
        best = ""
        if documents.address and documents.is_accepting and not self.is_draining:
            if serves(documents.services, services):
                best_load = self.own_load()
                best = documents.client if is_client else documents.address
        for other in documents.others:
            if not other.is_live or not other.is_accepting or not serves(other.services, services):
                continue
            if other.address == documents.address:
                continue
            if not best or other.rank < best_rank or (other.rank == best_rank and other.load < best_load):
                best_rank = other.rank
                best_load = other.load
                best = other.client if is_client else other.address
        return best

    def note_check(self, address: str, is_live: bool, load: float) -> None:
        """Store the result of checking another broker; the load is negative if it did not report one."""
        for other in self.documents.others:
            if other.address == address:
                other.is_live = is_live
                if load >= 0.0:
                    other.load = load

    def own_load(self) -> float:
        """The fraction of all workers' slots that is in use; 1 for a broker without workers, which cannot do any work."""
        in_use = 0
        slots = 0
        for worker in self.exchange.all_workers():
            in_use += len(worker.work.leases)
            slots += len(worker.work.leases) + worker.work.slots
        return in_use / slots if slots > 0 else 1.0

    # -- bans -----------------------------------------------------------------------------------------------------------

    def ban(self, peer: bytes) -> None:
        while len(self.bans) >= BANS_MAX:
            del self.bans[next(iter(self.bans))]
        self.bans.pop(peer, None)
        self.bans[peer] = self.exchange.now_ns + self.settings.ban_ns

    def is_banned(self, peer: bytes) -> bool:
        until_ns = self.bans.get(peer)
        if until_ns is None:
            return False
        if until_ns > self.exchange.now_ns:
            return True
        del self.bans[peer]
        return False

    # -- broadcasts of the newest original ------------------------------------------------------------------------------

    def sweep(self, now_ns: int) -> None:
        super().sweep(now_ns)
        self.push_some()
        if now_ns >= self.next_broadcast_ns:
            self.next_broadcast_ns = now_ns + self.settings.broadcast_ns
            stamp = b"%.2f" % (now_ns / SECOND_NS)
            self.broadcast([PING, stamp])
            for session in list(self.routed.values()):
                session.ping_legacy(stamp)

    def broadcast(self, frames: list[bytes]) -> None:
        for listener in self.listeners.values():
            listener.send(frames)


def serves(served: list[str], wanted: list[bytes]) -> bool:
    """Whether a broker serves all wanted services; one without a list serves everything."""
    if not served:
        return True
    return all(name.decode("utf-8", "replace") in served for name in wanted)
