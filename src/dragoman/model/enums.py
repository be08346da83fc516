"""The enumerations: every small number in facts, tables and views, with its name.

Journals and lakes store the numbers permanently: add at the end, never renumber, never reuse.
"""

from __future__ import annotations

from typing import Final

# Dialects, of a message's client and of its worker. INTERNAL is the broker itself (a message of a schedule).
INTERNAL: Final = 0
SCALE0: Final = 1
PINGPONG: Final = 2
EMQP: Final = 3
EBUS: Final = 4
RQ: Final = 5
DIALECT_NAMES: Final = ["internal", "scale0", "pingpong", "emqp", "ebus", "rq"]
# Dialects, as bits, whose client's id of a message is its id towards workers too, if no other open message has it.
NAMED_BY_CLIENT: Final = 1 << EMQP
# Numbers of dialects are below this: up to 15 for this package, above that for dialects outside it (dialects/registry). The matrix of
# settlements has a row per client dialect, with a column per worker dialect and one for messages settled by no worker.
DIALECTS_MAX: Final = 32
NOBODY: Final = DIALECTS_MAX
ROW_SIZE: Final = DIALECTS_MAX + 1

# Options of a client, as bits of `Message.flags`.
REPLY_WANTED: Final = 1  # the worker's answer is sent to the client
HANDOVER_WANTED: Final = 2  # the client is notified when a worker has the message
KEPT_WANTED: Final = 4  # the client is notified when the message is kept at the configured durability
GUARANTEED: Final = 8  # failures and timeouts do not settle it: they are retried, then it is quarantined
NO_HASTE: Final = 16  # of a schedule: the first run is at the first due instant, not at once
KEEP_SAME: Final = 32  # of a schedule: declaring it again changes nothing, so programs may do so at each start
# It expires while leased, too. With HANDOVER_WANTED, only until its client was notified of the hand-over.
EXPIRES_HELD: Final = 64
# A failed answer settles it, whatever its retries: those are for workers that die, hang or return it.
FAILURE_FINAL: Final = 128

# The bits of an accepted fact's flags, lowest first.
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

# States of a message (core/lifecycle has their numbers and moves); the outcome of a closed fact is the final state.
STATE_NAMES: Final = ["waiting", "leased", "quarantined", "done", "rejected", "expired", "cancelled"]

# Reasons: the `reason` of closed, released, quarantined, worker_left and other facts.
NO_REASON: Final = 0
ANSWERED: Final = 1
FAILED: Final = 2
TIMED_OUT: Final = 3
WORKER_LOST: Final = 4
WORKER_LEFT: Final = 5
RETURNED: Final = 6
RETRIES_USED_UP: Final = 7
PAST_EXPIRY: Final = 8
BY_CLIENT: Final = 9
BY_OPERATOR: Final = 10
PURGED: Final = 11
REPLY_UNDELIVERABLE: Final = 12
WORKERS_DIED: Final = 13
BROKER_STARTED: Final = 14
HEARTBEAT_LOST: Final = 15
CONNECTION_ENDED: Final = 16
PROTOCOL_FAULT: Final = 17
REFUSED_BY_WORKER: Final = 18
ANSWERED_LATE: Final = 19  # answered by an earlier holder while another one held it
DROPPED: Final = 20
SUPERSEDED: Final = 21
BROKER_STOPPED: Final = 22
DAMAGED: Final = 23  # its record cannot be read from the journal, or differs from what was written
REASON_NAMES: Final = [
    "none",
    "answered",
    "failed",
    "timed_out",
    "worker_lost",
    "worker_left",
    "returned",
    "retries_used_up",
    "past_expiry",
    "by_client",
    "by_operator",
    "purged",
    "reply_undeliverable",
    "workers_died",
    "broker_started",
    "heartbeat_lost",
    "connection_ended",
    "protocol_fault",
    "refused_by_worker",
    "answered_late",
    "dropped",
    "superseded",
    "broker_stopped",
    "damaged",
]

# The `small` of a resumed fact: the queue drains. It leases what waits and accepts nothing until it is resumed again.
DRAINS: Final = 1

# Refusals: why the core did not accept a command. Zero (TAKEN) means accepted.
TAKEN: Final = 0
DRAINING: Final = 1
JOURNAL_FULL: Final = 2
JOURNAL_FAILING: Final = 3
QUEUE_FULL: Final = 4
DUPLICATE: Final = 5
BAD_HEADER: Final = 6
BAD_SCHEDULE: Final = 7
TOO_LONG: Final = 8
NOT_FOUND: Final = 9
WRONG_STATE: Final = 10
TOO_MANY_QUEUES: Final = 11
TOO_MANY_SCHEDULES: Final = 12
INEXPRESSIBLE: Final = 13
QUEUE_CLOSED: Final = 14
TOO_MANY_SERVED: Final = 15
MEMORY_FULL: Final = 16
# The code and the text of each.
REFUSALS: Final = [
    ("TAKEN", "taken"),
    ("DRAINING", "the broker is draining and takes no new work"),
    (
        "JOURNAL_FULL",
        "the journal is full; work already accepted goes on and new work is taken again when there is room",
    ),
    ("JOURNAL_FAILING", "the journal cannot be written to; nothing new is accepted until it can"),
    ("QUEUE_FULL", "the queue holds as many messages as its limit allows"),
    ("DUPLICATE", "a message with this dedupe key was accepted already"),
    ("BAD_HEADER", "a header could not be read"),
    ("BAD_SCHEDULE", "the schedule could not be read"),
    ("TOO_LONG", "a name, id or header is longer than its limit"),
    ("NOT_FOUND", "there is no such thing"),
    ("WRONG_STATE", "it is not in a state that allows this"),
    ("TOO_MANY_QUEUES", "there are as many queues as the limit allows"),
    ("TOO_MANY_SCHEDULES", "there are as many schedules as the limit allows"),
    (
        "INEXPRESSIBLE",
        "no worker of this queue can be sent this body: its protocol would take it for a command of its own",
    ),
    ("QUEUE_CLOSED", "the queue is being emptied and takes no new messages until it is resumed"),
    ("TOO_MANY_SERVED", "a worker names more queues than one worker may serve"),
    (
        "MEMORY_FULL",
        "open messages take as much memory as the broker may use; new ones are taken again when some have ended",
    ),
]
REFUSAL_CODES: Final = [code for code, _ in REFUSALS]
REFUSAL_TEXTS: Final = [text for _, text in REFUSALS]


def name_dialect(number: int, name: str) -> None:
    """Name a dialect that is not in the table; raises ValueError if the number has another name."""
    if not 0 < number < DIALECTS_MAX:
        raise ValueError(f"the number of {name} is {number}; there are 1 to {DIALECTS_MAX - 1}")
    while len(DIALECT_NAMES) <= number:
        DIALECT_NAMES.append(f"unknown_{len(DIALECT_NAMES)}")
    if DIALECT_NAMES[number] not in (name, f"unknown_{number}"):
        raise ValueError(f"{name} and {DIALECT_NAMES[number]} have the same number, {number}")
    DIALECT_NAMES[number] = name


def word(words: list[str], number: int) -> str:
    """The name of a number; `unknown_N` for one that only a later version of dragoman defines."""
    return words[number] if 0 <= number < len(words) else f"unknown_{number}"


def shown(text: bytes) -> str:
    """A peer's bytes as text; bytes that are not UTF-8 become escapes."""
    return text.decode("utf-8", "backslashreplace")
