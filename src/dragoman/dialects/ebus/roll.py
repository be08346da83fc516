"""The list of active workers that the broker sends: every worker of any dialect, because an ebus client can reach them all."""

from __future__ import annotations

from typing import Final, final

from dragoman.dialects.ebus.data import pack
from dragoman.model.peer import Peer
from dragoman.model.words import shown

# The most (service, worker) pairs listed: some ms of the event loop.
CLAIMS_LISTED_MAX: Final = 2000


@final
class Roll:
    """The data of SERVICES and WORKERS at one instant."""

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
    """(service, worker) for every service of every worker, sorted by service; truncated above CLAIMS_LISTED_MAX."""
    found: list[tuple[str, int, Peer]] = []
    for worker in workers:
        for serving in worker.work.serves:
            found.append((shown(serving.queue), worker.number, worker))
        if len(found) > CLAIMS_LISTED_MAX:
            break
    found.sort(key=name_and_number)
    return [(name, worker) for name, _, worker in found]


def name_and_number(entry: tuple[str, int, Peer]) -> tuple[str, int]:
    return (entry[0], entry[1])


def description(service: str, worker: Peer) -> dict[str, object]:
    identity = shown(worker.identity) or f"W/{service}/{worker.number:x}"
    return {"id": identity, "service": service, "load": len(worker.work.held)}


def mark_of(workers: list[Peer]) -> int:
    """A number that changes with the set of workers, cheap to compute: worker numbers are never reused."""
    mark = 0
    for worker in workers:
        if worker.work.serves:
            mark += worker.number * 31 + len(worker.work.serves)
    return mark
