"""Packs facts into bytes for the journal, and reads whole messages back. `model/facts/layout` declares the bytes.

Frequent facts are written field by field, without loops; small adjacent fields are shifted into one integer, because a write costs more
than a shift.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from dragoman.crc import crc32, short_crc32
from dragoman.limits import BODY_REFERENCE_SIZE, CRC_SHORT_MAX, LOG_SIZE_KEPT, RECORD_COPY_MAX
from dragoman.model.enums import DAMAGED
from dragoman.model.facts import layout
from dragoman.model.facts.fields import accepted_message_no, body_end, headers_size
from dragoman.model.message import Message
from dragoman.model.peer import Peer

ANY_RECORD: Final = 0
ANY_MESSAGE: Final = -1
CRC_RESIDUE: Final = 0x2144DF1C  # the CRC-32 of any bytes followed by their own CRC-32


@final
class FactLog:
    """The facts of the current block. The journal takes all of them, once per commit.

    They are bytes in `out`. A large body is not copied there: `parts` has the bytes before `out`, each large body by reference, and no
    record is in both.
    """

    def __init__(self) -> None:
        self.out = BytesWriter()
        self.parts: list[bytes] = []
        self.parts_size: int = 0
        self.scratch = BytesWriter()
        # Reading an attribute is faster than reading a global name.
        self.crc32: Callable[[bytes], int] = crc32
        self.short_crc32: Callable[[bytes], int] = short_crc32
        self.count: int = 0
        self.base_position: int = 0  # of the first record of `out` in the journal; 0: none
        self.taken: list[bytes] = []  # the previous block, which the journal may not have yet
        self.taken_position: int = 0
        self.copied: bytes = b""  # a copy of `out`, made when one of its records was read

    def take_parts(self) -> list[bytes]:
        """Remove and return the records, in order."""
        parts = self.parts
        if len(self.out) > 0:
            parts.append(self.out.getvalue())
        if len(self.out) <= LOG_SIZE_KEPT:
            self.out.truncate(0)
        else:
            self.out = BytesWriter()
        self.taken = parts
        self.taken_position = self.first_position()
        self.parts = []
        self.parts_size = 0
        self.count = 0
        self.copied = b""
        return parts

    def take(self) -> bytes:
        """The same in one piece."""
        return b"".join(self.take_parts())

    def find(self, position: int) -> bytes:
        """A record that may not be in the journal yet; empty if it is in the journal."""
        at = position - self.first_position()
        if at >= 0 and at < self.parts_size:
            return record_in(self.parts, at)
        at -= self.parts_size
        if at >= 0 and at < len(self.out):
            if at >= len(self.copied):
                self.copied = self.out.getvalue()
            return record_at(self.copied, at)
        at = position - self.taken_position
        return record_in(self.taken, at) if at >= 0 else b""

    def first_position(self) -> int:
        """The position of this block's first record; 0: none."""
        return self.base_position - self.parts_size if self.base_position != 0 else 0

    def size(self) -> int:
        return self.parts_size + len(self.out)

    def add_by_reference(self, part: bytes) -> None:
        """Add bytes without copying them, after those of `out`."""
        before = self.out.getvalue()
        self.out.truncate(0)
        self.copied = b""
        self.parts.append(before)
        self.parts.append(part)
        self.moved_on(len(before) + len(part))

    def moved_on(self, size: int) -> None:
        """Count bytes that moved from `out` to `parts`."""
        self.parts_size += size
        if self.base_position != 0:
            self.base_position += size

    def accepted(self, m: Message) -> None:
        """Also sets `Message.position`, by which its body can be read again."""
        out = self.out
        if self.base_position != 0:
            m.position = self.base_position + len(out)
        body = m.body
        is_small = len(body) <= RECORD_COPY_MAX
        scratch = self.scratch
        write_accepted(scratch, m, layout.CRC_SIZE, is_small)
        head = scratch.getvalue()
        scratch.truncate(0)
        crc: int = self.short_crc32(head) if len(head) <= CRC_SHORT_MAX else self.crc32(head)
        out.write(head)
        self.count += 1
        if is_small:
            write_u32_le(out, crc)
            return
        crc = crc32(body, crc)
        if len(body) < BODY_REFERENCE_SIZE:
            out.write(body)
            write_u32_le(out, crc)
        else:
            self.add_by_reference(body)
            self.parts.append(crc.to_bytes(layout.CRC_SIZE, "little"))
            self.moved_on(layout.CRC_SIZE)

    def leased(self, m: Message, worker_no: int) -> None:
        """Written before it is applied: the attempt is the one that begins."""
        out = self.out
        write_i32_le(out, layout.LEASED_SIZE)
        out.append(layout.LEASED)
        write_i64_le(out, m.number)
        write_i64_le(out, worker_no)
        write_i32_le(out, m.attempt + 1)
        self.count += 1

    def delivered(self, m: Message, worker_no: int) -> None:
        """The shape of `numbered`, without a text."""
        out = self.out
        write_i32_le(out, layout.TEXT)
        out.append(layout.DELIVERED)
        write_i64_le(out, m.number)
        write_i64_le(out, worker_no)
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
        write_i32_le(out, layout.RELEASED_SIZE)
        out.append(layout.RELEASED)
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
        """`worker_no`: the worker that settled it; `holder_no`: the worker it was leased to; 0: none."""
        out = self.out
        is_simple = holder_no == 0 or holder_no == worker_no
        write_i32_le(out, layout.CLOSED_SIZE if is_simple else layout.CLOSED_SIZE_WITH_HOLDER)
        out.append(layout.CLOSED)
        write_i64_le(out, m.number)
        write_i64_le(out, worker_no)
        write_i64_le(out, i64(m.attempt) | i64(m.queue_no) << 32)
        write_i64_le(out, m.accepted_ns)
        write_i64_le(out, m.first_leased_ns)
        write_i64_le(out, m.leased_ns if holder_no != 0 else 0)
        write_i64_le(out, m.delivered_ns)
        write_i64_le(out, i64(m.body_size) | i64(reply_size) << 32)
        write_u32_le(out, i64(outcome) | i64(reason) << 8 | i64(m.dialect) << 16 | i64(worker_dialect) << 24)
        write_i64_le(out, m.asked_due_ns)
        if not is_simple:
            write_i64_le(out, holder_no)
        self.count += 1

    def quarantined(self, m: Message, worker_no: int, worker_dialect: int, reason: int, died_with: int) -> None:
        """If the reason is damage, no attempt ends, and the evidence (`RecordDamaged.evidence`) follows the numbers."""
        text = b"%d %d %d %d %d %d %d" % (
            died_with,
            worker_no,
            m.attempt,
            m.leased_ns if reason != DAMAGED else 0,
            m.queue_no,
            m.dialect,
            worker_dialect,
        )
        self.numbered(layout.QUARANTINED, m.number, reason, text if reason != DAMAGED else text + b" " + m.damage)

    def requeued(self, m: Message, is_in_line: bool) -> None:
        """`is_in_line`: it waited for its next attempt and was not quarantined."""
        self.numbered(layout.REQUEUED, m.number, m.queue_no, b"%d %d" % (m.dialect, 1 if is_in_line else 0))

    def carried(self, accepted: bytes, accepted_ns: int) -> int:
        """Copy an accepted record out of an old segment: storage, not a fact. Returns its new position."""
        out = self.out
        position = self.base_position + len(out)
        accepted = with_crc(accepted)
        write_i32_le(out, layout.CARRIED_RECORD + len(accepted))
        out.append(layout.CARRIED)
        write_i64_le(out, accepted_ns)
        if len(accepted) < BODY_REFERENCE_SIZE:
            out.write(accepted)
        else:
            self.add_by_reference(accepted)
        return position

    def numbered(self, kind: int, number: int, small: int, text: bytes) -> None:
        """Every rarer fact has one shape: `i64 number, i64 small, text`."""
        out = self.out
        write_i32_le(out, layout.TEXT + len(text))
        out.append(kind)
        write_i64_le(out, number)
        write_i64_le(out, small)
        out.write(text)
        self.count += 1


def record_at(records: bytes, at: int) -> bytes:
    return records[at : at + read_i32_le(records, at)]


def record_in(parts: list[bytes], at: int) -> bytes:
    """The record at an offset of the joined `parts`; empty if they are shorter."""
    found: list[bytes] = []
    missing: int = 0
    for part in parts:
        if found:
            found.append(part[:missing])
        elif at < len(part):
            missing = read_i32_le(part, at)
            found.append(part[at : at + missing])
        else:
            at -= len(part)
            continue
        missing -= len(found[-1])
        if missing == 0:
            break
    return found[0] if len(found) == 1 else b"".join(found)


def write_u32_le(out: BytesWriter, value: i64) -> None:
    write_i32_le(out, i32(value - (value >> 31 << 32)))


def write_accepted(out: BytesWriter, m: Message, crc_size: i64, with_body: bool) -> None:
    """Pack an accepted record, without its CRC. A schedule's template has the same shape and no CRC."""
    client_id = m.client_id
    address = m.address
    dedupe = m.dedupe
    headers = m.headers
    id_size: i64 = len(client_id)
    address_size: i64 = len(address)
    dedupe_size: i64 = len(dedupe)
    text_size: i64 = len(headers)
    size: i64 = layout.ACCEPTED_FIXED + id_size + address_size + dedupe_size + text_size + len(m.body) + crc_size
    write_i32_le(out, i32(size))
    write_u32_le(out, layout.ACCEPTED | i64(m.dialect) << 8 | i64(m.flags) << 16 | i64(m.priority) << 24)
    write_i64_le(out, m.number)
    write_i64_le(out, i64(m.queue_no) | i64(m.retries_left) << 32)
    write_i64_le(out, m.timeout_ns)
    write_i64_le(out, m.expires_ns)
    write_i64_le(out, m.due_ns)
    write_i64_le(out, m.schedule_no)
    out.append(int(id_size))
    out.append(int(address_size))
    out.append(int(dedupe_size))
    write_i32_le(out, i32(text_size | crc_size << layout.CRC_SIZE_SHIFT))
    out.write(client_id)
    out.write(address)
    if dedupe_size > 0:
        out.write(dedupe)
    if text_size > 0:
        out.write(headers)
    if with_body:
        out.write(m.body)


def read_accepted(data: bytes, at: i64, queue: bytes, with_body: bool) -> Message:
    """Rebuild the message of an accepted record that starts at `at`."""
    n1: i64 = data[at + layout.ACCEPTED_CLIENT_ID_SIZE]
    n2: i64 = data[at + layout.ACCEPTED_ADDRESS_SIZE]
    n3: i64 = data[at + layout.ACCEPTED_DEDUPE_SIZE]
    address = at + layout.ACCEPTED_FIXED + n1
    dedupe = address + n2
    headers = dedupe + n3
    body = headers + headers_size(data, at)
    end = body_end(data, at)
    client_id = data[at + layout.ACCEPTED_FIXED : address]
    m = Message(data[at + layout.ACCEPTED_DIALECT], queue, client_id, data[body:end] if with_body else b"")
    m.body_size = end - body
    m.is_loaded = with_body
    m.flags = data[at + layout.ACCEPTED_FLAGS]
    m.priority = data[at + layout.ACCEPTED_PRIORITY]
    m.number = read_i64_le(data, at + layout.ACCEPTED_MESSAGE_NO)
    m.queue_no = read_i32_le(data, at + layout.ACCEPTED_QUEUE_NO)
    m.retries_left = read_i32_le(data, at + layout.ACCEPTED_RETRIES_LEFT)
    m.timeout_ns = read_i64_le(data, at + layout.ACCEPTED_TIMEOUT_NS)
    m.expires_ns = read_i64_le(data, at + layout.ACCEPTED_EXPIRES_NS)
    m.due_ns = read_i64_le(data, at + layout.ACCEPTED_DUE_NS)
    m.asked_due_ns = m.due_ns
    m.schedule_no = read_i64_le(data, at + layout.ACCEPTED_SCHEDULE_NO)
    m.address = data[address:dedupe]
    m.dedupe = data[dedupe:headers]
    m.headers = data[headers:body]
    return m


def with_crc(accepted: bytes) -> bytes:
    """An accepted record as this version writes it: one of version 1 gets its CRC."""
    if accepted[layout.ACCEPTED_CRC_SIZE] != 0:
        return accepted
    size = (len(accepted) + layout.CRC_SIZE).to_bytes(4, "little")
    sized = b"".join([size, accepted[4 : layout.ACCEPTED_CRC_SIZE], b"\x04", accepted[layout.ACCEPTED_FIXED :]])
    crc: int = crc32(sized)
    return sized + crc.to_bytes(4, "little")


def has_crc(record: bytes) -> bool:
    """Whether a record claims to be an accepted or carried one with a CRC of its own."""
    at: i64 = layout.CARRIED_RECORD if record[layout.KIND] == layout.CARRIED else 0
    return (
        len(record) > at + layout.ACCEPTED_CRC_SIZE
        and record[at + layout.KIND] == layout.ACCEPTED
        and record[at + layout.ACCEPTED_CRC_SIZE] != 0
    )


def flaw_of(record: bytes, number: int, is_verified: bool) -> str:
    """Why bytes are not the accepted (or carried) record of message `number`; empty if they are. `number` ANY_RECORD: a record of any kind;
    ANY_MESSAGE: of any message. `is_verified`: the CRC of their block was verified, so their own need not be."""
    if is_verified and number == ANY_RECORD:
        return ""
    at: i64 = layout.CARRIED_RECORD if record[layout.KIND] == layout.CARRIED else 0
    if (
        len(record) < at + layout.ACCEPTED_FIXED + (0 if is_verified else layout.CRC_SIZE)
        or record[at + layout.KIND] != layout.ACCEPTED
    ):
        return "no message begins here"
    if not is_verified:
        crc: int = crc32(record if at == 0 else record[at:])
        if record[at + layout.ACCEPTED_CRC_SIZE] != layout.CRC_SIZE or crc != CRC_RESIDUE:
            return "the record's CRC does not match"
    if number > 0 and accepted_message_no(record, at) != number:
        return "the record of another message is here"
    return ""


def carried_at(record: bytes) -> int:
    """Where the accepted record begins inside a record: a carried one wraps it (size, kind, accepted instant)."""
    if record[layout.KIND] == layout.CARRIED:
        return layout.CARRIED_RECORD
    assert record[layout.KIND] == layout.ACCEPTED, (
        f"a record of kind {record[layout.KIND]} where a message was expected"
    )
    return 0


def worker_text(peer: Peer, queues: list[bytes]) -> bytes:
    """The text of a worker_joined fact: listener, remote, identity (hex), then a `weight queue` per claim, tab separated."""
    return b"\t".join([peer.listener.encode(), peer.remote.encode(), peer.identity.hex().encode(), *queues])


def claims_of(text: bytes) -> list[tuple[int, bytes]]:
    """Weight and name of the queues in such a text. A name may contain tabs: a part that does not begin with a weight and a space belongs
    to the name before it."""
    claims: list[tuple[int, bytes]] = []
    for item in text.split(b"\t")[3:]:
        weight, space, name = item.partition(b" ")
        if space and weight.removeprefix(b"-").isdigit():
            claims.append((int(weight), name))
        elif claims:
            claims[-1] = (claims[-1][0], claims[-1][1] + b"\t" + item)
    return claims


def schedule_text(template: Message, interval_ns: int, cron: str, runs: int) -> bytes:
    """The text of a scheduled fact: `i64 interval_ns, i32 runs, i32 n, cron (n)`, then the template as an accepted record."""
    out = BytesWriter()
    expression = cron.encode()
    write_i64_le(out, interval_ns)
    write_i32_le(out, runs)
    write_i32_le(out, len(expression))
    out.write(expression)
    write_accepted(out, template, 0, True)
    return out.getvalue()


def fired_text(message_no: int, next_due_ns: int, runs_left: int) -> bytes:
    """The text of a fired fact: `i64 message_no, i64 next_due_ns, i64 runs_left`. Number and small are the schedule's number and the due instant."""
    out = BytesWriter()
    write_i64_le(out, message_no)
    write_i64_le(out, next_due_ns)
    write_i64_le(out, runs_left)
    return out.getvalue()
