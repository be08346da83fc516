"""What many sentences about eMQP begin with: a job as the original writes it, and peers that are ready to talk."""

from __future__ import annotations

import msgspec

from tests.core.harness import Client, InMemoryBroker, Worker

JOB = (
    b'["run", {"path": "mail", "callable": "send", "args": [1], "kwargs": {}, '
    b'"class_args": [], "class_kwargs": {}}]'
)  # fmt: skip


def ready_worker(broker: InMemoryBroker, queue: bytes = b"mail", slots: int = 1, identity: bytes = b"worker") -> Worker:
    """A worker of our own kind with free slots."""
    worker = broker.worker(identity)
    worker.inform((10, queue))
    worker.ready(slots)
    return worker


def ready_original(
    broker: InMemoryBroker, queue: bytes = b"mail", slots: int = 1, identity: bytes = b"original"
) -> Worker:
    """A worker in the shape of the original program."""
    worker = broker.worker(identity)
    worker.inform_as_original((10, queue))
    worker.ready(slots)
    return worker


def handed_over(client: Client) -> list[bytes]:
    """Ids the broker said were handed to a worker; other answers stay heard."""
    client.hear()
    found = [frames[4] for frames in client.heard if frames[2] == b"REPLY" and len(frames) == 5]
    client.heard = [frames for frames in client.heard if not (frames[2] == b"REPLY" and len(frames) == 5)]
    return found


def results(client: Client) -> list[tuple[bytes, bytes]]:
    """(request id, value) of the answers that carry one; hand-overs stay heard."""
    client.hear()
    found = [(frames[5], frames[4]) for frames in client.heard if frames[2] == b"REPLY" and len(frames) == 6]
    client.heard = [frames for frames in client.heard if not (frames[2] == b"REPLY" and len(frames) == 6)]
    return found


def error_type(value: bytes) -> str:
    """The code in an answer that tells of a failure."""
    return str(msgspec.json.decode(value)["error"]["type"])


def notes(broker: InMemoryBroker) -> dict[str, int]:
    """Oddities counted since the last look."""
    counted: dict[str, int] = dict(broker.core.notes)
    broker.core.notes.clear()
    return counted
