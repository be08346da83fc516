"""Asking `explain`, and remembering what it said."""

from __future__ import annotations

from dragoman.core.queries import explain, lookup
from tests.core.harness import House, Worker

JOB = b'["run", {}]'
HEARD: list[str] = []  # every line that was asked for since the list was last emptied


def heard(lines: list[str]) -> list[str]:
    HEARD.extend(lines)
    return lines


def message_lines(house: House, message_id: bytes) -> list[str]:
    m = lookup.find_message(house.core, message_id.decode())
    assert m is not None
    return heard(explain.explain_message(house.core, m))


def queue_lines(house: House, name: str) -> list[str]:
    queue = lookup.find_queue(house.core, name)
    assert queue is not None
    return heard(explain.explain_queue(house.core, queue))


def worker_lines(house: House, name: str) -> list[str]:
    peer = lookup.find_worker(house.core, name)
    assert peer is not None
    return heard(explain.explain_worker(house.core, peer))


def serve(house: House, queue: bytes, slots: int = 1, identity: bytes = b"worker") -> Worker:
    worker = house.worker(identity)
    worker.inform((10, queue))
    worker.ready(slots)
    return worker
