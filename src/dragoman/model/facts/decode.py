"""Decodes records: the inverse of model/facts/records, for trace, explain and other readers of facts.

A decoded fact is a plain dict whose first key is `fact`. Names of fields are those of `model/facts/layout`; enumerated numbers are
replaced by their names, ids and texts become `str` (bytes that are not UTF-8 as escapes), other numbers stay numbers.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from dragoman.model.enums import DAMAGED, DIALECT_NAMES, DRAINS, FLAG_NAMES, REASON_NAMES, RQ, STATE_NAMES, shown, word
from dragoman.model.facts import fields, layout
from dragoman.model.facts.records import claims_of, read_accepted

# Enumerated fields, by name.
NAMES: Final = {
    "dialect": DIALECT_NAMES,
    "worker_dialect": DIALECT_NAMES,
    "outcome": STATE_NAMES,
    "reason": REASON_NAMES,
}
# The keys of number, small and text in facts of the shape `i64 number, i64 small, text`; empty: not decoded.
KEYS: Final = {
    layout.STARTED: ("boot_no", "", "version"),
    layout.QUEUE_NAMED: ("queue_no", "", "queue"),
    layout.WORKER_LEFT: ("worker_no", "reason", ""),
    layout.DELIVERED: ("message_no", "worker_no", ""),
    layout.UNSCHEDULED: ("schedule_no", "reason", ""),
    layout.PAUSED: ("queue_no", "", ""),
    layout.RESUMED: ("queue_no", "", ""),
    layout.PUBLISHED: ("count", "", "topic"),
    layout.LATE: ("worker_no", "dialect", "wire_id"),
    layout.NOTED: ("count", "", "code"),
    layout.QUEUE_FORGOTTEN: ("queue_no", "reason", "queue"),
}
# The numbers in the text of a quarantined fact after the first, in order.
QUARANTINED_KEYS: Final = ("worker_no", "attempt", "leased_ns", "queue_no", "dialect", "worker_dialect")
LATER_KEYS: Final = ("number", "small", "text")  # of a kind that only a later version of dragoman defines


def decode(records: bytes, at: i64, with_body: bool = False) -> dict[str, object]:
    """Decode the record at `at`."""
    kind: i64 = records[at + layout.KIND]
    if kind == layout.ACCEPTED:
        return decode_accepted(records, at, with_body)
    if kind == layout.LEASED or kind == layout.RELEASED or kind == layout.CLOSED or kind == layout.FIRED:
        return decode_fields(records, at, layout.FACTS[kind - 1])
    if kind == layout.CHECKPOINT:
        return {"fact": "checkpoint", "size": fields.record_size(records, at)}
    if kind == layout.KEYED:
        return {"fact": "keyed"}  # without the key, which is secret
    if kind == layout.CARRIED:
        fact = decode_accepted(records, at + layout.CARRIED_RECORD, with_body)
        fact["fact"] = "carried"
        fact["accepted_ns"] = fields.record_number(records, at)
        return fact
    return decode_rarer(records, at, kind)


def decode_block(records: bytes, with_body: bool = False) -> list[dict[str, object]]:
    """Decode every record of a block, in order, except the key of ids."""
    found: list[dict[str, object]] = []
    walk = fields.RecordWalk(records)
    while walk.step():
        if walk.kind != layout.KEYED:
            found.append(decode(records, walk.at, with_body))
    return found


def decode_fields(records: bytes, at: i64, record: layout.Layout) -> dict[str, object]:
    """A fact that has fields of fixed size only; without those that a record of an older journal lacks."""
    fact: dict[str, object] = {"fact": record.name}
    for field in record.fields:
        if fields.reaches(records, at, field.at):
            fact[field.name] = named(field.name, fields.read_field(records, at, field))
    return fact


def named(field: str, value: int) -> object:
    """The value of a field; of an enumerated one the name."""
    if field == "is_death":
        return value == 1
    names = NAMES.get(field)
    if names is None:
        return value
    return "" if value == layout.NO_DIALECT and field == "worker_dialect" else word(names, value)


def decode_accepted(records: bytes, at: i64, with_body: bool) -> dict[str, object]:
    m = read_accepted(records, at, b"", with_body)
    fact: dict[str, object] = {
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
        fact["body"] = m.body
    return fact


def decode_rarer(records: bytes, at: i64, kind: int) -> dict[str, object]:
    """Facts of the shape `i64 number, i64 small, text`."""
    number: int = fields.record_number(records, at)
    small: int = fields.record_small(records, at)
    text = fields.record_text(records, at)
    if kind == layout.WORKER_JOINED:
        return decode_joined(number, small, text)
    if kind == layout.QUARANTINED:
        return decode_quarantined(number, small, text)
    if kind == layout.SCHEDULED:
        return decode_scheduled(records, at)
    fact: dict[str, object] = {"fact": word(layout.FACT_NAMES, kind)}
    if kind == layout.CLOCK_STEPPED:
        fact["delta_ns"] = number if small == 1 else -number
    elif kind == layout.REQUEUED:
        fact["message_no"] = number
        if text:
            fact["queue_no"] = small
            fact["dialect"] = word(DIALECT_NAMES, int(text.split()[0]))
    else:
        number_key, small_key, text_key = KEYS.get(kind, LATER_KEYS)
        fact[number_key] = number
        if small_key:
            fact[small_key] = named(small_key, small)
        if text_key:
            fact[text_key] = shown(text)
        if kind == layout.RESUMED and small == DRAINS:
            fact["is_draining"] = True
    return fact


def decode_joined(number: int, dialect: int, text: bytes) -> dict[str, object]:
    """The text is listener, remote, identity in hex, then a `weight queue` per claim, tab separated (records.worker_text)."""
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


def decode_scheduled(records: bytes, at: i64) -> dict[str, object]:
    fact = decode_fields(records, at, layout.FACTS[layout.SCHEDULED - 1])
    del fact["n"]
    text = fields.record_text(records, at)
    fact["cron"] = shown(fields.schedule_cron(text))
    template = decode_accepted(text, fields.template_at(text), False)
    for key in ("queue_no", "headers", "body_size"):
        fact[key] = template[key]
    return fact


def decode_quarantined(number: int, reason: int, text: bytes) -> dict[str, object]:
    numbers = fields.quarantined_numbers(text)
    fact: dict[str, object] = {"fact": "quarantined", "message_no": number, "reason": word(REASON_NAMES, reason)}
    fact["died_with"] = numbers[layout.QUARANTINED_DIED_WITH] if numbers else 0
    if len(numbers) == layout.QUARANTINED_NUMBERS:
        for key, value in zip(QUARANTINED_KEYS, numbers[layout.QUARANTINED_WORKER_NO :], strict=True):
            if key != "worker_dialect" or value != layout.NO_DIALECT:
                fact[key] = named(key, value)
    if reason == DAMAGED:
        fact["damage"] = shown(fields.quarantined_damage(text))
    return fact


def flag_words(flags: int) -> list[str]:
    return [name for bit, name in enumerate(FLAG_NAMES) if flags >> bit & 1]


def client_id_text(dialect: int, client_id: bytes) -> str:
    """A client's own id as text, as its dialect writes it: rq uses numbers."""
    if dialect == RQ and len(client_id) == 4:
        return str(int.from_bytes(client_id, "big"))
    return shown(client_id)
