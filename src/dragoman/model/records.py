"""Facts as bytes: the one place that packs them, for the journal, and reads them back, for replay and every reader.

A record is `u32 size, u8 kind, …`, little endian, size counting the whole record. A fact's instant is its block's.
docs/reference/facts.md draws every record; the numbers below are kept in journals for ever: add, never renumber.

    accepted   u8 dialect, u8 flags, u8 priority, i64 message_no, i32 queue_no, i32 retries_left, i64 timeout_ns,
               i64 expires_ns, i64 due_ns, i64 schedule_no, u8 n1, u8 n2, u8 n3, i32 n4,
               client id (n1), address (n2), dedupe key (n3), headers (n4), body (the rest)
    leased     i64 message_no, i64 worker_no, i32 attempt
    released   i64 message_no, i64 worker_no, i32 attempt, i32 retries_left, i64 due_ns, u8 reason, u8 is_death,
               i64 leased_ns, i32 queue_no, u8 client dialect, u8 worker dialect
    closed     i64 message_no, i64 worker_no, i32 attempt, i32 queue_no, i64 accepted_ns, i64 first_leased_ns,
               i64 leased_ns, i64 delivered_ns, i32 body_size, i32 reply_size, u8 outcome, u8 reason, u8 client dialect,
               u8 worker dialect, i64 due_ns; and i64 holder_no where another or nobody settled what a worker held

Records of older journals end earlier (released after is_death, closed after the worker's dialect): ask their size.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from mypy_extensions import i64

from dragoman.limits import LOG_SIZE_KEPT
from dragoman.model.message import Message
from dragoman.model.peer import Peer

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
]

NO_DIALECT: Final = 255  # of a worker that is known by its number only

# Storage, never facts: they take no lsn and never reach the lake.
CHECKPOINT: Final = 200
CARRIED: Final = 201

ACCEPTED_FIXED: Final = 63  # bytes of an accepted record before its variable part


@final
class FactLog:
    """The facts of the block that is being filled. The journal takes the bytes whole, once per commit."""

    def __init__(self) -> None:
        self.out = BytesWriter()
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
        write_accepted(out, m)
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
        text = b"%d %d %d %d %d %d %d" % (
            died_with,
            worker_no,
            m.attempt,
            m.leased_ns,
            m.queue_no,
            m.dialect,
            worker_dialect,
        )
        self.numbered(QUARANTINED, m.number, reason, text)

    def requeued(self, m: Message, is_in_line: bool) -> None:
        """`is_in_line`: it was not set aside, only told to wait."""
        self.numbered(REQUEUED, m.number, m.queue_no, b"%d %d" % (m.dialect, 1 if is_in_line else 0))

    def carried(self, accepted: bytes, accepted_ns: int) -> int:
        """Copy an accepted record forward: storage, not a fact. Returns its new place."""
        out = self.out
        place = self.base_place + len(out)
        write_i32_le(out, 13 + len(accepted))
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


def write_accepted(out: BytesWriter, m: Message) -> None:
    """Pack an accepted record; a schedule's template is kept in the same shape."""
    headers = m.headers
    write_i32_le(out, ACCEPTED_FIXED + len(m.client_id) + len(m.address) + len(m.dedupe) + len(headers) + len(m.body))
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
    write_i32_le(out, len(headers))
    out.write(m.client_id)
    out.write(m.address)
    out.write(m.dedupe)
    out.write(headers)
    out.write(m.body)


def read_accepted(data: bytes, at: i64, queue: bytes, with_body: bool) -> Message:
    """Rebuild the message of an accepted record that starts at `at`."""
    size = i64(read_i32_le(data, at))
    end = at + size
    n1: i64 = data[at + 56]
    n2: i64 = data[at + 57]
    n3: i64 = data[at + 58]
    n4 = i64(read_i32_le(data, at + 59))
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
    pos = i64(ACCEPTED_FIXED + record[56] + record[57] + record[58]) + i64(read_i32_le(record, 59))
    return record[pos:]


def worker_text(peer: Peer, queues: list[bytes]) -> bytes:
    """What a worker_joined fact says of a worker: listener, remote, identity (hex), then its `weight queue`s, tab separated."""
    return b"\t".join([peer.listener.encode(), peer.remote.encode(), peer.identity.hex().encode(), *queues])


def claims_of(text: bytes) -> list[tuple[int, bytes]]:
    """Weight and name of the queues in such a text. A name is whatever a peer chose, tabs too: what begins with no weight and a space
    belongs to the name before."""
    claims: list[tuple[int, bytes]] = []
    for item in text.split(b"\t")[3:]:
        weight, space, name = item.partition(b" ")
        if space and weight.removeprefix(b"-").isdigit():
            claims.append((int(weight), name))
        elif claims:
            claims[-1] = (claims[-1][0], claims[-1][1] + b"\t" + item)
    return claims


def schedule_text(template: Message, interval_ns: int, cron: str, runs: int) -> bytes:
    """What a scheduled fact keeps: `i64 interval_ns, i32 runs, i32 n, cron (n)`, then the template as an accepted record."""
    out = BytesWriter()
    expression = cron.encode()
    write_i64_le(out, interval_ns)
    write_i32_le(out, runs)
    write_i32_le(out, len(expression))
    out.write(expression)
    write_accepted(out, template)
    return out.getvalue()


def fired_text(message_no: int, next_due_ns: int, runs_left: int) -> bytes:
    """What a fired fact keeps beside the schedule's number and the due instant: `i64 message_no, i64 next_due_ns, i64 runs_left`."""
    out = BytesWriter()
    write_i64_le(out, message_no)
    write_i64_le(out, next_due_ns)
    write_i64_le(out, runs_left)
    return out.getvalue()


def carried_at(record: bytes) -> int:
    """Where the accepted record begins inside a record: a carried one wraps it (size, kind, accepted instant)."""
    if record[4] == CARRIED:
        return 13
    assert record[4] == ACCEPTED, f"a record of kind {record[4]} where a message was expected"
    return 0
