"""State shared by all ebus sessions of a broker: settings, the table of requests, rids towards workers, and the broker's own channels."""

from __future__ import annotations

from operator import itemgetter
from typing import Final, final

from librt.strings import BytesWriter

from dragoman.dialects.contract import Dialect
from dragoman.dialects.ebus.commands import SHUTDOWN_CHANNEL, STARTED_CHANNEL, WORKERS_CHANNEL
from dragoman.dialects.ebus.data import pack
from dragoman.dialects.ebus.requests import Requests
from dragoman.dialects.ebus.settings import EbusSettings
from dragoman.dialects.ebus.stales import StalesMeanings
from dragoman.dialects.session import Outboxes
from dragoman.model.enums import EBUS, shown
from dragoman.model.peer import Peer
from dragoman.model.units import SECOND_NS
from dragoman.model.wire_ids import DIGITS
from dragoman.wire.zmtp.frames import MORE, write_frame

# `ebus/started` is published this long after the ports opened: subscribers of the previous broker need time to reconnect.
STARTED_AFTER_NS: Final = SECOND_NS
# The most (service, worker) pairs listed: some ms of the event loop.
LISTED_MAX: Final = 2000


@final
class WorkerList:
    """The data of SERVICES and WORKERS at one instant: every worker of any dialect, because an ebus client can reach them all."""

    def __init__(self, workers: list[Peer], mark: int, made_ns: int, is_json: bool) -> None:
        self.mark = mark
        self.made_ns = made_ns
        self.is_json = is_json
        self.active = active(workers)
        self.packed_services: bytes = b""
        self.packed_workers: bytes = b""

    def services(self) -> bytes:
        if not self.packed_services:
            names: list[object] = []
            for name, _ in self.active:
                if not names or names[-1] != name:
                    names.append(name)
            self.packed_services = pack(names, self.is_json)
        return self.packed_services

    def workers(self) -> bytes:
        if not self.packed_workers:
            self.packed_workers = pack([description(name, worker) for name, worker in self.active], self.is_json)
        return self.packed_workers


def active(workers: list[Peer]) -> list[tuple[str, Peer]]:
    """(service, worker) for every service of every worker, sorted by service; truncated above LISTED_MAX."""
    found: list[tuple[str, int, Peer]] = []
    for worker in workers:
        for serving in worker.work.serves:
            found.append((shown(serving.queue), worker.number, worker))
        if len(found) > LISTED_MAX:
            break
    found.sort(key=itemgetter(0, 1))
    return [(name, worker) for name, _, worker in found]


def description(service: str, worker: Peer) -> dict[str, object]:
    identity = shown(worker.identity) or f"W/{service}/{worker.number:x}"
    return {"id": identity, "service": service, "load": len(worker.work.leases)}


def mark_of(workers: list[Peer]) -> int:
    """A number that changes with the set of workers, cheap to compute: worker numbers are never reused."""
    mark = 0
    for worker in workers:
        if worker.work.serves:
            mark += worker.number * 31 + len(worker.work.serves)
    return mark


@final
class EbusDialect(Dialect):
    """Shared by the sessions of all ebus listeners."""

    def __init__(self, outboxes: Outboxes, settings: EbusSettings) -> None:
        super().__init__(outboxes)
        self.settings = settings
        self.stales = StalesMeanings()
        self.requests = Requests(outboxes.exchange)
        self.started_due_ns: int = 0  # when `ebus/started` is due; 0: already published, or not to be
        self.workers_mark: int = 0  # changes with the set of workers
        self.last_worker_list: WorkerList | None = None
        self.is_closing: bool = False
        for channel in (STARTED_CHANNEL, SHUTDOWN_CHANNEL, WORKERS_CHANNEL):
            self.exchange.topics.reserved.add(channel)
        self.reconfigured()

    def reconfigured(self) -> None:
        settings = self.settings
        self.stales.set_default(settings.stales_ns)
        self.requests.is_json = settings.is_json
        self.requests.stored_ns = settings.answers_kept_ns
        self.requests.answers_max = settings.answers_max
        self.requests.size_max = settings.answers_size_max

    def rid_of(self, number: int) -> bytes:
        """A message's rid towards workers, made by the broker: two clients may use the same rid, and workers remember rids."""
        ids = self.exchange.ids
        return ids.digits(number) if number >= ids.first else b"%x" % number

    def write_rid(self, out: BytesWriter, number: int) -> None:
        """Append the rid as a frame that is not the last."""
        ids = self.exchange.ids
        if number >= ids.first:
            out.append(MORE)
            out.append(DIGITS)
            ids.write(out, number)
        else:
            write_frame(out, self.rid_of(number), True)

    def listening(self) -> None:
        self.requests.load()
        self.started_due_ns = self.exchange.now_ns + STARTED_AFTER_NS

    def sweep(self, now_ns: int) -> None:
        for session in list(self.sessions.values()):
            session.beat(now_ns)
        self.requests.sweep(self.exchange.now_ns)
        if not self.is_closing:
            self.publish_events(now_ns)

    def publish_events(self, now_ns: int) -> None:
        """Publish on the broker's own channels, at most a tenth of a second after an event, so that many events make one message."""
        if 0 < self.started_due_ns <= now_ns:
            self.started_due_ns = 0
            self.announce(STARTED_CHANNEL, {"ebusmessage": "broker starting"})
        mark = mark_of(self.exchange.all_workers())
        if mark != self.workers_mark:
            self.workers_mark = mark
            names: list[object] = [name for name, _ in active(self.exchange.all_workers())]
            self.announce(WORKERS_CHANNEL, {"ebusmessage": "active workers", "workers": names})

    def closing(self) -> None:
        self.is_closing = True
        self.announce(SHUTDOWN_CHANNEL, {"ebusmessage": "broker stopping"})
        for session in list(self.sessions.values()):
            session.say_goodbye()

    def worker_list(self) -> WorkerList:
        """The list of services and workers, packed at most once per tick: a client that asks repeatedly must not keep the broker busy."""
        workers = self.exchange.all_workers()
        mark = mark_of(workers)
        known = self.last_worker_list
        if known is None or known.made_ns != self.exchange.now_ns or known.mark != mark:
            known = WorkerList(workers, mark, self.exchange.now_ns, self.settings.is_json)
            self.last_worker_list = known
        return known

    def announce(self, channel: bytes, items: dict[str, object]) -> None:
        self.exchange.topics.publish(channel, pack(items, self.settings.is_json), EBUS)
