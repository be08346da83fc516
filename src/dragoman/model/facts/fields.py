"""The fields of records, read out of a block by the offsets of `model/facts/layout`; and the one walk over a block's records.

Every function takes the records and the offset of one. `reaches` returns whether a record, which may be of an older journal, has a field.
"""

from __future__ import annotations

from typing import final

from librt.strings import read_i32_le, read_i64_le
from mypy_extensions import i32, i64, u8

from dragoman.model.facts import layout


@final
class RecordWalk:
    """The records of a block, one after the other: after `walk.step()`, the record at `walk.at`. The CRC of the block was verified before, so a size
    that does not fit is a bug."""

    def __init__(self, records: bytes) -> None:
        self.records = records
        self.end: i64 = len(records)
        self.at: i64 = 0
        self.size: i64 = 0
        self.kind: i64 = layout.CHECKPOINT
        self.facts: i64 = 0  # how many precede the record at `at`; after the last step, all

    def step(self) -> bool:
        """Go to the next record; False when there is none."""
        if self.kind < layout.CHECKPOINT:
            self.facts += 1
        at: i64 = self.at + self.size
        left: i64 = self.end - at
        self.at = at
        if left == 0:
            self.size = 0
            self.kind = layout.CHECKPOINT
            return False
        assert left >= layout.HEAD_SIZE, "a block ends inside the head of a record"
        size = i64(read_i32_le(self.records, at))
        assert layout.HEAD_SIZE <= size <= left, "a record that does not fit into its block"
        self.size = size
        self.kind = self.records[at + layout.KIND]
        return True


def record_size(records: bytes, at: i64) -> i64:
    return i64(read_i32_le(records, at))


def reaches(records: bytes, at: i64, field_at: i64) -> bool:
    """Whether the record at `at` has the field at this offset: it may be of a journal that is older than the field."""
    return i64(read_i32_le(records, at)) > field_at


def read_field(records: bytes, at: i64, field: layout.Field) -> int:
    """Any declared field of the record at `at`, for readers that need not be fast."""
    start = at + field.at
    size = layout.FIELD_SIZES[field.type_name]
    return int.from_bytes(records[start : start + size], "little", signed=size >= layout.SIGNED_SIZE_MIN)


def record_number(records: bytes, at: i64) -> i64:
    """The number that a record of any kind but accepted and checkpoint begins with."""
    return read_i64_le(records, at + layout.NUMBER)


def record_small(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + layout.SMALL)


def record_text(records: bytes, at: i64) -> bytes:
    return records[at + layout.TEXT : at + i64(read_i32_le(records, at))]


def accepted_dialect(records: bytes, at: i64) -> u8:
    return records[at + layout.ACCEPTED_DIALECT]


def accepted_message_no(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + layout.ACCEPTED_MESSAGE_NO)


def accepted_queue_no(records: bytes, at: i64) -> i32:
    return read_i32_le(records, at + layout.ACCEPTED_QUEUE_NO)


def accepted_client_id_size(records: bytes, at: i64) -> u8:
    return records[at + layout.ACCEPTED_CLIENT_ID_SIZE]


def accepted_client_id(records: bytes, at: i64) -> bytes:
    start = at + layout.ACCEPTED_FIXED
    size: i64 = records[at + layout.ACCEPTED_CLIENT_ID_SIZE]
    return records[start : start + size]


def body_at(records: bytes, at: i64) -> i64:
    n1: i64 = records[at + layout.ACCEPTED_CLIENT_ID_SIZE]
    n2: i64 = records[at + layout.ACCEPTED_ADDRESS_SIZE]
    n3: i64 = records[at + layout.ACCEPTED_DEDUPE_SIZE]
    return at + layout.ACCEPTED_FIXED + n1 + n2 + n3 + headers_size(records, at)


def headers_size(records: bytes, at: i64) -> i64:
    return i64(read_i32_le(records, at + layout.ACCEPTED_HEADERS_SIZE)) & layout.HEADERS_MASK


def body_end(records: bytes, at: i64) -> i64:
    crc_size: i64 = records[at + layout.ACCEPTED_CRC_SIZE]
    return at + i64(read_i32_le(records, at)) - crc_size


def accepted_address(records: bytes, at: i64) -> bytes:
    client_id_size: i64 = records[at + layout.ACCEPTED_CLIENT_ID_SIZE]
    size: i64 = records[at + layout.ACCEPTED_ADDRESS_SIZE]
    start = at + layout.ACCEPTED_FIXED + client_id_size
    return records[start : start + size]


def accepted_headers(records: bytes, at: i64) -> bytes:
    end = body_at(records, at)
    return records[end - headers_size(records, at) : end]


def accepted_body(records: bytes, at: i64) -> bytes:
    return records[body_at(records, at) : body_end(records, at)]


def leased_worker_no(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + layout.LEASED_WORKER_NO)


def closed_worker_no(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + layout.CLOSED_WORKER_NO)


def closed_queue_no(records: bytes, at: i64) -> i32:
    return read_i32_le(records, at + layout.CLOSED_QUEUE_NO)


def closed_outcome(records: bytes, at: i64) -> u8:
    return records[at + layout.CLOSED_OUTCOME]


def closed_dialect(records: bytes, at: i64) -> u8:
    return records[at + layout.CLOSED_DIALECT]


def closed_holder_no(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + layout.CLOSED_HOLDER_NO) if reaches(records, at, layout.CLOSED_HOLDER_NO) else 0


def fired_message_no(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + layout.FIRED_MESSAGE_NO)


def fired_runs_left(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + layout.FIRED_RUNS_LEFT)


def schedule_cron(text: bytes) -> bytes:
    return text[layout.SCHEDULE_CRON : template_at(text)]


def template_at(text: bytes) -> i64:
    """The offset of a schedule's template, an accepted record."""
    return layout.SCHEDULE_CRON + i64(read_i32_le(text, layout.SCHEDULE_CRON_SIZE))


def quarantined_numbers(text: bytes) -> list[int]:
    """QUARANTINED_NUMBERS of them; those of older journals have fewer."""
    return [int(part) for part in text.split()[: layout.QUARANTINED_NUMBERS]]


def quarantined_damage(text: bytes) -> bytes:
    """The evidence, where the reason is damage."""
    return text.split(b" ", layout.QUARANTINED_NUMBERS)[layout.QUARANTINED_NUMBERS]


def keyed_key(records: bytes, at: i64) -> bytes:
    return records[at + layout.KEYED_KEY : at + i64(read_i32_le(records, at))]


def checkpoint_chunk(records: bytes, at: i64) -> bytes:
    return records[at + layout.CHECKPOINT_CHUNK : at + i64(read_i32_le(records, at))]
