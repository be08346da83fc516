"""The roll of workers, as the broker tells it: every worker, whatever it speaks, for an ebus client reaches them all."""

from __future__ import annotations

from typing import final

from dragoman.dialects.ebus.data import pack
from dragoman.model.peer import Peer


@final
class Roll:
    """The data of SERVICES and WORKERS at one instant."""

    def __init__(self, workers: list[Peer], mark: int, made_ns: int, is_json: bool) -> None:
        self.mark = mark
        self.made_ns = made_ns
        services: list[object] = []
        described: list[object] = []
        for name, worker in active(workers):
            if not services or services[-1] != name:
                services.append(name)
            described.append(description(name, worker))
        self.services: bytes = pack(services, is_json)
        self.workers: bytes = pack(described, is_json)


def active(workers: list[Peer]) -> list[tuple[str, Peer]]:
    """(service, worker) for every claim of every worker, by service."""
    found: list[tuple[str, int, Peer]] = []
    for worker in workers:
        for serving in worker.serves:
            found.append((serving.queue.decode("utf-8", "backslashreplace"), worker.number, worker))
    found.sort(key=name_and_number)
    return [(name, worker) for name, _, worker in found]


def name_and_number(entry: tuple[str, int, Peer]) -> tuple[str, int]:
    return (entry[0], entry[1])


def description(service: str, worker: Peer) -> dict[str, object]:
    identity = worker.identity.decode("utf-8", "backslashreplace") or f"W/{service}/{worker.number:x}"
    return {"id": identity, "service": service, "load": len(worker.held)}


def mark_of(workers: list[Peer]) -> int:
    """A number that changes with the set of workers, without naming them all: worker numbers are never used twice."""
    mark = 0
    for worker in workers:
        if worker.serves:
            mark += worker.number * 31 + len(worker.serves)
    return mark
