"""A message's facts from the lake, in the format that `model/facts/decode` uses for the journal's: for facts that the journal no longer keeps.

A fact in the lake has less than its record: no client address, dedupe key or headers, and instants are
microseconds. Files whose statistics show that they have nothing about a message are not read.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from dragoman.lake.layout import Share, broker_name, cover
from dragoman.lake.schema import DIALECTS, KINDS, OUTCOMES, REASONS
from dragoman.lake.store import Lake
from dragoman.model.enums import shown
from dragoman.model.facts.decode import decode_joined, flag_words
from dragoman.model.facts.index import NUMBER_MAX
from dragoman.model.facts.layout import ACCEPTED, LATE, QUEUE_NAMED, STARTED, WORKER_JOINED
from dragoman.model.message import fact_id

Fact = dict[str, Any]
Row = dict[str, Any]
Readers = dict[str, Callable[[Row], object]]

EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND: Final = datetime.timedelta(microseconds=1)


def number(column: str, absent: int = 0) -> Callable[[Row], int]:
    return lambda row: absent if row[column] is None else int(row[column])


def instant_ns(column: str) -> Callable[[Row], int]:
    return lambda row: 0 if row[column] is None else (row[column] - EPOCH) // MICROSECOND * 1000


def word(column: str, words: dict[int, str]) -> Callable[[Row], str]:
    """The name of a number; a later dragoman may have more names than this one."""
    return lambda row: "" if row[column] is None else words.get(row[column], f"unknown_{row[column]}")


def text(column: str) -> Callable[[Row], str]:
    return lambda row: row[column] or ""


MESSAGE: Final[Readers] = {"message_no": number("message_no")}
WORKER: Final[Readers] = {"worker_no": number("worker_no")}
ATTEMPT: Final[Readers] = MESSAGE | WORKER | {"attempt": number("attempt")}
QUEUE: Final[Readers] = {"queue_no": number("queue_no"), "dialect": word("client_dialect", DIALECTS)}
SIDES: Final[Readers] = QUEUE | {"worker_dialect": word("worker_dialect", DIALECTS)}
WHY: Final[Readers] = {"reason": word("reason", REASONS)}

# The fields of each kind of fact, and their columns.
FIELDS: Final[dict[str, Readers]] = {
    "started": {"boot_no": number("count"), "version": text("text")},
    "queue_named": {"queue_no": number("queue_no"), "queue": text("text")},
    "queue_forgotten": {"queue_no": number("queue_no"), "queue": text("text")} | WHY,
    "accepted": MESSAGE | QUEUE | {
        "flags": lambda row: flag_words(row["flags"] or 0),
        "priority": number("priority"),
        "retries_left": number("retries_left", -1),
        "timeout_ns": lambda row: (row["timeout_us"] or 0) * 1000,
        "expires_ns": instant_ns("expires_at"),
        "due_ns": instant_ns("due_at"),
        "schedule_no": number("schedule_no"),
        "client_id": text("client_id"),
        "body_size": number("body_size"),
    },
    "leased": ATTEMPT,
    "delivered": MESSAGE | WORKER,
    "released": ATTEMPT | SIDES | WHY | {
        "retries_left": number("retries_left", -1),
        "due_ns": instant_ns("due_at"),
        "is_death": lambda row: bool(row["is_death"]),
        "leased_ns": instant_ns("leased_at"),
    },
    "closed": ATTEMPT | SIDES | WHY | {
        "accepted_ns": instant_ns("accepted_at"),
        "first_leased_ns": instant_ns("first_leased_at"),
        "leased_ns": instant_ns("leased_at"),
        "delivered_ns": instant_ns("delivered_at"),
        "body_size": number("body_size"),
        "reply_size": number("reply_size"),
        "outcome": word("outcome", OUTCOMES),
        "due_ns": instant_ns("due_at"),
    },
    "quarantined": ATTEMPT | SIDES | WHY | {"leased_ns": instant_ns("leased_at")},
    "requeued": MESSAGE | QUEUE,
    "fired": MESSAGE | {
        "schedule_no": number("schedule_no"),
        "due_ns": instant_ns("due_at"),
        "runs_left": number("count"),
    },
    "late": WORKER | {"dialect": word("worker_dialect", DIALECTS), "wire_id": text("text")},
}  # fmt: skip


def facts_of(root: str, broker_id: bytes | None, client_id: bytes, numbers: set[int]) -> list[Fact]:
    """All facts in the lake about one broker's messages: those with these numbers, and those with this client id, whose numbers are added
    to `numbers`; plus the other facts that their histories need. In lsn order."""
    lake = Lake(root)
    broker = broker_name(broker_id) if broker_id is not None else None
    shares = cover(lake.parts("incoming", broker), lake.parts("history", broker))
    if client_id:
        by_client: dict[str, set[Any]] = {"kind": {ACCEPTED}, "client_id": {shown(client_id)}}
        numbers |= {row["message_no"] for row in rows_of(lake, shares, [by_client], ["message_no"])}
    rows = list(rows_of(lake, shares, [{"message_no": {number for number in numbers if number <= NUMBER_MAX}}]))
    if not rows:
        return []
    rows += rows_of(lake, shares, others_needed(rows))
    return [fact_of(row) for row in sorted(rows, key=lambda row: int(row["lsn"]))]


def others_needed(rows: list[Row]) -> list[dict[str, set[Any]]]:
    """Filters for the facts without a message that these histories need: starts, late replies, names."""
    ids = {row["client_id"] for row in rows} | {fact_id(row["message_no"]).decode() for row in rows}
    return [
        {"kind": {STARTED}},
        {"kind": {LATE}, "text": ids - {None}},
        {"kind": {QUEUE_NAMED}, "queue_no": {row["queue_no"] for row in rows} - {None}},
        {"kind": {WORKER_JOINED}, "worker_no": {row["worker_no"] for row in rows} - {None}},
    ]


def rows_of(
    lake: Lake, shares: Iterable[Share], filters: list[dict[str, set[Any]]], columns: list[str] | None = None
) -> Iterator[Row]:
    """Rows that match any of the filters: in a filter, each named column must have one of the given values."""
    for share in shares:
        yield from lake.select(share, filters, columns)


def fact_of(row: Row) -> Fact:
    """A row as a fact of `model/facts/decode`, with its source."""
    kind = row["kind"]
    name = KINDS.get(kind, f"unknown_{kind}")
    if kind == WORKER_JOINED:
        fact: Fact = decode_joined(row["worker_no"], row["worker_dialect"], (row["text"] or "").encode())
    else:
        fact = {"fact": name} | {field: read(row) for field, read in FIELDS.get(name, MESSAGE).items()}
    if row["holder_no"] is not None:
        fact["holder_no"] = row["holder_no"]
    return fact | {"lsn": row["lsn"], "time_ns": instant_ns("at")(row), "source": "lake"}
