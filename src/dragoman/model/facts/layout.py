"""The bytes of every record, declared once: kinds, names, fields with their types and offsets, sizes.

A record is `u32 size, u8 kind, …`, little endian; `size` counts the whole record. The instant of a fact is that of its block. Journals store kinds and
offsets permanently: add at the end, never renumber. A field that was added later is missing in records of older journals (`fields.reaches`).

To add a fact, add its kind, its entry in FACTS, and offsets if it has fields of its own. `model/facts/records` writes records and
`model/facts/fields` reads them, both by these names; docs/reference/facts.md is generated from FACTS and STORAGE (tests/docs/reference_pages);
tests/model/facts/test_layout.py checks that all of them agree, and tests/model/facts/test_readers.py that every other reader handles or
ignores each kind.
"""

from __future__ import annotations

from typing import Final, final

BOOT_SHIFT: Final = 40  # a message's, worker's or schedule's number is boot_no << 40 | count: it never repeats
NO_DIALECT: Final = 255  # of a worker that is known by its number only

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
QUEUE_FORGOTTEN: Final = 21

# Storage, never facts: they take no lsn and never reach the lake.
CHECKPOINT: Final = 200  # the first of them
CARRIED: Final = 201
KEYED: Final = 202

# Offsets in a record. Each name is `<KIND>_<FIELD>`.
KIND: Final = 4
HEAD_SIZE: Final = 5  # of every record

# Most facts have one shape: two numbers and a text.
NUMBER: Final = 5  # also what leased, released and closed begin with: the message's
SMALL: Final = 13
TEXT: Final = 21

ACCEPTED_DIALECT: Final = 5
ACCEPTED_FLAGS: Final = 6
ACCEPTED_PRIORITY: Final = 7
ACCEPTED_MESSAGE_NO: Final = 8
ACCEPTED_QUEUE_NO: Final = 16
ACCEPTED_RETRIES_LEFT: Final = 20
ACCEPTED_TIMEOUT_NS: Final = 24
ACCEPTED_EXPIRES_NS: Final = 32
ACCEPTED_DUE_NS: Final = 40
ACCEPTED_SCHEDULE_NO: Final = 48
ACCEPTED_CLIENT_ID_SIZE: Final = 56
ACCEPTED_ADDRESS_SIZE: Final = 57
ACCEPTED_DEDUPE_SIZE: Final = 58
ACCEPTED_HEADERS_SIZE: Final = 59
ACCEPTED_CRC_SIZE: Final = 62
ACCEPTED_FIXED: Final = 63  # bytes before the client id
HEADERS_MASK: Final = 0xFFFFFF  # u24: headers are at most limits.HEADERS_SIZE_MAX
CRC_SIZE_SHIFT: Final = 24  # of the CRC's size in the word that begins with the size of the headers
CRC_SIZE: Final = 4

LEASED_WORKER_NO: Final = 13
LEASED_ATTEMPT: Final = 21
LEASED_SIZE: Final = 25

RELEASED_WORKER_NO: Final = 13
RELEASED_ATTEMPT: Final = 21
RELEASED_RETRIES_LEFT: Final = 25
RELEASED_DUE_NS: Final = 29
RELEASED_REASON: Final = 37
RELEASED_IS_DEATH: Final = 38
RELEASED_LEASED_NS: Final = 39  # where records of older journals end
RELEASED_QUEUE_NO: Final = 47
RELEASED_DIALECT: Final = 51
RELEASED_WORKER_DIALECT: Final = 52
RELEASED_SIZE: Final = 53

CLOSED_WORKER_NO: Final = 13
CLOSED_ATTEMPT: Final = 21
CLOSED_QUEUE_NO: Final = 25
CLOSED_ACCEPTED_NS: Final = 29
CLOSED_FIRST_LEASED_NS: Final = 37
CLOSED_LEASED_NS: Final = 45
CLOSED_DELIVERED_NS: Final = 53
CLOSED_BODY_SIZE: Final = 61
CLOSED_REPLY_SIZE: Final = 65
CLOSED_OUTCOME: Final = 69
CLOSED_REASON: Final = 70
CLOSED_DIALECT: Final = 71
CLOSED_WORKER_DIALECT: Final = 72
CLOSED_DUE_NS: Final = 73  # where records of older journals end
CLOSED_HOLDER_NO: Final = 81
CLOSED_SIZE: Final = 81
CLOSED_SIZE_WITH_HOLDER: Final = 89

FIRED_MESSAGE_NO: Final = 21
FIRED_NEXT_DUE_NS: Final = 29
FIRED_RUNS_LEFT: Final = 37

# Offsets in the text of a scheduled fact, which a checkpoint keeps too.
SCHEDULE_INTERVAL_NS: Final = 0
SCHEDULE_RUNS: Final = 8
SCHEDULE_CRON_SIZE: Final = 12
SCHEDULE_CRON: Final = 16

CHECKPOINT_CHUNK: Final = 5
CARRIED_ACCEPTED_NS: Final = 5
CARRIED_RECORD: Final = 13
KEYED_FIRST: Final = 5
KEYED_KEY: Final = 13

# The numbers in the text of a quarantined fact, by their position.
QUARANTINED_DIED_WITH: Final = 0
QUARANTINED_WORKER_NO: Final = 1
QUARANTINED_ATTEMPT: Final = 2
QUARANTINED_LEASED_NS: Final = 3
QUARANTINED_QUEUE_NO: Final = 4
QUARANTINED_DIALECT: Final = 5
QUARANTINED_WORKER_DIALECT: Final = 6
QUARANTINED_NUMBERS: Final = 7

FIELD_SIZES: Final = {"u8": 1, "u24": 3, "i32": 4, "i64": 8}
SIGNED_SIZE_MIN: Final = 4  # fields of this size and larger are signed


@final
class Field:
    """One field of fixed size. `type_name` is a key of FIELD_SIZES."""

    def __init__(self, at: int, type_name: str, name: str, about: str = "") -> None:
        self.at = at
        self.type_name = type_name
        self.name = name
        self.about = about


@final
class Layout:
    """One kind of record. `rest`: what follows the fields; `notes`: what else a reader of the bytes has to know."""

    def __init__(self, kind: int, name: str, about: str, fields: list[Field], rest: str = "", notes: str = "") -> None:
        self.kind = kind
        self.name = name
        self.about = about
        self.fields = fields
        self.rest = rest
        self.notes = notes
        self.is_numbered = False  # it has the shape of most facts: number, small, text

    def rest_at(self) -> int:
        """The bytes before `rest`."""
        last = self.fields[-1]
        return last.at + FIELD_SIZES[last.type_name]


def numbered(kind: int, name: str, number: str, small: str, text: str, about: str = "") -> Layout:
    """A fact of the shape of most; its three parts by what they are."""
    found = Layout(kind, name, about, [Field(NUMBER, "i64", number), Field(SMALL, "i64", small)], text)
    found.is_numbered = True
    return found


# Every fact, by its kind from 1 on.
FACTS: Final = [
    numbered(
        STARTED, "started", "boot_no", "0", "version of the broker",
        "Ends every session and every lease of the boot before; such ends count neither as retries nor towards quarantine",
    ),
    numbered(
        QUEUE_NAMED, "queue_named", "queue_no", "0", "the name",
        "A queue begins when it is first named by a client or a worker; each start names all known ones again",
    ),
    numbered(
        WORKER_JOINED, "worker_joined", "worker_no", "dialect",
        "listener, remote address, identity in hex, then `weight queue` for each queue; tab separated",
        "Written again when the worker changes what it serves",
    ),
    numbered(WORKER_LEFT, "worker_left", "worker_no", "reason", ""),
    Layout(
        ACCEPTED, "accepted",
        "A message was taken over from its client, with everything the client asked for. From here on it is kept.",
        [
            Field(ACCEPTED_DIALECT, "u8", "dialect", "of the client"),
            Field(ACCEPTED_FLAGS, "u8", "flags", "what the client asked for; see below"),
            Field(ACCEPTED_PRIORITY, "u8", "priority", "0 … 9"),
            Field(ACCEPTED_MESSAGE_NO, "i64", "message_no"),
            Field(ACCEPTED_QUEUE_NO, "i32", "queue_no"),
            Field(ACCEPTED_RETRIES_LEFT, "i32", "retries_left", "further attempts after a failed one; -1: the client did not say"),
            Field(ACCEPTED_TIMEOUT_NS, "i64", "timeout_ns", "bound on one attempt; 0: none"),
            Field(ACCEPTED_EXPIRES_NS, "i64", "expires_ns", "instant after which it is not worth delivering; 0: never"),
            Field(ACCEPTED_DUE_NS, "i64", "due_ns", "not before this instant; 0: at once"),
            Field(ACCEPTED_SCHEDULE_NO, "i64", "schedule_no", "the schedule that made it; 0: a client did"),
            Field(ACCEPTED_CLIENT_ID_SIZE, "u8", "n1", "size of the client id"),
            Field(ACCEPTED_ADDRESS_SIZE, "u8", "n2", "size of the reply address"),
            Field(ACCEPTED_DEDUPE_SIZE, "u8", "n3", "size of the dedupe key"),
            Field(ACCEPTED_HEADERS_SIZE, "u24", "n4", "size of the headers"),
            Field(ACCEPTED_CRC_SIZE, "u8", "n5", "size of the CRC: 4; 0 in journals of version 1 and in templates of schedules"),
        ],
        "client id (n1) · reply address (n2) · dedupe key (n3) · headers (n4) · body (the rest) · CRC (n5)",
        """\
The CRC-32 is of all bytes of the record before it, its size included. It is checked, together with the message number, whenever the record is read again
to deliver the body.

The reply address is one byte for the listener and the peer's identity there; for an anonymous peer that byte has its top bit set, and boot and connection
number. An identity of 255 bytes is shortened: one byte 0, the listener's, the first 221 bytes of the identity and its SHA-256. The address finds the client again
after a restart.""",
    ),
    Layout(
        LEASED, "leased", "A worker has the message: attempt number `attempt`, counted from 1.",
        [
            Field(NUMBER, "i64", "message_no"),
            Field(LEASED_WORKER_NO, "i64", "worker_no"),
            Field(LEASED_ATTEMPT, "i32", "attempt"),
        ],
    ),
    numbered(DELIVERED, "delivered", "message_no", "worker_no", "", "Only where a dialect's worker says that it has begun"),
    Layout(
        RELEASED, "released",
        "An attempt ended without an end of the message: it waits again, from `due_ns` on (0: at once).",
        [
            Field(NUMBER, "i64", "message_no"),
            Field(RELEASED_WORKER_NO, "i64", "worker_no"),
            Field(RELEASED_ATTEMPT, "i32", "attempt", "the one that ended"),
            Field(RELEASED_RETRIES_LEFT, "i32", "retries_left", "what is left now"),
            Field(RELEASED_DUE_NS, "i64", "due_ns"),
            Field(RELEASED_REASON, "u8", "reason"),
            Field(RELEASED_IS_DEATH, "u8", "is_death", "1: the worker died holding it, which counts towards quarantine"),
            Field(RELEASED_LEASED_NS, "i64", "leased_ns", "when the attempt began"),
            Field(RELEASED_QUEUE_NO, "i32", "queue_no"),
            Field(RELEASED_DIALECT, "u8", "dialect", "of the client"),
            Field(RELEASED_WORKER_DIALECT, "u8", "worker_dialect", f"{NO_DIALECT}: not known"),
        ],
        notes=f"""\
After a start it is written for every lease that the boot before left (reason `broker_started`), behind the `started` fact that ended them.
Records of older journals end at {RELEASED_LEASED_NS}.""",
    ),
    Layout(
        CLOSED, "closed",
        "The message is settled. The fact carries the whole timing, so that most questions about the past need no other fact.",
        [
            Field(NUMBER, "i64", "message_no"),
            Field(CLOSED_WORKER_NO, "i64", "worker_no", "the worker that settled it; 0: none"),
            Field(CLOSED_ATTEMPT, "i32", "attempt", "how many there were"),
            Field(CLOSED_QUEUE_NO, "i32", "queue_no"),
            Field(CLOSED_ACCEPTED_NS, "i64", "accepted_ns"),
            Field(CLOSED_FIRST_LEASED_NS, "i64", "first_leased_ns", "0: never"),
            Field(CLOSED_LEASED_NS, "i64", "leased_ns", "the attempt that ends with it; 0: it was not leased"),
            Field(CLOSED_DELIVERED_NS, "i64", "delivered_ns", "0 where the dialect has no word for it"),
            Field(CLOSED_BODY_SIZE, "i32", "body_size"),
            Field(CLOSED_REPLY_SIZE, "i32", "reply_size", "answers themselves are not kept"),
            Field(CLOSED_OUTCOME, "u8", "outcome", "done 3 · rejected 4 · expired 5 · cancelled 6"),
            Field(CLOSED_REASON, "u8", "reason"),
            Field(CLOSED_DIALECT, "u8", "dialect", "of the client"),
            Field(CLOSED_WORKER_DIALECT, "u8", "worker_dialect"),
            Field(CLOSED_DUE_NS, "i64", "due_ns", "not before this instant, as its client asked; 0: at once"),
            Field(CLOSED_HOLDER_NO, "i64", "holder_no", "only if this worker held it and did not settle it"),
        ],
        notes=f"Records of older journals end at {CLOSED_DUE_NS}, and their `leased_ns` is that of the last attempt, also where it had ended before.",
    ),
    numbered(
        QUARANTINED, "quarantined", "message_no", "reason",
        "decimal numbers, separated by spaces: the worker whose death decided it (0: none), worker_no, attempt, leased_ns, queue_no, client "
        "dialect, worker dialect; older journals have the first only. Where the reason is `damaged` it waited and no worker had it: worker_no "
        "and leased_ns are 0, and behind a space follow file, offset and cause in words",
    ),
    numbered(
        REQUEUED, "requeued", "message_no", "queue_no",
        "decimal numbers, separated by spaces: client dialect, 1 if it waited for its next attempt and was not quarantined; older journals "
        "have the first only",
        "The operator lets a quarantined message try again, or one that waits for its next attempt go on at once",
    ),
    Layout(
        SCHEDULED, "scheduled", "A schedule was made.",
        [
            Field(NUMBER, "i64", "schedule_no"),
            Field(SMALL, "i64", "next_due_ns"),
            Field(TEXT + SCHEDULE_INTERVAL_NS, "i64", "interval_ns"),
            Field(TEXT + SCHEDULE_RUNS, "i32", "runs", "-1: for ever"),
            Field(TEXT + SCHEDULE_CRON_SIZE, "i32", "n", "size of the cron expression"),
        ],
        "cron expression (n) · the template as an `accepted` record",
    ),
    numbered(UNSCHEDULED, "unscheduled", "schedule_no", "reason", ""),
    Layout(
        FIRED, "fired", "A due instant of a schedule. Its message's `accepted` stands in the same block.",
        [
            Field(NUMBER, "i64", "schedule_no"),
            Field(SMALL, "i64", "due_ns"),
            Field(FIRED_MESSAGE_NO, "i64", "message_no", "0: skipped"),
            Field(FIRED_NEXT_DUE_NS, "i64", "next_due_ns"),
            Field(FIRED_RUNS_LEFT, "i64", "runs_left", "-1: for ever"),
        ],
    ),
    numbered(PAUSED, "paused", "queue_no", "0", ""),
    numbered(
        RESUMED, "resumed", "queue_no", "0; 1: it drains", "",
        "A queue that drains gives out what waits and takes nothing new until the next `resumed` or `paused`",
    ),
    numbered(
        PUBLISHED, "published", "how many", "0", "topic",
        "One fact per topic and second; topics beyond 1000 a second share an empty one",
    ),
    numbered(
        CLOCK_STEPPED, "clock_stepped", "nanoseconds", "1 forward, 0 back", "", "The wall clock jumped against the monotonic one",
    ),
    numbered(
        LATE, "late", "worker_no", "dialect", "id of the message it named", "An answer that came too late, or to nothing; dropped",
    ),
    numbered(
        NOTED, "noted", "how many", "0", "code of an oddity peers did (an unknown command …)", "One fact per code and second",
    ),
    numbered(
        QUEUE_FORGOTTEN, "queue_forgotten", "queue_no",
        "reason: `none` when it was not used for `queues.forget_s`, `by_operator`", "its name",
        "Its number is never used again: who names it once more makes another queue",
    ),
]  # fmt: skip

FACT_NAMES: Final = ["", *[fact.name for fact in FACTS]]

STORAGE: Final = [
    Layout(CHECKPOINT, "checkpoint", "A part of the durable state; see [the journal](journal.md)", [], "one chunk"),
    Layout(
        CARRIED, "carried", "A live message copied out of an old segment",
        [Field(CARRIED_ACCEPTED_NS, "i64", "accepted_ns")],
        "the `accepted` record as it was (one of version 1 gets its CRC)",
    ),
    Layout(
        KEYED, "keyed", "The key of ids; see [the journal](journal.md#record)",
        [Field(KEYED_FIRST, "i64", "first")], "key (16)",
    ),
]  # fmt: skip
