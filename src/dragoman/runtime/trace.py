"""The whole life of a message, read from the journal's files; a running broker is not disturbed, a stopped one not needed.

A message is looked for by its client's id (there may have been several with it: each is a life of its own), by its number in
either form, or by the id the broker gave it towards workers. Facts older than the journal keeps are gone, and said to be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dragoman.core.phrases import duration, instant, number_text, read_number
from dragoman.journal import JournalReader
from dragoman.model.decode import decode
from dragoman.model.mentions import find_mentions
from dragoman.model.message import own_wire_id

# Workers remembered while reading, so that leases can name them; the oldest go first.
WORKERS_REMEMBERED_MAX = 100_000

Fact = dict[str, Any]
Progress = Callable[[int, int], None]  # lsn read, last lsn


@dataclass
class Life:
    """One message: its facts in order, each with `lsn` and `time_ns`."""

    number: int
    facts: list[Fact] = field(default_factory=list)
    queue_no: int = 0
    queue: str = ""  # empty when it was named before the oldest kept fact
    client_id: str = ""
    is_leased: bool = False

    @property
    def is_begun(self) -> bool:
        """False when the journal no longer keeps how it was accepted."""
        return any(fact["fact"] in ("accepted", "carried") for fact in self.facts)

    @property
    def end(self) -> Fact | None:
        return next((fact for fact in self.facts if fact["fact"] == "closed"), None)


class Tracer:
    """Reads blocks in order and gathers the lives that answer to a key."""

    def __init__(self, key: str) -> None:
        text = key.encode("utf-8", "surrogateescape")
        number = read_number(key)
        self._client_id = text
        self._numbers: set[int] = {number} if number > 0 else set()
        self._workers: dict[int, str] = {}
        self._queues: dict[int, str] = {}
        self._wire_ids: dict[str, int] = {}
        self.lives: dict[int, Life] = {}

    def block(self, records: bytes, first_lsn: int, time_ns: int) -> None:
        found: list[tuple[int, int]] = []
        find_mentions(records, self._numbers, self._client_id, found)
        for at, ordinal in found:
            fact = decode(records, at)
            fact["lsn"] = first_lsn + ordinal
            fact["time_ns"] = time_ns
            self._take(fact)

    def _take(self, fact: Fact) -> None:
        name = fact["fact"]
        if name == "queue_named":
            self._queues[fact["queue_no"]] = fact["queue"]
        elif name == "worker_joined":
            self._workers[fact["worker_no"]] = fact["identity"] or fact["remote"]
            if len(self._workers) > WORKERS_REMEMBERED_MAX:
                del self._workers[next(iter(self._workers))]
        elif name == "started":
            for life in self.lives.values():
                if life.is_leased:  # every session ended with the boot before: the lease was one of them
                    life.is_leased = False
                    life.facts.append(dict(fact))
        elif name == "released" and fact["reason"] == "broker_started":
            pass  # `started` has said it
        elif name == "late":
            number = self._wire_ids.get(fact["wire_id"])
            if number is not None:
                self._tell(number, fact)
        else:
            self._tell(fact["message_no"], fact)

    def _tell(self, number: int, fact: Fact) -> None:
        life = self.lives.setdefault(number, Life(number))
        name = fact["fact"]
        if name == "carried" and life.is_begun:
            return  # moved to another file: no event of its life
        worker_no = fact.get("worker_no", 0)
        if worker_no:
            fact["worker"] = self._workers.get(worker_no, "")
        if "queue_no" in fact:
            life.queue_no = fact["queue_no"]
            life.queue = self._queues.get(fact["queue_no"], life.queue)
        if name in ("accepted", "carried"):
            life.client_id = fact["client_id"]
            self._wire_ids[own_wire_id(number).decode()] = number
            if life.client_id:
                self._wire_ids[life.client_id] = number
        if name in ("leased", "released", "closed", "quarantined"):
            life.is_leased = name == "leased"
        life.facts.append(fact)


def trace(directory: str, key: str, progress: Progress | None = None) -> list[Life]:
    """Every life of the journal in `directory` that answers to `key`, oldest first."""
    reader = JournalReader(directory)
    segments = reader.segments()
    last_lsn = segments[-1].last_lsn if segments else 0
    tracer = Tracer(key)
    for block in reader.read(0):
        tracer.block(block.records, block.first_lsn, block.time_ns)
        if progress is not None:
            progress(block.first_lsn + block.count, max(last_lsn, block.first_lsn + block.count))
    return [life for _, life in sorted(tracer.lives.items())]


def end_line(life: Life) -> str:
    """How a settled message ended, as `explain` says it."""
    closed = life.end
    assert closed is not None
    line = f"settled: {closed['outcome']} ({closed['reason']}) {instant(closed['time_ns'], 0)}"
    if closed["accepted_ns"]:
        line += f", {duration(closed['time_ns'] - closed['accepted_ns'])} after it was accepted"
    if closed["worker_no"]:
        name = closed.get("worker") or "worker"
        line += f", by {name} (w{number_text(closed['worker_no'])}), attempt {closed['attempt']}"
    return line
