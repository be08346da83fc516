"""Reads a journal for one slice: the messages that were open in it with all their facts, the workers, and the state of the queues.

Messages that ended before the slice are dropped as soon as they end, so memory is bounded by what is open; and
of a body only its kind and its size are stored, unless bodies are requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from dragoman.errors import ExportTooLarge
from dragoman.journal.format import Block
from dragoman.limits import EXPORT_MESSAGES_MAX
from dragoman.model.facts import layout
from dragoman.model.facts.decode import decode
from dragoman.model.facts.fields import RecordWalk, record_number, record_text
from dragoman.model.facts.records import read_accepted
from dragoman.model.message import Message
from dragoman.model.phrases import read_number
from dragoman_lab.replay.tables import KEPT, kind_of

OF_MESSAGES = (layout.LEASED, layout.DELIVERED, layout.RELEASED, layout.CLOSED, layout.QUARANTINED, layout.REQUEUED)
OF_ALL = (layout.STARTED, layout.QUEUE_NAMED, layout.WORKER_JOINED, layout.WORKER_LEFT, layout.PAUSED, layout.RESUMED)

Fact = dict[str, Any]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Wanted:
    """The slice to export. `to_ns` is exclusive; an empty queue or key matches any."""

    from_ns: int
    to_ns: int
    queue: str = ""
    key: str = ""  # a message's id, of its client's or the broker's own
    with_bodies: bool = False


@dataclass
class ExportedMessage:
    """One message. `facts` without its acceptance; each with `lsn` and `time_ns`."""

    message: Message  # without its body
    body_kind: str
    body: bytes | tuple[str, int]  # as in a table
    queue: str
    accepted_ns: int
    lsn: int
    is_new: bool  # accepted in the slice; else it was open when the slice begins
    facts: list[Fact] = field(default_factory=list)
    name: str = ""  # in the tables
    placed_ns: int = 0  # when it is accepted in the story: later than in the journal if that is very long ago
    lines: list[str] = field(default_factory=lambda: ["accepted"])  # its history as text


@dataclass
class Worker:
    """One worker's connection to the broker."""

    number: int
    dialect: str
    identity: bytes
    joins: list[Fact] = field(default_factory=list)
    left: Fact | None = None
    name: str = ""  # in the tables; empty: it is not in them
    entry: dict[str, Any] = field(default_factory=dict)  # there


class History:
    """Read blocks in order with `read`."""

    def __init__(self, wanted: Wanted, queues: dict[int, str]) -> None:
        self.wanted = wanted
        self.queues = queues  # names by number; may be filled before reading, from elsewhere
        self.lives: dict[int, ExportedMessage] = {}
        self.workers: dict[int, Worker] = {}
        self.facts: list[Fact] = []  # of the slice, in order
        self.switched: dict[str, str] = {}  # queues paused or draining when it begins, and the operator's action
        self.headless: set[int] = set()  # messages whose acceptance the journal no longer has
        self._number = read_number(wanted.key) if wanted.key else 0

    def read(self, blocks: Iterable[Block], last_lsn: int, progress: Progress) -> None:
        for block in blocks:
            if block.time_ns >= self.wanted.to_ns:
                break
            if block.time_ns >= self.wanted.from_ns:
                self._check_count()
            self.block(block)
            progress(block.first_lsn + block.count, max(last_lsn, block.first_lsn + block.count))
        self._check_count()

    def block(self, block: Block) -> None:
        records, walk = block.records, RecordWalk(block.records)
        while walk.step():
            at, kind, lsn = walk.at, walk.kind, block.first_lsn + walk.facts
            if kind in (layout.ACCEPTED, layout.CARRIED):
                self._accepted(records, at, block.time_ns, lsn)
            elif kind in OF_ALL or (kind in OF_MESSAGES and self._is_wanted(records, at, block.time_ns)):
                fact: Fact = decode(records, at)
                fact["lsn"], fact["time_ns"] = lsn, block.time_ns
                if kind == layout.WORKER_JOINED:
                    fact["identity_bytes"] = bytes.fromhex(record_text(records, at).split(b"\t", 3)[2].decode())
                self._take(fact)

    def _is_wanted(self, records: bytes, at: int, time_ns: int) -> bool:
        if record_number(records, at) in self.lives:
            return True
        return records[at + layout.KIND] == layout.CLOSED and time_ns >= self.wanted.from_ns

    def _accepted(self, records: bytes, at: int, time_ns: int, lsn: int) -> None:
        is_carried = records[at + layout.KIND] == layout.CARRIED
        accepted_ns = record_number(records, at) if is_carried else time_ns
        message = read_accepted(records, at + layout.CARRIED_RECORD if is_carried else at, b"", True)
        queue = self.queues.get(message.queue_no, f"queue {message.queue_no}")
        if message.number in self.lives or (self.wanted.queue and queue != self.wanted.queue):
            return
        if self.wanted.key and message.number != self._number and message.client_id != self.wanted.key.encode():
            return
        is_new = time_ns >= self.wanted.from_ns and not is_carried
        body, message.body = message.body, b""
        kind = kind_of(body)
        shown = body if self.wanted.with_bodies or body in KEPT else (kind, len(body))
        self.lives[message.number] = ExportedMessage(message, kind, shown, queue, accepted_ns, lsn, is_new)
        if is_new:
            self.facts.append({"fact": "accepted", "message_no": message.number, "lsn": lsn, "time_ns": time_ns})
        if time_ns >= self.wanted.from_ns:
            self._check_count()

    def _check_count(self) -> None:
        if len(self.lives) > EXPORT_MESSAGES_MAX:
            raise ExportTooLarge(len(self.lives), EXPORT_MESSAGES_MAX)

    def _take(self, fact: Fact) -> None:
        name = fact["fact"]
        is_inside = fact["time_ns"] >= self.wanted.from_ns
        if name == "queue_named":
            self.queues[fact["queue_no"]] = fact["queue"]
            return
        if name in ("paused", "resumed"):
            self._switched(fact, is_inside)
        elif name == "started":
            if not is_inside:
                self.workers.clear()
        elif name in ("worker_joined", "worker_left"):
            self._worker(fact, is_inside)
        else:
            life = self.lives.get(fact["message_no"])
            if life is None:
                self._headless(fact, is_inside)
                return
            life.facts.append(fact)
            if name == "closed" and not is_inside:
                del self.lives[fact["message_no"]]
        if is_inside:
            self.facts.append(fact)

    def _switched(self, fact: Fact, is_inside: bool) -> None:
        queue = fact["queue"] = self.queues.get(fact["queue_no"], "")
        if is_inside:
            return
        self.switched.pop(queue, None)
        if (what := switch_word(fact)) != "resumes":
            self.switched[queue] = what

    def _worker(self, fact: Fact, is_inside: bool) -> None:
        number = fact["worker_no"]
        if fact["fact"] == "worker_joined":
            worker = self.workers.setdefault(number, Worker(number, fact["dialect"], fact["identity_bytes"]))
            worker.joins.append(fact)
        elif number in self.workers:
            if is_inside:
                self.workers[number].left = fact
            else:
                del self.workers[number]

    def _headless(self, fact: Fact, is_inside: bool) -> None:
        """A fact of a message outside the slice, or of one whose acceptance is older than what the journal keeps."""
        queue = self.queues.get(fact.get("queue_no", 0), "")
        is_other = bool(self.wanted.queue) and queue != self.wanted.queue
        if is_inside and not is_other and not self.wanted.key and fact.get("accepted_ns", 0) < self.wanted.from_ns:
            self.headless.add(fact["message_no"])


def switch_word(fact: Fact) -> str:
    """The operator's action on a queue. A drain ends a pause, and has the same fact."""
    if fact["fact"] == "paused":
        return "pauses"
    return "drains" if fact.get("is_draining") else "resumes"
