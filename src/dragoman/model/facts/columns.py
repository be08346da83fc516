"""Facts as columns: every record of a block becomes one row, each field a value at the end of a flat column of bytes.

The lake converts these columns to Arrow arrays without reading single rows. A field that a fact does not have gets a number that is no
value of its column, and the lake converts it to null: 0 in ids and instants, which begin at 1; -1 in `attempt`, `retries_left`, `flags` and sizes;
255 in bytes; NO_LONG in `count` and `body_hash`, where every small number is a value. `model/facts/layout` declares the
records, lake/schema the columns.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i16_le, write_i32_le, write_i64_le
from mypy_extensions import i16, i32, i64, u8

from dragoman.model.enums import RQ, shown
from dragoman.model.facts import fields, layout

NO_LONG: Final = -(2**63)
NO_BYTE: Final = 255
NO_INT: Final = -1

# How much of a body goes into the lake.
BODIES_NONE: Final = 0
BODIES_HASH: Final = 1
BODIES_FULL: Final = 2

HASH_SIZE: Final = 8


@final
class FactColumns:
    """The rows of the lake's next file. The four frequent facts are read at their offsets: a call per field takes a quarter of a row's time."""

    def __init__(self, bodies: int) -> None:
        self.bodies: i64 = bodies
        self.rows: i64 = 0
        self._columns: list[BytesWriter] = []
        self.lsn = self._column()
        self.kind = self._column()
        self.time_ns = self._column()
        self.message_no = self._column()
        self.worker_no = self._column()
        self.holder_no = self._column()
        self.queue_no = self._column()
        self.schedule_no = self._column()
        self.attempt = self._column()
        self.client_dialect = self._column()
        self.worker_dialect = self._column()
        self.outcome = self._column()
        self.reason = self._column()
        self.is_death = self._column()
        self.retries_left = self._column()
        self.priority = self._column()
        self.flags = self._column()
        self.timeout_ns = self._column()
        self.expires_ns = self._column()
        self.due_ns = self._column()
        self.accepted_ns = self._column()
        self.first_leased_ns = self._column()
        self.leased_ns = self._column()
        self.delivered_ns = self._column()
        self.body_size = self._column()
        self.reply_size = self._column()
        self.body_hash = self._column()
        self.count = self._column()
        # Texts: the bytes of all rows, and the size of each row's; -1: none, which differs from 0.
        self.client_id = self._column()
        self.client_id_size = self._column()
        self.text = self._column()
        self.text_size = self._column()
        self.body = self._column()
        self.body_bytes = self._column()

    def clear(self) -> None:
        """Remove all rows and reuse the memory: allocating it takes half of a row's time."""
        self.rows = 0
        for out in self._columns:
            out.truncate(0)

    def _column(self) -> BytesWriter:
        out = BytesWriter()
        self._columns.append(out)
        return out

    def size(self) -> int:
        """Bytes of the columns of varying width."""
        return len(self.client_id) + len(self.text) + len(self.body)

    def add(self, records: bytes, first_lsn: int, time_ns: int, from_lsn: int = 0) -> int:
        """Add a row for every fact of a block from `from_lsn` on; storage has no lsn and no row. Returns the lsn after the block."""
        first: i64 = first_lsn
        from_: i64 = from_lsn
        at_ns: i64 = time_ns
        walk = fields.RecordWalk(records)
        while walk.step():
            lsn = first + walk.facts
            if walk.kind < layout.CHECKPOINT and lsn >= from_:
                self._add(records, walk.at, walk.size, u8(walk.kind), lsn, at_ns)
        return first + walk.facts

    def _add(self, records: bytes, at: i64, size: i64, kind: u8, lsn: i64, at_ns: i64) -> None:
        self.rows += 1
        write_i64_le(self.lsn, lsn)
        self.kind.append(kind)
        write_i64_le(self.time_ns, at_ns)
        if kind == layout.LEASED:
            self._row(
                message_no=fields.record_number(records, at),
                worker_no=read_i64_le(records, at + layout.LEASED_WORKER_NO),
                attempt=read_i32_le(records, at + layout.LEASED_ATTEMPT),
            )
        elif kind == layout.CLOSED:
            self._add_closed(records, at, size)
        elif kind == layout.ACCEPTED:
            self._add_accepted(records, at)
            return
        elif kind == layout.RELEASED:
            self._add_released(records, at, size)
        else:
            self._add_rarer(records, at, kind)
            return
        self._texts(b"", b"")

    def _add_accepted(self, records: bytes, at: i64) -> None:
        dialect: u8 = records[at + layout.ACCEPTED_DIALECT]
        start = fields.body_at(records, at)
        end = fields.body_end(records, at)
        body_hash: i64 = NO_LONG
        if self.bodies != BODIES_NONE:
            body = records[start:end]
            body_hash = read_i64_le(blake2b(body, digest_size=HASH_SIZE).digest(), 0)
        self._row(
            message_no=read_i64_le(records, at + layout.ACCEPTED_MESSAGE_NO),
            queue_no=read_i32_le(records, at + layout.ACCEPTED_QUEUE_NO),
            schedule_no=read_i64_le(records, at + layout.ACCEPTED_SCHEDULE_NO),
            client_dialect=dialect,
            retries_left=read_i32_le(records, at + layout.ACCEPTED_RETRIES_LEFT),
            priority=records[at + layout.ACCEPTED_PRIORITY],
            flags=records[at + layout.ACCEPTED_FLAGS],
            timeout_ns=read_i64_le(records, at + layout.ACCEPTED_TIMEOUT_NS),
            expires_ns=read_i64_le(records, at + layout.ACCEPTED_EXPIRES_NS),
            due_ns=read_i64_le(records, at + layout.ACCEPTED_DUE_NS),
            body_size=i32(end - start),
            body_hash=body_hash,
        )
        client_id = fields.accepted_client_id(records, at)
        if dialect == RQ and len(client_id) == 4:
            client_id = b"%d" % int.from_bytes(client_id, "big")  # as decode.client_id_text
        if self.bodies == BODIES_FULL:
            self._texts(client_id, b"", i32(end - start))
            self.body.write(records[start:end])
        else:
            self._texts(client_id, b"")

    def _add_closed(self, records: bytes, at: i64, size: i64) -> None:
        worker_no = read_i64_le(records, at + layout.CLOSED_WORKER_NO)
        self._row(
            message_no=fields.record_number(records, at),
            worker_no=worker_no,
            holder_no=read_i64_le(records, at + layout.CLOSED_HOLDER_NO) if size > layout.CLOSED_HOLDER_NO else 0,
            queue_no=read_i32_le(records, at + layout.CLOSED_QUEUE_NO),
            attempt=read_i32_le(records, at + layout.CLOSED_ATTEMPT),
            client_dialect=records[at + layout.CLOSED_DIALECT],
            worker_dialect=u8(records[at + layout.CLOSED_WORKER_DIALECT]) if worker_no != 0 else NO_BYTE,
            outcome=records[at + layout.CLOSED_OUTCOME],
            reason=records[at + layout.CLOSED_REASON],
            due_ns=read_i64_le(records, at + layout.CLOSED_DUE_NS) if size > layout.CLOSED_DUE_NS else 0,
            accepted_ns=read_i64_le(records, at + layout.CLOSED_ACCEPTED_NS),
            first_leased_ns=read_i64_le(records, at + layout.CLOSED_FIRST_LEASED_NS),
            leased_ns=read_i64_le(records, at + layout.CLOSED_LEASED_NS),
            delivered_ns=read_i64_le(records, at + layout.CLOSED_DELIVERED_NS),
            body_size=read_i32_le(records, at + layout.CLOSED_BODY_SIZE),
            reply_size=read_i32_le(records, at + layout.CLOSED_REPLY_SIZE),
        )

    def _add_released(self, records: bytes, at: i64, size: i64) -> None:
        is_whole = size > layout.RELEASED_LEASED_NS
        self._row(
            message_no=fields.record_number(records, at),
            worker_no=read_i64_le(records, at + layout.RELEASED_WORKER_NO),
            queue_no=read_i32_le(records, at + layout.RELEASED_QUEUE_NO) if is_whole else 0,
            attempt=read_i32_le(records, at + layout.RELEASED_ATTEMPT),
            client_dialect=u8(records[at + layout.RELEASED_DIALECT]) if is_whole else NO_BYTE,
            worker_dialect=u8(records[at + layout.RELEASED_WORKER_DIALECT]) if is_whole else NO_BYTE,
            reason=records[at + layout.RELEASED_REASON],
            is_death=records[at + layout.RELEASED_IS_DEATH],
            retries_left=read_i32_le(records, at + layout.RELEASED_RETRIES_LEFT),
            due_ns=read_i64_le(records, at + layout.RELEASED_DUE_NS),
            leased_ns=read_i64_le(records, at + layout.RELEASED_LEASED_NS) if is_whole else 0,
        )

    def _add_rarer(self, records: bytes, at: i64, kind: u8) -> None:
        """All others: `i64 number, i64 small, text`. Of a kind that a later version defines only the kind and the instant are known."""
        number = fields.record_number(records, at)
        small = fields.record_small(records, at)
        text = fields.record_text(records, at)
        if kind == layout.QUEUE_NAMED:
            self._row(queue_no=i32(number))
        elif kind == layout.QUEUE_FORGOTTEN:
            self._row(queue_no=i32(number), reason=u8(small))
        elif kind == layout.WORKER_JOINED or kind == layout.LATE:
            self._row(worker_no=number, worker_dialect=u8(small))
        elif kind == layout.PUBLISHED or kind == layout.NOTED or kind == layout.STARTED:
            self._row(count=number)
        elif kind == layout.SCHEDULED:
            queue_no = fields.accepted_queue_no(text, fields.template_at(text))
            self._row(schedule_no=number, due_ns=small, queue_no=queue_no)
            text = fields.schedule_cron(text)
        elif kind == layout.FIRED:
            message_no = fields.fired_message_no(records, at)
            self._row(
                message_no=message_no, schedule_no=number, due_ns=small, count=fields.fired_runs_left(records, at)
            )
            text = b""
        else:
            self._add_textless(number, small, text, kind)
            text = b""
        self._texts(b"", text)

    def _add_textless(self, number: i64, small: i64, text: bytes, kind: u8) -> None:
        """Facts whose text, where they have one, is more numbers."""
        if kind == layout.DELIVERED:
            self._row(message_no=number, worker_no=small)
        elif kind == layout.WORKER_LEFT:
            self._row(worker_no=number, reason=u8(small))
        elif kind == layout.PAUSED or kind == layout.RESUMED:
            self._row(queue_no=i32(number))
        elif kind == layout.UNSCHEDULED:
            self._row(schedule_no=number, reason=u8(small))
        elif kind == layout.CLOCK_STEPPED:
            self._row(count=number if small == 1 else -number)
        elif kind == layout.REQUEUED:
            self._row(
                message_no=number, queue_no=i32(small), client_dialect=u8(int(text.split()[0])) if text else NO_BYTE
            )
        elif kind == layout.QUARANTINED:
            self._add_quarantined(number, u8(small), text)
        else:
            self._row()

    def _add_quarantined(self, number: i64, reason: u8, text: bytes) -> None:
        numbers = fields.quarantined_numbers(text)
        if len(numbers) < layout.QUARANTINED_NUMBERS:  # of an older journal: only the worker whose death decided it
            self._row(message_no=number, reason=reason, worker_no=i64(numbers[0]) if numbers else 0)
            return
        self._row(
            message_no=number,
            worker_no=i64(numbers[layout.QUARANTINED_WORKER_NO]),
            queue_no=i32(numbers[layout.QUARANTINED_QUEUE_NO]),
            attempt=i32(numbers[layout.QUARANTINED_ATTEMPT]),
            client_dialect=u8(numbers[layout.QUARANTINED_DIALECT]),
            worker_dialect=u8(numbers[layout.QUARANTINED_WORKER_DIALECT]),
            reason=reason,
            leased_ns=i64(numbers[layout.QUARANTINED_LEASED_NS]),
        )

    def _row(
        self,
        message_no: i64 = 0,
        worker_no: i64 = 0,
        holder_no: i64 = 0,
        queue_no: i32 = 0,
        schedule_no: i64 = 0,
        attempt: i32 = NO_INT,
        client_dialect: u8 = NO_BYTE,
        worker_dialect: u8 = NO_BYTE,
        outcome: u8 = NO_BYTE,
        reason: u8 = NO_BYTE,
        is_death: u8 = NO_BYTE,
        retries_left: i32 = NO_INT,
        priority: u8 = NO_BYTE,
        flags: i16 = NO_INT,
        timeout_ns: i64 = 0,
        expires_ns: i64 = 0,
        due_ns: i64 = 0,
        accepted_ns: i64 = 0,
        first_leased_ns: i64 = 0,
        leased_ns: i64 = 0,
        delivered_ns: i64 = 0,
        body_size: i32 = NO_INT,
        reply_size: i32 = NO_INT,
        body_hash: i64 = NO_LONG,
        count: i64 = NO_LONG,
    ) -> None:
        """Add a value to every column of fixed width."""
        write_i64_le(self.message_no, message_no)
        write_i64_le(self.worker_no, worker_no)
        write_i64_le(self.holder_no, holder_no)
        write_i32_le(self.queue_no, queue_no)
        write_i64_le(self.schedule_no, schedule_no)
        write_i32_le(self.attempt, attempt)
        self.client_dialect.append(client_dialect)
        self.worker_dialect.append(worker_dialect)
        self.outcome.append(outcome)
        self.reason.append(reason)
        self.is_death.append(is_death)
        write_i32_le(self.retries_left, retries_left)
        self.priority.append(priority)
        write_i16_le(self.flags, flags)
        write_i64_le(self.timeout_ns, timeout_ns)
        write_i64_le(self.expires_ns, expires_ns)
        write_i64_le(self.due_ns, due_ns)
        write_i64_le(self.accepted_ns, accepted_ns)
        write_i64_le(self.first_leased_ns, first_leased_ns)
        write_i64_le(self.leased_ns, leased_ns)
        write_i64_le(self.delivered_ns, delivered_ns)
        write_i32_le(self.body_size, body_size)
        write_i32_le(self.reply_size, reply_size)
        write_i64_le(self.body_hash, body_hash)
        write_i64_le(self.count, count)

    def _texts(self, client_id: bytes, text: bytes, body_size: i32 = NO_INT) -> None:
        """Add a value to every column of varying width. An empty text counts as none; an empty body is a body."""
        self._text(self.client_id, self.client_id_size, client_id)
        self._text(self.text, self.text_size, text)
        write_i32_le(self.body_bytes, body_size)

    def _text(self, out: BytesWriter, sizes: BytesWriter, text: bytes) -> None:
        size: i64 = len(text)
        if size == 0:
            write_i32_le(sizes, NO_INT)
            return
        if not text.isascii():
            text = shown(text).encode()  # Arrow takes UTF-8 alone
            size = len(text)
        out.write(text)
        write_i32_le(sizes, i32(size))
