"""What all Scale0 sessions of a broker share: settings, the configuration and its version, bans, and the broadcast of the newest
original."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from dragoman.dialects.contract import Dialect
from dragoman.dialects.scale0.documents import Documents
from dragoman.dialects.scale0.phrases import Phrases
from dragoman.dialects.scale0.tree import Node
from dragoman.dialects.scale0.words import HEARTBEAT, OK, PING
from dragoman.dialects.session import Hub
from dragoman.limits import BANS_MAX
from dragoman.model.units import SECOND_NS

if TYPE_CHECKING:
    from dragoman.dialects.scale0.session import Scale0Session
    from dragoman.dialects.scale0.subscriber import Scale0Subscriber


@final
class Scale0Settings:
    """docs/reference/config.md explains each."""

    def __init__(self) -> None:
        self.tree = Node()
        self.heartbeat_ns: int = 10 * SECOND_NS
        self.heartbeats_missed: int = 3
        self.skew_ns: int = 30 * SECOND_NS
        self.offences_max: int = 10
        self.ban_ns: int = 60 * SECOND_NS
        self.broadcast_ns: int = SECOND_NS


@final
class Scale0Dialect(Dialect):
    """Shared by the sessions of all Scale0 listeners."""

    def __init__(self, hub: Hub, settings: Scale0Settings) -> None:
        super().__init__(hub)
        self.settings = settings
        self.documents = Documents(settings.tree, settings.heartbeat_ns / SECOND_NS)
        self.phrases = Phrases(self.documents.version.encode(), self.exchange.ids)
        self.speakers: dict[int, Scale0Session] = {}  # sessions of the ROUTER ports, by connection number
        self.listeners: dict[int, Scale0Subscriber] = {}  # of the PUB port
        self.bans: dict[bytes, int] = {}  # host and identity: until when
        self.is_draining: bool = False
        self.next_broadcast_ns: int = 0

    def reconfigured(self) -> None:
        """Everybody gets the new configuration, if there is one."""
        documents = Documents(self.settings.tree, self.settings.heartbeat_ns / SECOND_NS)
        if documents.version == self.documents.version:
            return
        for fellow in self.documents.fellows:
            if not fellow.is_live:
                documents.lose(fellow.address)
        self.documents = documents
        self.phrases = Phrases(documents.version.encode(), self.exchange.ids)
        for session in list(self.speakers.values()):
            session.push_config()

    def wall_ns(self) -> int:
        """What peers' clocks are compared with. The core's time takes no part in steps of the wall clock, and stands still while the disk
        does."""
        return self.hub.wall_ns if self.hub.wall_ns != 0 else self.exchange.now_ns

    def draining(self) -> None:
        self.is_draining = True
        for session in list(self.speakers.values()):
            session.push_away()

    def excuse(self, stall_ns: int) -> None:
        super().excuse(stall_ns)
        now_ns = self.exchange.now_ns
        for session in self.speakers.values():
            session.last_word_ns = min(session.last_word_ns + stall_ns, now_ns)

    def went_on(self, still_ns: int) -> None:
        super().went_on(still_ns)
        now_ns = self.exchange.now_ns - 1
        for session in self.speakers.values():
            if session.last_word_ns == still_ns:
                session.last_word_ns = now_ns

    # -- other brokers --------------------------------------------------------------------------------------------------

    def broker_for(self, services: list[bytes], is_client: bool) -> str:
        """The address of the least loaded broker that serves all these; empty when there is none. This one counts among them where
        the configuration names its address, and it accepts."""
        documents = self.documents
        best_rank = 0
        best_load = 2.0
        best = ""
        if documents.address and documents.is_accepting and not self.is_draining:
            if serves(documents.services, services):
                best_load = self.own_load()
                best = documents.client if is_client else documents.address
        for fellow in documents.fellows:
            if not fellow.is_live or not fellow.is_accepting or not serves(fellow.services, services):
                continue
            if fellow.address == documents.address:
                continue
            if not best or fellow.rank < best_rank or (fellow.rank == best_rank and fellow.load < best_load):
                best_rank = fellow.rank
                best_load = fellow.load
                best = fellow.client if is_client else fellow.address
        return best

    def heard_of(self, address: str, is_live: bool, load: float) -> None:
        """What a look at another broker has shown; its load is negative where it did not tell."""
        for fellow in self.documents.fellows:
            if fellow.address == address:
                fellow.is_live = is_live
                if load >= 0.0:
                    fellow.load = load

    def own_load(self) -> float:
        """The part of all workers' room that is taken; a broker without workers can do nothing for anybody."""
        held = 0
        room = 0
        for worker in self.exchange.all_workers():
            held += len(worker.held)
            room += len(worker.held) + worker.slots
        return held / room if room > 0 else 1.0

    # -- bans -----------------------------------------------------------------------------------------------------------

    def ban(self, who: bytes) -> None:
        while len(self.bans) >= BANS_MAX:
            del self.bans[next(iter(self.bans))]
        self.bans.pop(who, None)
        self.bans[who] = self.exchange.now_ns + self.settings.ban_ns

    def is_banned(self, who: bytes) -> bool:
        until_ns = self.bans.get(who)
        if until_ns is None:
            return False
        if until_ns > self.exchange.now_ns:
            return True
        del self.bans[who]
        return False

    # -- what the newest original broadcasts ----------------------------------------------------------------------------

    def sweep(self, now_ns: int) -> None:
        super().sweep(now_ns)
        if now_ns >= self.next_broadcast_ns:
            self.next_broadcast_ns = now_ns + self.settings.broadcast_ns
            stamp = b"%.2f" % (now_ns / SECOND_NS)
            self.broadcast([PING, stamp])
            for session in list(self.speakers.values()):
                session.ping_legacy(stamp)

    def broadcast_ok(self, worker: bytes) -> None:
        self.broadcast([worker, OK])

    def broadcast_heartbeat(self, worker: bytes, stamp: bytes) -> None:
        self.broadcast([worker, HEARTBEAT, stamp])

    def broadcast(self, frames: list[bytes]) -> None:
        for listener in self.listeners.values():
            listener.tell(frames)


def serves(served: list[str], wanted: list[bytes]) -> bool:
    """A broker that names no services serves them all."""
    if not served:
        return True
    return all(name.decode("utf-8", "replace") in served for name in wanted)
