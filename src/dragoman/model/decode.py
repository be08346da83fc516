"""Records back into words: the inverse of model/records, for trace, explain and whoever else reads facts.

A decoded fact is a plain dict whose first key is `fact`. Names of fields are those of docs/reference/facts.md; small numbers are
replaced by their words, ids and texts become `str` (bytes that are no UTF-8 show as escapes), and numbers stay numbers.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_le, read_i64_le
from mypy_extensions import i64

from dragoman.model.records import (
    ACCEPTED,
    CARRIED,
    CHECKPOINT,
    CLOCK_STEPPED,
    CLOSED,
    DELIVERED,
    FACT_NAMES,
    FIRED,
    KEYED,
    LATE,
    LEASED,
    NO_DIALECT,
    NOTED,
    PAUSED,
    PUBLISHED,
    QUARANTINED,
    QUEUE_FORGOTTEN,
    QUEUE_NAMED,
    RELEASED,
    REQUEUED,
    RESUMED,
    SCHEDULED,
    STARTED,
    UNSCHEDULED,
    WORKER_JOINED,
    WORKER_LEFT,
    read_accepted,
)
from dragoman.model.texts import claims_of
from dragoman.model.words import DAMAGED, DIALECT_NAMES, DRAINS, REASON_NAMES, RQ

# Sizes of records as older journals have them: what came later is not there.
RELEASED_SHORT: Final = 39
CLOSED_SHORT: Final = 73
CARRIED_AT: Final = 13  # where the accepted record begins inside a carried one
# A closed fact's outcome is the state the message ended in (core/lifecycle).
OUTCOME_NAMES: Final = ["waiting", "leased", "quarantined", "done", "rejected", "expired", "cancelled"]
# The bits of an accepted fact's flags, lowest first (model/words).
FLAG_NAMES: Final = [
    "reply_wanted",
    "handover_wanted",
    "kept_wanted",
    "guaranteed",
    "no_haste",
    "keep_same",
    "expires_held",
    "failure_final",
]


def decode(records: bytes, at: i64, with_body: bool = False) -> dict[str, object]:
    """The record that begins at `at`."""
    kind: i64 = records[at + 4]
    if kind == ACCEPTED:
        return decode_accepted(records, at, with_body)
    if kind == LEASED:
        return {
            "fact": "leased",
            "message_no": read_i64_le(records, at + 5),
            "worker_no": read_i64_le(records, at + 13),
            "attempt": read_i32_le(records, at + 21),
        }
    if kind == RELEASED:
        return decode_released(records, at)
    if kind == CLOSED:
        return decode_closed(records, at)
    if kind == CHECKPOINT:
        return {"fact": "checkpoint", "size": read_i32_le(records, at)}
    if kind == KEYED:
        return {"fact": "keyed"}  # and no word of the key
    if kind == CARRIED:
        fields = decode_accepted(records, at + CARRIED_AT, with_body)
        fields["fact"] = "carried"
        fields["accepted_ns"] = read_i64_le(records, at + 5)
        return fields
    return decode_rarer(records, at, kind)


def decode_block(records: bytes, with_body: bool = False) -> list[dict[str, object]]:
    """Every record of a block but the key of ids, in order."""
    found: list[dict[str, object]] = []
    at: i64 = 0
    while at < len(records):
        if records[at + 4] != KEYED:
            found.append(decode(records, at, with_body))
        at += i64(read_i32_le(records, at))
    return found


def decode_accepted(records: bytes, at: i64, with_body: bool) -> dict[str, object]:
    m = read_accepted(records, at, b"", with_body)
    fields: dict[str, object] = {
        "fact": "accepted",
        "message_no": m.number,
        "dialect": word(DIALECT_NAMES, m.dialect),
        "flags": flag_words(m.flags),
        "priority": m.priority,
        "queue_no": m.queue_no,
        "retries_left": m.retries_left,
        "timeout_ns": m.timeout_ns,
        "expires_ns": m.expires_ns,
        "due_ns": m.due_ns,
        "schedule_no": m.schedule_no,
        "client_id": client_id_text(m.dialect, m.client_id),
        "address": shown(m.address),
        "dedupe": shown(m.dedupe),
        "headers": shown(m.headers),
        "body_size": m.body_size,
    }
    if with_body:
        fields["body"] = m.body
    return fields


def decode_released(records: bytes, at: i64) -> dict[str, object]:
    fields: dict[str, object] = {
        "fact": "released",
        "message_no": read_i64_le(records, at + 5),
        "worker_no": read_i64_le(records, at + 13),
        "attempt": read_i32_le(records, at + 21),
        "retries_left": read_i32_le(records, at + 25),
        "due_ns": read_i64_le(records, at + 29),
        "reason": word(REASON_NAMES, records[at + 37]),
        "is_death": records[at + 38] == 1,
    }
    if read_i32_le(records, at) > RELEASED_SHORT:
        fields["leased_ns"] = read_i64_le(records, at + 39)
        fields["queue_no"] = read_i32_le(records, at + 47)
        fields["dialect"] = word(DIALECT_NAMES, records[at + 51])
        fields["worker_dialect"] = word(DIALECT_NAMES, records[at + 52]) if records[at + 52] != NO_DIALECT else ""
    return fields


def decode_closed(records: bytes, at: i64) -> dict[str, object]:
    fields: dict[str, object] = {
        "fact": "closed",
        "message_no": read_i64_le(records, at + 5),
        "worker_no": read_i64_le(records, at + 13),
        "attempt": read_i32_le(records, at + 21),
        "queue_no": read_i32_le(records, at + 25),
        "accepted_ns": read_i64_le(records, at + 29),
        "first_leased_ns": read_i64_le(records, at + 37),
        "leased_ns": read_i64_le(records, at + 45),
        "delivered_ns": read_i64_le(records, at + 53),
        "body_size": read_i32_le(records, at + 61),
        "reply_size": read_i32_le(records, at + 65),
        "outcome": word(OUTCOME_NAMES, records[at + 69]),
        "reason": word(REASON_NAMES, records[at + 70]),
        "dialect": word(DIALECT_NAMES, records[at + 71]),
        "worker_dialect": word(DIALECT_NAMES, records[at + 72]),
    }
    size = read_i32_le(records, at)
    if size > CLOSED_SHORT:
        fields["due_ns"] = read_i64_le(records, at + 73)
    if size > CLOSED_SHORT + 8:
        fields["holder_no"] = read_i64_le(records, at + 81)
    return fields


def decode_rarer(records: bytes, at: i64, kind: i64) -> dict[str, object]:
    """Facts of the one shape `i64 number, i64 small, text`."""
    size = i64(read_i32_le(records, at))
    number: int = read_i64_le(records, at + 5)
    small: int = read_i64_le(records, at + 13)
    text = records[at + 21 : at + size]
    name = word(FACT_NAMES, kind)
    if kind == STARTED:
        return {"fact": name, "boot_no": number, "version": shown(text)}
    if kind == QUEUE_NAMED:
        return {"fact": name, "queue_no": number, "queue": shown(text)}
    if kind == QUEUE_FORGOTTEN:
        return {"fact": name, "queue_no": number, "queue": shown(text), "reason": word(REASON_NAMES, small)}
    if kind == WORKER_JOINED:
        return decode_joined(number, small, text)
    if kind == WORKER_LEFT:
        return {"fact": name, "worker_no": number, "reason": word(REASON_NAMES, small)}
    if kind == DELIVERED:
        return {"fact": name, "message_no": number, "worker_no": small}
    if kind == QUARANTINED:
        return decode_quarantined(number, small, text)
    if kind == REQUEUED:
        fields: dict[str, object] = {"fact": name, "message_no": number}
        if text:
            fields["queue_no"] = small
            fields["dialect"] = word(DIALECT_NAMES, int(text.split()[0]))
        return fields
    if kind == SCHEDULED:
        return decode_scheduled(number, small, text)
    if kind == UNSCHEDULED:
        return {"fact": name, "schedule_no": number, "reason": word(REASON_NAMES, small)}
    if kind == FIRED:
        return {
            "fact": name,
            "schedule_no": number,
            "due_ns": small,
            "message_no": read_i64_le(text, 0),
            "next_due_ns": read_i64_le(text, 8),
            "runs_left": read_i64_le(text, 16),
        }
    if kind == RESUMED and small == DRAINS:
        return {"fact": name, "queue_no": number, "is_draining": True}
    if kind == PAUSED or kind == RESUMED:
        return {"fact": name, "queue_no": number}
    if kind == PUBLISHED:
        return {"fact": name, "count": number, "topic": shown(text)}
    if kind == CLOCK_STEPPED:
        return {"fact": name, "delta_ns": number if small == 1 else -number}
    if kind == LATE:
        return {"fact": name, "worker_no": number, "dialect": word(DIALECT_NAMES, small), "wire_id": shown(text)}
    if kind == NOTED:
        return {"fact": name, "count": number, "code": shown(text)}
    return {"fact": name, "number": number, "small": small, "text": shown(text)}


def decode_joined(number: int, dialect: int, text: bytes) -> dict[str, object]:
    """The text is listener, remote, identity in hex, then a `weight queue` each, tab separated (texts.worker_text)."""
    parts = text.split(b"\t", 3)
    return {
        "fact": "worker_joined",
        "worker_no": number,
        "dialect": word(DIALECT_NAMES, dialect),
        "listener": shown(parts[0]),
        "remote": shown(parts[1]) if len(parts) > 1 else "",
        "identity": shown(bytes.fromhex(parts[2].decode())) if len(parts) > 2 else "",
        "queues": [[weight, shown(name)] for weight, name in claims_of(text)],
    }


def decode_scheduled(number: int, next_due_ns: int, text: bytes) -> dict[str, object]:
    length = i64(read_i32_le(text, 12))
    template = decode_accepted(text, 16 + length, False)
    return {
        "fact": "scheduled",
        "schedule_no": number,
        "next_due_ns": next_due_ns,
        "interval_ns": read_i64_le(text, 0),
        "cron": shown(text[16 : 16 + length]),
        "runs": read_i32_le(text, 8),
        "queue_no": template["queue_no"],
        "headers": template["headers"],
        "body_size": template["body_size"],
    }


def decode_quarantined(number: int, reason: int, text: bytes) -> dict[str, object]:
    parts = text.split()
    fields: dict[str, object] = {
        "fact": "quarantined",
        "message_no": number,
        "reason": word(REASON_NAMES, reason),
        "died_with": int(parts[0]) if parts else 0,
    }
    if len(parts) > 1:
        fields["worker_no"] = int(parts[1])
        fields["attempt"] = int(parts[2])
        fields["leased_ns"] = int(parts[3])
        fields["queue_no"] = int(parts[4])
        fields["dialect"] = word(DIALECT_NAMES, int(parts[5]))
        fields["worker_dialect"] = word(DIALECT_NAMES, int(parts[6]))
    if reason == DAMAGED:
        fields["damage"] = shown(text.split(b" ", 7)[7])
    return fields


def flag_words(flags: int) -> list[str]:
    words: list[str] = []
    for bit, name in enumerate(FLAG_NAMES):
        if flags >> bit & 1:
            words.append(name)
    return words


def word(words: list[str], number: int) -> str:
    """A later dragoman may know more words than this one."""
    return words[number] if 0 <= number < len(words) else f"unknown_{number}"


def client_id_text(dialect: int, client_id: bytes) -> str:
    """A client's own id as its dialect writes it: rq's are numbers."""
    if dialect == RQ and len(client_id) == 4:
        return str(int.from_bytes(client_id, "big"))
    return shown(client_id)


def shown(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")
