"""Asking `explain`, and remembering what it said."""

from __future__ import annotations

from dragoman.core.queries import explain, lookup
from tests.core.harness import InMemoryBroker, Worker

JOB = b'["run", {}]'
HEARD: list[str] = []  # every line that was asked for since the list was last emptied


def heard(lines: list[str]) -> list[str]:
    HEARD.extend(lines)
    return lines


def message_lines(broker: InMemoryBroker, message_id: bytes) -> list[str]:
    m = lookup.find_message(broker.core, message_id.decode())
    assert m is not None
    return heard(explain.explain_message(broker.core, m))


def queue_lines(broker: InMemoryBroker, name: str) -> list[str]:
    queue = lookup.find_queue(broker.core, name)
    assert queue is not None
    return heard(explain.explain_queue(broker.core, queue))


def worker_lines(broker: InMemoryBroker, name: str) -> list[str]:
    peer = lookup.find_worker(broker.core, name)
    assert peer is not None
    return heard(explain.explain_worker(broker.core, peer))


def serve(broker: InMemoryBroker, queue: bytes, slots: int = 1, identity: bytes = b"worker") -> Worker:
    worker = broker.worker(identity)
    worker.inform((10, queue))
    worker.ready(slots)
    return worker
