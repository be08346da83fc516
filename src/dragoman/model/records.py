"""Facts as bytes: the one place that packs them, for the journal, and reads them back, for replay and every reader.

A record is `u32 size, u8 kind, …`, little endian, size counting the whole record. A fact's instant is its block's.
docs/reference/facts.md draws every record; the numbers below are kept in journals for ever: add, never renumber.

    accepted   u8 dialect, u8 flags, u8 priority, i64 message_no, i32 queue_no, i32 retries_left, i64 timeout_ns,
               i64 expires_ns, i64 due_ns, i64 schedule_no, u8 n1, u8 n2, u8 n3, u24 n4, u8 n5,
               client id (n1), address (n2), dedupe key (n3), headers (n4), body (the rest),
               u32 CRC of all bytes before it (n5 = 4; in journals of version 1 and in templates of schedules n5 = 0: none)
    leased     i64 message_no, i64 worker_no, i32 attempt
    released   i64 message_no, i64 worker_no, i32 attempt, i32 retries_left, i64 due_ns, u8 reason, u8 is_death,
               i64 leased_ns, i32 queue_no, u8 client dialect, u8 worker dialect
    closed     i64 message_no, i64 worker_no, i32 attempt, i32 queue_no, i64 accepted_ns, i64 first_leased_ns,
               i64 leased_ns, i64 delivered_ns, i32 body_size, i32 reply_size, u8 outcome, u8 reason, u8 client dialect,
               u8 worker dialect, i64 due_ns; and i64 holder_no where another or nobody settled what a worker held

Records of older journals end earlier (released after is_death, closed after the worker's dialect): ask their size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from dragoman.crc import crc32
from dragoman.limits import LOG_SIZE_KEPT, RECORD_COPY_MAX
from dragoman.model.message import Message
from dragoman.model.words import DAMAGED

STARTED: Final = 1
QUEUE_NAMED: Final = 2
WORKER_JOINED: Final = 3
WORKER_LEFT: Final = 4
ACCEPTED: Final = 5
LEASED: Final = 6
DELIVERED: Final = 7
RELEASED: Final = 8
CLOSED: Final = 9
QUARANTINED: Final = 10
REQUEUED: Final = 11
SCHEDULED: Final = 12
UNSCHEDULED: Final = 13
FIRED: Final = 14
PAUSED: Final = 15
RESUMED: Final = 16
PUBLISHED: Final = 17
CLOCK_STEPPED: Final = 18
LATE: Final = 19
NOTED: Final = 20
QUEUE_FORGOTTEN: Final = 21
FACT_NAMES: Final = [
    "",
    "started",
    "queue_named",
    "worker_joined",
    "worker_left",
    "accepted",
    "leased",
    "delivered",
    "released",
    "closed",
    "quarantined",
    "requeued",
    "scheduled",
    "unscheduled",
    "fired",
    "paused",
    "resumed",
    "published",
    "clock_stepped",
    "late",
    "noted",
    "queue_forgotten",
]

NO_DIALECT: Final = 255  # of a worker that is known by its number only

# Storage, never facts: they take no lsn and never reach the lake.
CHECKPOINT: Final = 200
CARRIED: Final = 201
KEYED: Final = 202

ACCEPTED_FIXED: Final = 63  # bytes of an accepted record before its variable part
CRC_SIZE_AT: Final = 62
CRC_SIZE: Final = 4
HEADERS_MASK: Final = 0xFFFFFF  # headers are at most limits.HEADERS_SIZE_MAX
CARRIED_FIXED: Final = 13  # bytes of a carried record before the accepted one it wraps
ANY_RECORD: Final = 0
ANY_MESSAGE: Final = -1
CRC_RESIDUE: Final = 0x2144DF1C  # the CRC-32 of any bytes followed by their own CRC-32


@final
class FactLog:
    """The facts of the block that is being filled. The journal takes the bytes whole, once per commit."""

    def __init__(self) -> None:
        self.out = BytesWriter()
        self.scratch = BytesWriter()
        self.crc32: Callable[[bytes], int] = crc32  # an attribute is found sooner than a global name
        self.count: int = 0
        self.base_place: int = 0  # where the journal will put this block's first record; 0: nowhere
        self.taken: bytes = b""  # the block before, which the journal may not have yet
        self.taken_place: int = 0
        self.copied: bytes = b""  # the first records of the block being filled, once one of them was looked for

    def take(self) -> bytes:
        """The records so far; the log starts afresh."""
        records = self.out.getvalue()
        if len(records) <= LOG_SIZE_KEPT:
            self.out.truncate(0)
        else:
            self.out = BytesWriter()
        self.count = 0
        self.copied = b""
        self.taken = records
        self.taken_place = self.base_place
        return records

    def find(self, place: int) -> bytes:
        """A record that is not in the journal yet; empty when it is there."""
        at = place - self.base_place
        if 0 <= at < len(self.out):
            if at >= len(self.copied):
                self.copied = self.out.getvalue()
            return record_at(self.copied, at)
        at = place - self.taken_place
        return record_at(self.taken, at) if 0 <= at < len(self.taken) else b""

    def size(self) -> int:
        return len(self.out)

    def accepted(self, m: Message) -> None:
        """Also sets the message's place: where its body can be read again."""
        out = self.out
        if self.base_place != 0:
            m.place = self.base_place + len(out)
        body = m.body
        is_small = len(body) <= RECORD_COPY_MAX
        scratch = self.scratch
        write_accepted(scratch, m, CRC_SIZE, is_small)
        head = scratch.getvalue()
        scratch.truncate(0)
        crc: int = self.crc32(head)
        out.write(head)
        if not is_small:
            crc = crc32(body, crc)
            out.write(body)
        write_u32_le(out, crc)
        self.count += 1

    def leased(self, m: Message, worker_no: int) -> None:
        out = self.out
        write_i32_le(out, 25)
        out.append(LEASED)
        write_i64_le(out, m.number)
        write_i64_le(out, worker_no)
        write_i32_le(out, m.attempt)
        self.count += 1

    def released(
        self,
        m: Message,
        worker_no: int,
        worker_dialect: int,
        retries_left: int,
        due_ns: int,
        reason: int,
        is_death: bool,
    ) -> None:
        out = self.out
        write_i32_le(out, 53)
        out.append(RELEASED)
        write_i64_le(out, m.number)
        write_i64_le(out, worker_no)
        write_i32_le(out, m.attempt)
        write_i32_le(out, retries_left)
        write_i64_le(out, due_ns)
        out.append(reason)
        out.append(1 if is_death else 0)
        write_i64_le(out, m.leased_ns)
        write_i32_le(out, m.queue_no)
        out.append(m.dialect)
        out.append(worker_dialect)
        self.count += 1

    def closed(
        self,
        m: Message,
        worker_no: int,
        worker_dialect: int,
        reply_size: int,
        outcome: int,
        reason: int,
        holder_no: int,
    ) -> None:
        """`worker_no`: who settled it; `holder_no`: who had it in hand; 0: nobody."""
        out = self.out
        is_simple = holder_no == 0 or holder_no == worker_no
        write_i32_le(out, 81 if is_simple else 89)
        out.append(CLOSED)
        write_i64_le(out, m.number)
        write_i64_le(out, worker_no)
        write_i32_le(out, m.attempt)
        write_i32_le(out, m.queue_no)
        write_i64_le(out, m.accepted_ns)
        write_i64_le(out, m.first_leased_ns)
        write_i64_le(out, m.leased_ns if holder_no != 0 else 0)
        write_i64_le(out, m.delivered_ns)
        write_i32_le(out, m.body_size)
        write_i32_le(out, reply_size)
        out.append(outcome)
        out.append(reason)
        out.append(m.dialect)
        out.append(worker_dialect)
        write_i64_le(out, m.asked_due_ns)
        if not is_simple:
            write_i64_le(out, holder_no)
        self.count += 1

    def quarantined(self, m: Message, worker_no: int, worker_dialect: int, reason: int, died_with: int) -> None:
        """Where the reason is damage it ends no attempt, and the evidence (`RecordDamaged.evidence`) follows the numbers."""
        text = b"%d %d %d %d %d %d %d" % (
            died_with,
            worker_no,
            m.attempt,
            m.leased_ns if reason != DAMAGED else 0,
            m.queue_no,
            m.dialect,
            worker_dialect,
        )
        self.numbered(QUARANTINED, m.number, reason, text if reason != DAMAGED else text + b" " + m.damage)

    def requeued(self, m: Message, is_in_line: bool) -> None:
        """`is_in_line`: it was not set aside, only told to wait."""
        self.numbered(REQUEUED, m.number, m.queue_no, b"%d %d" % (m.dialect, 1 if is_in_line else 0))

    def carried(self, accepted: bytes, accepted_ns: int) -> int:
        """Copy an accepted record forward: storage, not a fact. Returns its new place."""
        out = self.out
        place = self.base_place + len(out)
        accepted = with_crc(accepted)
        write_i32_le(out, CARRIED_FIXED + len(accepted))
        out.append(CARRIED)
        write_i64_le(out, accepted_ns)
        out.write(accepted)
        return place

    def numbered(self, kind: int, number: int, small: int, text: bytes) -> None:
        """Every rarer fact has one shape: `i64 number, i64 small, text`; docs/reference/facts.md says what they are."""
        out = self.out
        write_i32_le(out, 21 + len(text))
        out.append(kind)
        write_i64_le(out, number)
        write_i64_le(out, small)
        out.write(text)
        self.count += 1


def record_at(records: bytes, at: int) -> bytes:
    return records[at : at + read_i32_le(records, at)]


def write_u32_le(out: BytesWriter, value: i64) -> None:
    write_i32_le(out, i32(value - (value >> 31 << 32)))


def write_accepted(out: BytesWriter, m: Message, crc_size: int, with_body: bool) -> None:
    """Pack an accepted record, whose CRC the caller adds. A schedule's template is kept in the same shape, without one."""
    headers = m.headers
    variable = len(m.client_id) + len(m.address) + len(m.dedupe) + len(headers) + len(m.body)
    write_i32_le(out, ACCEPTED_FIXED + variable + crc_size)
    out.append(ACCEPTED)
    out.append(m.dialect)
    out.append(m.flags)
    out.append(m.priority)
    write_i64_le(out, m.number)
    write_i32_le(out, m.queue_no)
    write_i32_le(out, m.retries_left)
    write_i64_le(out, m.timeout_ns)
    write_i64_le(out, m.expires_ns)
    write_i64_le(out, m.due_ns)
    write_i64_le(out, m.schedule_no)
    out.append(len(m.client_id))
    out.append(len(m.address))
    out.append(len(m.dedupe))
    write_i32_le(out, len(headers) | crc_size << 24)
    out.write(m.client_id)
    out.write(m.address)
    out.write(m.dedupe)
    out.write(headers)
    if with_body:
        out.write(m.body)


def body_at(data: bytes, at: i64) -> i64:
    """Where the body of the accepted record at `at` begins."""
    n1: i64 = data[at + 56]
    n2: i64 = data[at + 57]
    n3: i64 = data[at + 58]
    return at + ACCEPTED_FIXED + n1 + n2 + n3 + headers_size(data, at)


def headers_size(data: bytes, at: i64) -> i64:
    return i64(read_i32_le(data, at + 59)) & HEADERS_MASK


def body_end(data: bytes, at: i64) -> i64:
    """Where the body of the accepted record at `at` ends."""
    crc_size: i64 = data[at + CRC_SIZE_AT]
    return at + i64(read_i32_le(data, at)) - crc_size


def read_accepted(data: bytes, at: i64, queue: bytes, with_body: bool) -> Message:
    """Rebuild the message of an accepted record that starts at `at`."""
    n1: i64 = data[at + 56]
    n2: i64 = data[at + 57]
    n3: i64 = data[at + 58]
    n4 = i64(read_i32_le(data, at + 59)) & HEADERS_MASK
    n5: i64 = data[at + CRC_SIZE_AT]
    end = at + i64(read_i32_le(data, at)) - n5
    pos = at + ACCEPTED_FIXED
    client_id = data[pos : pos + n1]
    pos += n1
    address = data[pos : pos + n2]
    pos += n2
    dedupe = data[pos : pos + n3]
    pos += n3
    headers = data[pos : pos + n4]
    pos += n4
    m = Message(data[at + 5], queue, client_id, data[pos:end] if with_body else b"")
    m.body_size = end - pos
    m.is_loaded = with_body
    m.flags = data[at + 6]
    m.priority = data[at + 7]
    m.number = read_i64_le(data, at + 8)
    m.queue_no = read_i32_le(data, at + 16)
    m.retries_left = read_i32_le(data, at + 20)
    m.timeout_ns = read_i64_le(data, at + 24)
    m.expires_ns = read_i64_le(data, at + 32)
    m.due_ns = read_i64_le(data, at + 40)
    m.asked_due_ns = m.due_ns
    m.schedule_no = read_i64_le(data, at + 48)
    m.address = address
    m.dedupe = dedupe
    m.headers = headers
    return m


def accepted_body(record: bytes) -> bytes:
    """Just the body of an accepted record."""
    return record[body_at(record, 0) : body_end(record, 0)]


def with_crc(accepted: bytes) -> bytes:
    """An accepted record as this version writes it: one of version 1 gets its CRC."""
    if accepted[CRC_SIZE_AT] != 0:
        return accepted
    size = (len(accepted) + CRC_SIZE).to_bytes(4, "little")
    sized = b"".join([size, accepted[4:CRC_SIZE_AT], b"\x04", accepted[ACCEPTED_FIXED:]])
    crc: int = crc32(sized)
    return sized + crc.to_bytes(4, "little")


def has_crc(record: bytes) -> bool:
    """Whether a record claims to be an accepted or carried one with a CRC of its own."""
    at: i64 = CARRIED_FIXED if record[4] == CARRIED else 0
    return len(record) > at + CRC_SIZE_AT and record[at + 4] == ACCEPTED and record[at + CRC_SIZE_AT] != 0


def flaw_of(record: bytes, number: int, is_proved: bool) -> str:
    """Why the bytes at a place are not the accepted (or carried) record of message `number`; empty when they are.
    `number` ANY_RECORD: no question; ANY_MESSAGE: of any.
    `is_proved`: their block's CRC has been checked, so their own need not be."""
    if is_proved and number == ANY_RECORD:
        return ""
    at: i64 = CARRIED_FIXED if record[4] == CARRIED else 0
    if len(record) < at + ACCEPTED_FIXED + (0 if is_proved else CRC_SIZE) or record[at + 4] != ACCEPTED:
        return "no message begins here"
    if not is_proved:
        crc: int = crc32(record if at == 0 else record[at:])
        if record[at + CRC_SIZE_AT] != CRC_SIZE or crc != CRC_RESIDUE:
            return "the record's CRC does not match"
    if number > 0 and read_i64_le(record, at + 8) != number:
        return "the record of another message is here"
    return ""


def carried_at(record: bytes) -> int:
    """Where the accepted record begins inside a record: a carried one wraps it (size, kind, accepted instant)."""
    if record[4] == CARRIED:
        return CARRIED_FIXED
    assert record[4] == ACCEPTED, f"a record of kind {record[4]} where a message was expected"
    return 0
