"""The fields of records, read out of a block by the offsets of `model/facts/layout`; and the one walk over a block's records.

Every function takes the records and where one begins. A field that a record of an older journal lacks is 0, a dialect NO_DIALECT: those who must
know ask `reaches`.
"""

from __future__ import annotations

from typing import final

from librt.strings import read_i32_le, read_i64_le
from mypy_extensions import i32, i64, u8

from dragoman.model.facts.layout import (
    ACCEPTED_ADDRESS_SIZE,
    ACCEPTED_CLIENT_ID_SIZE,
    ACCEPTED_CRC_SIZE,
    ACCEPTED_DEDUPE_SIZE,
    ACCEPTED_DIALECT,
    ACCEPTED_FIXED,
    ACCEPTED_HEADERS_SIZE,
    ACCEPTED_MESSAGE_NO,
    ACCEPTED_QUEUE_NO,
    CHECKPOINT,
    CHECKPOINT_CHUNK,
    CLOSED_ACCEPTED_NS,
    CLOSED_ATTEMPT,
    CLOSED_BODY_SIZE,
    CLOSED_DELIVERED_NS,
    CLOSED_DIALECT,
    CLOSED_DUE_NS,
    CLOSED_FIRST_LEASED_NS,
    CLOSED_HOLDER_NO,
    CLOSED_LEASED_NS,
    CLOSED_OUTCOME,
    CLOSED_QUEUE_NO,
    CLOSED_REASON,
    CLOSED_REPLY_SIZE,
    CLOSED_WORKER_DIALECT,
    CLOSED_WORKER_NO,
    FIRED_MESSAGE_NO,
    FIRED_NEXT_DUE_NS,
    FIRED_RUNS_LEFT,
    HEAD_SIZE,
    HEADERS_MASK,
    KEYED_KEY,
    KIND,
    LEASED_ATTEMPT,
    LEASED_WORKER_NO,
    NO_DIALECT,
    NUMBER,
    QUARANTINED_NUMBERS,
    RELEASED_ATTEMPT,
    RELEASED_DIALECT,
    RELEASED_DUE_NS,
    RELEASED_IS_DEATH,
    RELEASED_LEASED_NS,
    RELEASED_QUEUE_NO,
    RELEASED_REASON,
    RELEASED_RETRIES_LEFT,
    RELEASED_WORKER_DIALECT,
    RELEASED_WORKER_NO,
    SCHEDULE_CRON,
    SCHEDULE_CRON_SIZE,
    SCHEDULE_INTERVAL_NS,
    SCHEDULE_RUNS,
    SMALL,
    TEXT,
)


@final
class RecordWalk:
    """The records of a block, one after the other: `while walk.step():` look at the record at `walk.at`.

    A block was proved by its CRC before anybody walks over it, so that a size that does not fit is a fault of our own.
    """

    def __init__(self, records: bytes) -> None:
        self.records = records
        self.end: i64 = len(records)
        self.at: i64 = 0
        self.size: i64 = 0
        self.kind: i64 = CHECKPOINT
        self.facts: i64 = 0  # how many lie before the record at `at`; in the end, how many there are

    def step(self) -> bool:
        """Go to the next record; False when there is none."""
        if self.kind < CHECKPOINT:
            self.facts += 1
        at: i64 = self.at + self.size
        left: i64 = self.end - at
        self.at = at
        if left == 0:
            self.size = 0
            self.kind = CHECKPOINT
            return False
        assert left >= HEAD_SIZE, "a block ends inside the head of a record"
        size = i64(read_i32_le(self.records, at))
        assert HEAD_SIZE <= size <= left, "a record that does not fit into its block"
        self.size = size
        self.kind = self.records[at + KIND]
        return True


def record_size(records: bytes, at: i64) -> i64:
    return i64(read_i32_le(records, at))


def reaches(records: bytes, at: i64, field_at: i64) -> bool:
    """Whether the record at `at` has the field at this offset: it may be of a journal that is older than the field."""
    return i64(read_i32_le(records, at)) > field_at


def record_number(records: bytes, at: i64) -> i64:
    """The number that a record of any kind but accepted and checkpoint begins with."""
    return read_i64_le(records, at + NUMBER)


def record_small(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + SMALL)


def record_text(records: bytes, at: i64) -> bytes:
    return records[at + TEXT : at + i64(read_i32_le(records, at))]


def accepted_dialect(records: bytes, at: i64) -> u8:
    return records[at + ACCEPTED_DIALECT]


def accepted_message_no(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + ACCEPTED_MESSAGE_NO)


def accepted_queue_no(records: bytes, at: i64) -> i32:
    return read_i32_le(records, at + ACCEPTED_QUEUE_NO)


def accepted_client_id_size(records: bytes, at: i64) -> u8:
    return records[at + ACCEPTED_CLIENT_ID_SIZE]


def accepted_client_id(records: bytes, at: i64) -> bytes:
    start = at + ACCEPTED_FIXED
    size: i64 = records[at + ACCEPTED_CLIENT_ID_SIZE]
    return records[start : start + size]


def address_at(records: bytes, at: i64) -> i64:
    n1: i64 = records[at + ACCEPTED_CLIENT_ID_SIZE]
    return at + ACCEPTED_FIXED + n1


def dedupe_at(records: bytes, at: i64) -> i64:
    n2: i64 = records[at + ACCEPTED_ADDRESS_SIZE]
    return address_at(records, at) + n2


def headers_at(records: bytes, at: i64) -> i64:
    n3: i64 = records[at + ACCEPTED_DEDUPE_SIZE]
    return dedupe_at(records, at) + n3


def body_at(records: bytes, at: i64) -> i64:
    n1: i64 = records[at + ACCEPTED_CLIENT_ID_SIZE]
    n2: i64 = records[at + ACCEPTED_ADDRESS_SIZE]
    n3: i64 = records[at + ACCEPTED_DEDUPE_SIZE]
    return at + ACCEPTED_FIXED + n1 + n2 + n3 + headers_size(records, at)


def headers_size(records: bytes, at: i64) -> i64:
    return i64(read_i32_le(records, at + ACCEPTED_HEADERS_SIZE)) & HEADERS_MASK


def body_end(records: bytes, at: i64) -> i64:
    crc_size: i64 = records[at + ACCEPTED_CRC_SIZE]
    return at + i64(read_i32_le(records, at)) - crc_size


def accepted_address(records: bytes, at: i64) -> bytes:
    return records[address_at(records, at) : dedupe_at(records, at)]


def accepted_headers(records: bytes, at: i64) -> bytes:
    return records[headers_at(records, at) : body_at(records, at)]


def accepted_body(records: bytes, at: i64) -> bytes:
    return records[body_at(records, at) : body_end(records, at)]


def leased_worker_no(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + LEASED_WORKER_NO)


def leased_attempt(records: bytes, at: i64) -> i32:
    return read_i32_le(records, at + LEASED_ATTEMPT)


def released_worker_no(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + RELEASED_WORKER_NO)


def released_attempt(records: bytes, at: i64) -> i32:
    return read_i32_le(records, at + RELEASED_ATTEMPT)


def released_retries_left(records: bytes, at: i64) -> i32:
    return read_i32_le(records, at + RELEASED_RETRIES_LEFT)


def released_due_ns(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + RELEASED_DUE_NS)


def released_reason(records: bytes, at: i64) -> u8:
    return records[at + RELEASED_REASON]


def released_is_death(records: bytes, at: i64) -> u8:
    return records[at + RELEASED_IS_DEATH]


def released_leased_ns(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + RELEASED_LEASED_NS) if reaches(records, at, RELEASED_LEASED_NS) else 0


def released_queue_no(records: bytes, at: i64) -> i32:
    return read_i32_le(records, at + RELEASED_QUEUE_NO) if reaches(records, at, RELEASED_QUEUE_NO) else 0


def released_dialect(records: bytes, at: i64) -> u8:
    return records[at + RELEASED_DIALECT] if reaches(records, at, RELEASED_DIALECT) else NO_DIALECT


def released_worker_dialect(records: bytes, at: i64) -> u8:
    return records[at + RELEASED_WORKER_DIALECT] if reaches(records, at, RELEASED_WORKER_DIALECT) else NO_DIALECT


def closed_worker_no(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + CLOSED_WORKER_NO)


def closed_attempt(records: bytes, at: i64) -> i32:
    return read_i32_le(records, at + CLOSED_ATTEMPT)


def closed_queue_no(records: bytes, at: i64) -> i32:
    return read_i32_le(records, at + CLOSED_QUEUE_NO)


def closed_accepted_ns(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + CLOSED_ACCEPTED_NS)


def closed_first_leased_ns(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + CLOSED_FIRST_LEASED_NS)


def closed_leased_ns(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + CLOSED_LEASED_NS)


def closed_delivered_ns(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + CLOSED_DELIVERED_NS)


def closed_body_size(records: bytes, at: i64) -> i32:
    return read_i32_le(records, at + CLOSED_BODY_SIZE)


def closed_reply_size(records: bytes, at: i64) -> i32:
    return read_i32_le(records, at + CLOSED_REPLY_SIZE)


def closed_outcome(records: bytes, at: i64) -> u8:
    return records[at + CLOSED_OUTCOME]


def closed_reason(records: bytes, at: i64) -> u8:
    return records[at + CLOSED_REASON]


def closed_dialect(records: bytes, at: i64) -> u8:
    return records[at + CLOSED_DIALECT]


def closed_worker_dialect(records: bytes, at: i64) -> u8:
    return records[at + CLOSED_WORKER_DIALECT]


def closed_due_ns(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + CLOSED_DUE_NS) if reaches(records, at, CLOSED_DUE_NS) else 0


def closed_holder_no(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + CLOSED_HOLDER_NO) if reaches(records, at, CLOSED_HOLDER_NO) else 0


def fired_message_no(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + FIRED_MESSAGE_NO)


def fired_next_due_ns(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + FIRED_NEXT_DUE_NS)


def fired_runs_left(records: bytes, at: i64) -> i64:
    return read_i64_le(records, at + FIRED_RUNS_LEFT)


def schedule_interval_ns(text: bytes) -> i64:
    return read_i64_le(text, SCHEDULE_INTERVAL_NS)


def schedule_runs(text: bytes) -> i32:
    return read_i32_le(text, SCHEDULE_RUNS)


def schedule_cron(text: bytes) -> bytes:
    return text[SCHEDULE_CRON : template_at(text)]


def template_at(text: bytes) -> i64:
    """Where the accepted record begins that is a schedule's template."""
    return SCHEDULE_CRON + i64(read_i32_le(text, SCHEDULE_CRON_SIZE))


def quarantined_numbers(text: bytes) -> list[int]:
    """QUARANTINED_NUMBERS of them; those of older journals have fewer."""
    numbers: list[int] = []
    for part in text.split()[:QUARANTINED_NUMBERS]:
        numbers.append(int(part))
    return numbers


def quarantined_damage(text: bytes) -> bytes:
    """The evidence, where the reason is damage."""
    return text.split(b" ", QUARANTINED_NUMBERS)[QUARANTINED_NUMBERS]


def keyed_key(records: bytes, at: i64) -> bytes:
    return records[at + KEYED_KEY : at + i64(read_i32_le(records, at))]


def checkpoint_chunk(records: bytes, at: i64) -> bytes:
    return records[at + CHECKPOINT_CHUNK : at + i64(read_i32_le(records, at))]
