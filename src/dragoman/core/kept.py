"""Messages as the journal keeps them, read back by place. Every record is proved before it comes here; where that fails, the damage costs the
one message: it goes on with what is known without its record, until it is quarantined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from dragoman.core.lifecycle import WAITING
from dragoman.core.lines import Lane, Line
from dragoman.core.queue import Queue
from dragoman.errors import RecordDamaged
from dragoman.model.message import Message
from dragoman.model.records import accepted_body, carried_at, read_accepted
from dragoman.model.words import INTERNAL


@final
class TailRow:
    """One message of a tail; `at` is its index there."""

    def __init__(self, queue: Queue, lane: Lane, line: Line, at: int) -> None:
        self.queue = queue
        self.lane = lane
        self.line = line
        self.at = at


def find_row(queues: dict[bytes, Queue], number: int) -> TailRow | None:
    """Where a message waits that is on disk only."""
    for queue in queues.values():
        if not queue.has_tails:
            continue
        for lane in queue.lanes:
            for line in lane.lines.values():
                at = line.tail.find(number) if line.tail.live > 0 else -1
                if at >= 0:
                    return TailRow(queue, lane, line, at)
    return None


@final
class Kept:
    """Reads messages by place. `load` gives the proved record of a place and a message number, or raises `RecordDamaged`."""

    def __init__(self, load: Callable[[int, int], bytes]) -> None:
        self.load = load

    def read(self, queue: Queue, number: int, place: int, with_body: bool) -> Message:
        """The message of a record; a bare one when that is damaged."""
        try:
            record = self.load(place, number)
        except RecordDamaged as damaged:
            return bare_message(queue, number, place, damaged.evidence)
        m = read_accepted(record, carried_at(record), queue.name, with_body)
        m.place = place
        m.state = WAITING
        return m

    def read_row(self, queue: Queue, lane: Lane, line: Line, at: int, with_body: bool) -> Message:
        """A copy of a message of a tail: it is in no index and in no line."""
        tail = line.tail
        m = self.read(queue, tail.numbers[at], tail.places[at], with_body)
        if m.is_bare:
            add_row(m, lane, line, at)
        else:
            m.accepted_ns = tail.accepted[at]
        return m

    def bare_row(self, row: TailRow) -> Message:
        """The same as if its record were damaged, whatever it is like now."""
        tail = row.line.tail
        m = bare_message(row.queue, tail.numbers[row.at], tail.places[row.at], b"")
        add_row(m, row.lane, row.line, row.at)
        return m

    def load_body(self, m: Message) -> bool:
        """Bring a body into memory, and what else a bare message lacks. False when its record is damaged: `m.damage` says how."""
        try:
            record = self.load(m.place, m.number)
        except RecordDamaged as damaged:
            m.damage = damaged.evidence
            return False
        at = carried_at(record)
        if m.is_bare:
            complete(m, read_accepted(record, at, m.queue, False))
        m.body = accepted_body(record if at == 0 else record[at:])
        m.is_loaded = True
        m.damage = b""
        return True

    def is_sound(self, m: Message) -> bool:
        """Whether a record can be read; if not, `m.damage` says why."""
        try:
            self.load(m.place, m.number)
        except RecordDamaged as damaged:
            m.damage = damaged.evidence
            return False
        return True


def bare_message(queue: Queue, number: int, place: int, damage: bytes) -> Message:
    """A message whose record is damaged. Who asked for it is not known: `Routes` finds nobody to answer."""
    m = Message(INTERNAL, queue.name, b"", b"")
    m.number = number
    m.queue_no = queue.number
    m.place = place
    m.is_loaded = False
    m.is_bare = True
    m.damage = damage
    m.state = WAITING
    return m


def add_row(m: Message, lane: Lane, line: Line, at: int) -> None:
    """What a tail knows of its message."""
    m.priority = lane.priority
    m.accepted_ns = line.tail.accepted[at]
    m.expires_ns = line.tail.expires[at]


def complete(m: Message, record: Message) -> None:
    """A record that was damaged can be read again: what only it knows."""
    m.is_bare = False
    m.dialect = record.dialect
    m.client_id = record.client_id
    m.address = record.address
    m.body_size = record.body_size
    m.headers = record.headers
    m.flags = record.flags
    m.priority = record.priority
    m.timeout_ns = record.timeout_ns
    m.asked_due_ns = record.asked_due_ns
    m.dedupe = record.dedupe
    m.schedule_no = record.schedule_no
    if m.attempt == 0:
        m.retries_left = record.retries_left
