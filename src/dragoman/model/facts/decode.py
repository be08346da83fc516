"""Decodes records: the inverse of model/facts/records, for trace, explain and other readers of facts.

A decoded fact is a plain dict whose first key is `fact`. Names of fields are those of `model/facts/layout`; enumerated numbers are
replaced by their names, ids and texts become `str` (bytes that are not UTF-8 as escapes), other numbers stay numbers.
"""

from __future__ import annotations

from mypy_extensions import i64

from dragoman.model.facts import fields, layout
from dragoman.model.facts.records import read_accepted
from dragoman.model.facts.texts import claims_of
from dragoman.model.words import DAMAGED, DIALECT_NAMES, DRAINS, FLAG_NAMES, REASON_NAMES, RQ, STATE_NAMES, shown, word


def decode(records: bytes, at: i64, with_body: bool = False) -> dict[str, object]:
    """Decode the record at `at`."""
    kind: i64 = records[at + layout.KIND]
    if kind == layout.ACCEPTED:
        return decode_accepted(records, at, with_body)
    if kind == layout.LEASED:
        return {
            "fact": "leased",
            "message_no": fields.record_number(records, at),
            "worker_no": fields.leased_worker_no(records, at),
            "attempt": fields.leased_attempt(records, at),
        }
    if kind == layout.RELEASED:
        return decode_released(records, at)
    if kind == layout.CLOSED:
        return decode_closed(records, at)
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


def decode_released(records: bytes, at: i64) -> dict[str, object]:
    fact: dict[str, object] = {
        "fact": "released",
        "message_no": fields.record_number(records, at),
        "worker_no": fields.released_worker_no(records, at),
        "attempt": fields.released_attempt(records, at),
        "retries_left": fields.released_retries_left(records, at),
        "due_ns": fields.released_due_ns(records, at),
        "reason": word(REASON_NAMES, fields.released_reason(records, at)),
        "is_death": fields.released_is_death(records, at) == 1,
    }
    if fields.reaches(records, at, layout.RELEASED_LEASED_NS):
        worker_dialect = fields.released_worker_dialect(records, at)
        fact["leased_ns"] = fields.released_leased_ns(records, at)
        fact["queue_no"] = fields.released_queue_no(records, at)
        fact["dialect"] = word(DIALECT_NAMES, fields.released_dialect(records, at))
        fact["worker_dialect"] = word(DIALECT_NAMES, worker_dialect) if worker_dialect != layout.NO_DIALECT else ""
    return fact


def decode_closed(records: bytes, at: i64) -> dict[str, object]:
    fact: dict[str, object] = {
        "fact": "closed",
        "message_no": fields.record_number(records, at),
        "worker_no": fields.closed_worker_no(records, at),
        "attempt": fields.closed_attempt(records, at),
        "queue_no": fields.closed_queue_no(records, at),
        "accepted_ns": fields.closed_accepted_ns(records, at),
        "first_leased_ns": fields.closed_first_leased_ns(records, at),
        "leased_ns": fields.closed_leased_ns(records, at),
        "delivered_ns": fields.closed_delivered_ns(records, at),
        "body_size": fields.closed_body_size(records, at),
        "reply_size": fields.closed_reply_size(records, at),
        "outcome": word(STATE_NAMES, fields.closed_outcome(records, at)),
        "reason": word(REASON_NAMES, fields.closed_reason(records, at)),
        "dialect": word(DIALECT_NAMES, fields.closed_dialect(records, at)),
        "worker_dialect": word(DIALECT_NAMES, fields.closed_worker_dialect(records, at)),
    }
    if fields.reaches(records, at, layout.CLOSED_DUE_NS):
        fact["due_ns"] = fields.closed_due_ns(records, at)
    if fields.reaches(records, at, layout.CLOSED_HOLDER_NO):
        fact["holder_no"] = fields.closed_holder_no(records, at)
    return fact


def decode_rarer(records: bytes, at: i64, kind: i64) -> dict[str, object]:
    """Facts of the one shape `i64 number, i64 small, text`."""
    number: int = fields.record_number(records, at)
    small: int = fields.record_small(records, at)
    text = fields.record_text(records, at)
    name = word(layout.FACT_NAMES, kind)
    if kind == layout.STARTED:
        return {"fact": name, "boot_no": number, "version": shown(text)}
    if kind == layout.QUEUE_NAMED:
        return {"fact": name, "queue_no": number, "queue": shown(text)}
    if kind == layout.QUEUE_FORGOTTEN:
        return {"fact": name, "queue_no": number, "queue": shown(text), "reason": word(REASON_NAMES, small)}
    if kind == layout.WORKER_JOINED:
        return decode_joined(number, small, text)
    if kind == layout.WORKER_LEFT:
        return {"fact": name, "worker_no": number, "reason": word(REASON_NAMES, small)}
    if kind == layout.DELIVERED:
        return {"fact": name, "message_no": number, "worker_no": small}
    if kind == layout.QUARANTINED:
        return decode_quarantined(number, small, text)
    if kind == layout.REQUEUED:
        fact: dict[str, object] = {"fact": name, "message_no": number}
        if text:
            fact["queue_no"] = small
            fact["dialect"] = word(DIALECT_NAMES, int(text.split()[0]))
        return fact
    if kind == layout.SCHEDULED:
        return decode_scheduled(number, small, text)
    if kind == layout.UNSCHEDULED:
        return {"fact": name, "schedule_no": number, "reason": word(REASON_NAMES, small)}
    if kind == layout.FIRED:
        return {
            "fact": name,
            "schedule_no": number,
            "due_ns": small,
            "message_no": fields.fired_message_no(records, at),
            "next_due_ns": fields.fired_next_due_ns(records, at),
            "runs_left": fields.fired_runs_left(records, at),
        }
    if kind == layout.RESUMED and small == DRAINS:
        return {"fact": name, "queue_no": number, "is_draining": True}
    if kind == layout.PAUSED or kind == layout.RESUMED:
        return {"fact": name, "queue_no": number}
    if kind == layout.PUBLISHED:
        return {"fact": name, "count": number, "topic": shown(text)}
    if kind == layout.CLOCK_STEPPED:
        return {"fact": name, "delta_ns": number if small == 1 else -number}
    if kind == layout.LATE:
        return {"fact": name, "worker_no": number, "dialect": word(DIALECT_NAMES, small), "wire_id": shown(text)}
    if kind == layout.NOTED:
        return {"fact": name, "count": number, "code": shown(text)}
    return {"fact": name, "number": number, "small": small, "text": shown(text)}


def decode_joined(number: int, dialect: int, text: bytes) -> dict[str, object]:
    """The text is listener, remote, identity in hex, then a `weight queue` per claim, tab separated (texts.worker_text)."""
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
    template = decode_accepted(text, fields.template_at(text), False)
    return {
        "fact": "scheduled",
        "schedule_no": number,
        "next_due_ns": next_due_ns,
        "interval_ns": fields.schedule_interval_ns(text),
        "cron": shown(fields.schedule_cron(text)),
        "runs": fields.schedule_runs(text),
        "queue_no": template["queue_no"],
        "headers": template["headers"],
        "body_size": template["body_size"],
    }


def decode_quarantined(number: int, reason: int, text: bytes) -> dict[str, object]:
    numbers = fields.quarantined_numbers(text)
    fact: dict[str, object] = {
        "fact": "quarantined",
        "message_no": number,
        "reason": word(REASON_NAMES, reason),
        "died_with": numbers[layout.QUARANTINED_DIED_WITH] if numbers else 0,
    }
    if len(numbers) == layout.QUARANTINED_NUMBERS:
        fact["worker_no"] = numbers[layout.QUARANTINED_WORKER_NO]
        fact["attempt"] = numbers[layout.QUARANTINED_ATTEMPT]
        fact["leased_ns"] = numbers[layout.QUARANTINED_LEASED_NS]
        fact["queue_no"] = numbers[layout.QUARANTINED_QUEUE_NO]
        fact["dialect"] = word(DIALECT_NAMES, numbers[layout.QUARANTINED_DIALECT])
        if numbers[layout.QUARANTINED_WORKER_DIALECT] != layout.NO_DIALECT:
            fact["worker_dialect"] = word(DIALECT_NAMES, numbers[layout.QUARANTINED_WORKER_DIALECT])
    if reason == DAMAGED:
        fact["damage"] = shown(fields.quarantined_damage(text))
    return fact


def flag_words(flags: int) -> list[str]:
    words: list[str] = []
    for bit, name in enumerate(FLAG_NAMES):
        if flags >> bit & 1:
            words.append(name)
    return words


def client_id_text(dialect: int, client_id: bytes) -> str:
    """A client's own id as text, as its dialect writes it: rq uses numbers."""
    if dialect == RQ and len(client_id) == 4:
        return str(int.from_bytes(client_id, "big"))
    return shown(client_id)
