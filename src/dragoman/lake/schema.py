"""The schema of the lake: every column of the `facts` table, with its type, unit and meaning. Standard library only.

Arrow's types (lake/arrow) and Spark's (dragoman_spark.schemas) are derived from it, and docs/reference/lake.md is generated from it.

The rule for changing it: a column is added at the end, may be null, and raises VERSION; none is removed, renamed, retyped or given
another meaning. So a reader of version n reads every file of version ≤ n (a column that a file lacks is null) and refuses newer
ones. Every file has its version in its metadata (`dragoman.schema_version`).

A row is a fact. A value that a fact does not have is null, never 0 and never "". Instants are microseconds, UTC.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from typing import Final, Literal

from dragoman.model.enums import DIALECT_NAMES, REASON_NAMES, STATE_NAMES
from dragoman.model.facts.layout import FACT_NAMES

VERSION: Final = 1
VERSION_KEY: Final = "dragoman.schema_version"
BROKER_KEY: Final = "dragoman.broker_id"  # all 16 bytes, in hex; the column has 63 bits of them

Type = Literal["byte", "short", "int", "long", "boolean", "timestamp", "string", "binary"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its type, whether every fact has it, and its meaning."""

    name: str
    type: Type
    about: str
    is_required: bool = False


COLUMNS: Final = (
    Column("broker_id", "long", "the broker, by the first 63 bits of its id", True),
    Column("lsn", "long", "the fact's place in the row of all facts of its broker; strictly rising, from 1", True),
    Column("kind", "byte", "what happened, by its number", True),
    Column("at", "timestamp", "when", True),
    Column("message_no", "long", "the message it is about"),
    Column("worker_no", "long", "the worker: who has it, had it, settled it, joined or left"),
    Column("holder_no", "long", "of closed: the worker that held it, if it did not settle it"),
    Column("queue_no", "int", "the queue; `queue_named` facts say its name"),
    Column("schedule_no", "long", "the schedule that made the message, was made, ended or fired"),
    Column("attempt", "int", "number of the attempt, from 1; of closed: how many there were"),
    Column("client_dialect", "byte", "of the message's client, by its number"),
    Column("worker_dialect", "byte", "of the worker, by its number"),
    Column("outcome", "byte", "of closed: the end, by its number"),
    Column("reason", "byte", "why, by its number"),
    Column("is_death", "boolean", "of released: the worker died holding it"),
    Column("retries_left", "int", "of accepted (null: the client did not say) and released"),
    Column("priority", "byte", "of accepted: 0 … 9"),
    Column("flags", "short", "of accepted: what the client asked for, as bits"),
    Column("timeout_us", "long", "of accepted: bound on one attempt, microseconds"),
    Column("expires_at", "timestamp", "of accepted: after this instant it is not worth delivering"),
    Column("due_at", "timestamp", "of accepted and closed: not before, as its client asked; of released: waits until; of fired, scheduled: due"),
    Column("accepted_at", "timestamp", "of closed: when it was accepted"),
    Column("first_leased_at", "timestamp", "of closed: when a worker first had it"),
    Column("leased_at", "timestamp", "of closed, released, quarantined: when the attempt that ends here began; null: closed while it waited"),
    Column("delivered_at", "timestamp", "of closed: when the worker confirmed that it had begun (rq)"),
    Column("body_size", "int", "of accepted and closed, bytes"),
    Column("reply_size", "int", "of closed: bytes of the answer"),
    Column("body_hash", "long", "of accepted: 64 bits of the body's BLAKE2b; null where `lake.bodies` is none"),
    Column("body", "binary", "of accepted: the body; null unless `lake.bodies` is full"),
    Column("client_id", "string", "of accepted: the id its client gave it"),
    Column("count", "long", "started: boot_no; published, noted: how many; clock_stepped: nanoseconds, negative back; fired: runs left"),
    Column(
        "text",
        "string",
        "started: version; queue_named, queue_forgotten: the name; worker_joined: listener, remote, identity in hex, then `weight queue` each, tab "
        "separated; published: topic; late: the id it named; noted: the code; scheduled: cron expression",
    ),
)  # fmt: skip

# The meaning of the small numbers. They never change: a number that is missing here is from a later version.
KINDS: Final = {number: name for number, name in enumerate(FACT_NAMES) if name}
if os.environ.get("DRAGOMAN_DIALECTS"):  # it names those outside the package
    importlib.import_module("dragoman.dialects.registry")
DIALECTS: Final = {number: name for number, name in enumerate(DIALECT_NAMES) if name != f"unknown_{number}"}
OUTCOMES: Final = dict(enumerate(STATE_NAMES))
REASONS: Final = dict(enumerate(REASON_NAMES))
