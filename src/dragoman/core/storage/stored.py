"""Reads messages back from the journal by the position of their records (segment << 32 | offset). The CRC of every record is verified. A damaged
record affects only its own message, which continues with what else is known of it (`Message.is_unreadable`) until it is quarantined.

Reading takes time, mostly for allocating memory: `read_cost` counts the bytes that were loaded, and an eighth of those that were only verified.
Callers that read many records use it as their budget.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

from dragoman.core.lifecycle import WAITING
from dragoman.core.state.lines import Lane, Line
from dragoman.core.state.queue import Queue, lines_with_tails
from dragoman.core.state.tail import id_hash
from dragoman.errors import RecordDamaged
from dragoman.limits import EXPIRING_MAX, EXPIRING_READ_SIZE, EXPIRING_STEP, READ_WHOLE_SIZE, VERIFIED_SHARE
from dragoman.model.enums import INTERNAL
from dragoman.model.facts.fields import accepted_body, body_at, body_end, record_size
from dragoman.model.facts.record_load import RecordInMemory, RecordLoad
from dragoman.model.facts.records import FactLog, carried_at, read_accepted
from dragoman.model.message import Message

if TYPE_CHECKING:
    from dragoman.core.state.state import State

# What the journal offers, by position and message number: a verified record, the beginning of one, a load in steps.
ReadRecord = Callable[[int, int], bytes]
Look = Callable[[int, int, int], bytes]
BeginLoad = Callable[[int, int, bool], RecordLoad]

# Fields that an unreadable message lacks and its record has.
RECORD_FIELDS: Final = [
    "dialect",
    "client_id",
    "address",
    "body_size",
    "headers",
    "flags",
    "priority",
    "timeout_ns",
    "asked_due_ns",
    "dedupe",
    "schedule_no",
]


@final
class TailRow:
    """One row of a tail; `at` is its index there."""

    def __init__(self, queue: Queue, lane: Lane, line: Line, at: int) -> None:
        self.queue = queue
        self.lane = lane
        self.line = line
        self.at = at


def find_row(queues: dict[bytes, Queue], number: int) -> TailRow | None:
    """Find the tail row of a message that is on disk only."""
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
class StoredRecords:
    """Reads messages from the journal, or from the fact log if not yet written. With only `read_record`, records are always read whole."""

    def __init__(self, log: FactLog, read_record: ReadRecord, look: Look | None, begin_load: BeginLoad | None) -> None:
        self.log = log
        self.read_record = read_record
        self.look = look
        self.begin_load = begin_load
        self.read_cost: int = 0

    def load(self, position: int, number: int) -> bytes:
        """The verified record of a message. Raises `RecordDamaged`, like `begin` and `verify`."""
        record = self.log.find(position)
        return record if record else self.read_record(position, number)

    def begin(self, position: int, number: int, is_whole: bool) -> RecordLoad:
        """Begin to load the body, or (`is_whole`) the accepted record, in steps."""
        record = self.log.find(position)
        if not record and self.begin_load is not None:
            return self.begin_load(position, number, is_whole)
        return RecordInMemory(record if record else self.read_record(position, number), is_whole)

    def verify(self, position: int, number: int, body_most: int) -> bytes:
        """Verify a whole record; returns its beginning with up to `body_most` bytes of the body, all of a small record."""
        record = self.log.find(position)
        if not record:
            record = (
                self.look(position, number, body_most) if self.look is not None else self.read_record(position, number)
            )
        size = record_size(record, 0)
        self.read_cost += size if size == len(record) else size // VERIFIED_SHARE
        return record

    def read(self, queue: Queue, number: int, position: int, with_body: bool) -> Message:
        """The message of a record; an unreadable one if the record is damaged. `with_body`: load the body if it is small."""
        try:
            record = self.verify(position, number, 0)
        except RecordDamaged as damaged:
            return unreadable_message(queue, number, position, damaged.evidence)
        is_whole = len(record) == record_size(record, 0)
        m = read_accepted(record, carried_at(record), queue.name, with_body and is_whole)
        m.position = position
        m.state = WAITING
        return m

    def read_row(self, queue: Queue, lane: Lane, line: Line, at: int, with_body: bool) -> Message:
        """A message read from a tail row; it is in no index and in no line."""
        tail = line.tail
        m = self.read(queue, tail.numbers[at], tail.positions[at], with_body)
        if m.is_unreadable:
            add_row(m, lane, line, at)
        else:
            m.accepted_ns = tail.accepted[at]
        return m

    def unreadable_row(self, row: TailRow) -> Message:
        """The unreadable message of a tail row, without reading its record."""
        tail = row.line.tail
        m = unreadable_message(row.queue, tail.numbers[row.at], tail.positions[row.at], b"")
        add_row(m, row.lane, row.line, row.at)
        return m

    def load_body(self, m: Message) -> bool:
        """Load a body, and the fields that an unreadable message lacks. False when its record is damaged: `m.damage` says how."""
        try:
            if m.is_unreadable or m.body_size <= READ_WHOLE_SIZE:
                record = self.load(m.position, m.number)
                at = carried_at(record)
                self.read_cost += len(record)
                self.set_body(m, record, accepted_body(record, at))
            else:
                load = self.begin(m.position, m.number, False)
                while not load.step(m.body_size):
                    pass
                self.read_cost += m.body_size
                self.set_body(m, load.head, load.taken())
        except RecordDamaged as damaged:
            m.damage = damaged.evidence
            return False
        return True

    def set_body(self, m: Message, head: bytes, body: bytes) -> None:
        """Set the body that was read; `head` is the beginning of the record, up to the body or further."""
        if m.is_unreadable:
            complete(m, read_accepted(head, carried_at(head), m.queue, False))
        m.body = body
        m.is_loaded = True
        m.damage = b""

    def is_sound(self, m: Message) -> bool:
        """Whether a record can be read; if so, an unreadable message is completed. If not, `m.damage` says why."""
        try:
            head = self.verify(m.position, m.number, 0)
        except RecordDamaged as damaged:
            m.damage = damaged.evidence
            return False
        if m.is_unreadable:
            complete(m, read_accepted(head, carried_at(head), m.queue, False))
        m.damage = b""
        return True


def unreadable_message(queue: Queue, number: int, position: int, damage: bytes) -> Message:
    """A message whose record is damaged. Its client is unknown: `Routes` finds none to answer."""
    m = Message(INTERNAL, queue.name, b"", b"")
    m.number = number
    m.queue_no = queue.number
    m.position = position
    m.is_loaded = False
    m.is_unreadable = True
    m.damage = damage
    m.state = WAITING
    return m


def add_row(m: Message, lane: Lane, line: Line, at: int) -> None:
    """Copy the fields that a tail row has to its unreadable message."""
    m.priority = lane.priority
    m.accepted_ns = line.tail.accepted[at]
    m.expires_ns = line.tail.expires[at]


def complete(m: Message, record: Message) -> None:
    """Complete an unreadable message from its record, which can be read again."""
    m.is_unreadable = False
    for name in RECORD_FIELDS:
        setattr(m, name, getattr(record, name))
    if m.attempt == 0:
        m.retries_left = record.retries_left


def peek_by_number(state: State, number: int) -> Message | None:
    row = find_row(state.queues, number)
    return state.stored.read_row(row.queue, row.lane, row.line, row.at, False) if row is not None else None


def peek_by_id(state: State, client_id: bytes) -> Message | None:
    hash_ = id_hash(client_id)
    for queue, lane, line in lines_with_tails(state.queues.values()):
        at = line.tail.find_hash(hash_, 0)
        while at >= 0:
            m = state.stored.read_row(queue, lane, line, at, False)
            if m.client_id == client_id:
                return m
            at = line.tail.find_hash(hash_, at + 1)
    return None


def peek_expiring(state: State, dialect: int) -> list[Message]:
    """The messages of a dialect on disk only that expire, the newest first: EXPIRING_MAX of them at most, within EXPIRING_READ_SIZE bytes of
    records, because only the record says which dialect it is of. A damaged one is left out."""
    numbers: array[int] = array("q")
    for _, _, line in lines_with_tails(state.queues.values()):
        tail = line.tail
        for at in range(tail.head, len(tail.numbers)):
            if tail.numbers[at] > 0 and tail.expires[at] > 0:
                numbers.append(tail.numbers[at])
    newest = sorted(numbers, reverse=True)
    cost_max = state.stored.read_cost + EXPIRING_READ_SIZE
    found: list[Message] = []
    for begin in range(0, len(newest), EXPIRING_STEP):
        if len(found) >= EXPIRING_MAX or state.stored.read_cost > cost_max:
            break
        add_expiring(state, dialect, newest[min(begin + EXPIRING_STEP, len(newest)) - 1], newest[begin], found)
    return found


def add_expiring(state: State, dialect: int, first_no: int, last_no: int, found: list[Message]) -> None:
    for queue, lane, line in lines_with_tails(state.queues.values()):
        tail = line.tail
        for at in range(tail.after(first_no - 1), len(tail.numbers)):
            if tail.numbers[at] > last_no:
                break
            if tail.numbers[at] > 0 and tail.expires[at] > 0:
                m = state.stored.read_row(queue, lane, line, at, False)
                if not m.is_unreadable and m.dialect == dialect:
                    found.append(m)


def peek_body(state: State, m: Message, most: int) -> bytes:
    """The first bytes of a message's body. If it is on disk only, its whole record is read and verified, but not kept. Raises `RecordDamaged`."""
    if m.is_loaded:
        return m.body[:most]
    record = state.stored.verify(m.position, m.number, most)
    at = carried_at(record)
    begin: int = body_at(record, at)
    end: int = body_end(record, at)  # beyond the bytes read, if those are only the beginning
    return record[begin : min(begin + most, end)]
