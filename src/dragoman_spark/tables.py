"""Every table of the pipeline: the meaning of its rows and columns. docs/reference/tables.md is generated from here.

Silver tables keep the lake's numbers (queue_no, dialects, reasons), which Spark groups at half the cost of words; gold tables have
the words. Times of day are UTC. Durations are milliseconds with a fraction.
"""

from __future__ import annotations

from typing import Final

from dragoman_spark.schemas import Column, Table

_BROKER = Column("broker_id", "long", "the broker, by the first 63 bits of its id", is_key=True)
_QUEUE_NO = Column("queue_no", "int", "the queue; `queues` says its name")
_QUEUE = Column("queue", "string", "name of the queue; `#3` where no fact of the lake names queue 3", is_key=True)
_CLIENT_DIALECT = Column("client_dialect", "string", "what the client spoke", is_key=True)
_WORKER_DIALECT = Column("worker_dialect", "string", "what the worker spoke; null: no worker settled it", is_key=True)
_DATE = Column("date", "date", "day of the fact that makes the row", is_key=True)

EVENTS: Final = Table(
    "events", "silver", "added",
    "One fact that is about no message: starts, names, workers coming and going, pauses, schedules, oddities.",
    (
        _BROKER,
        Column("lsn", "long", "the fact's place", is_key=True),
        Column("kind", "byte", "what happened, by its number"),
        Column("at", "timestamp", "when"),
        Column("worker_no", "long", "the worker that joined, left or was late"),
        Column("queue_no", "int", "the queue that was named, paused or resumed"),
        Column("schedule_no", "long", "the schedule that was made, ended or fired"),
        Column("message_no", "long", "of fired: the message it made"),
        Column("worker_dialect", "byte", "of the worker"),
        Column("reason", "byte", "why"),
        Column("due_at", "timestamp", "of scheduled and fired"),
        Column("count", "long", "as in facts"),
        Column("text", "string", "as in facts"),
    ),
)  # fmt: skip

QUEUES: Final = Table(
    "queues", "silver", "stated",
    "One queue and its name.",
    (
        _BROKER,
        Column("queue_no", "int", "its number", is_key=True),
        Column("queue", "string", "its name"),
        Column("named_at", "timestamp", "when it was first named, as far as the lake goes back"),
        Column("is_paused", "boolean", "paused by the operator, at the lake's end"),
    ),
)  # fmt: skip

PEERS: Final = Table(
    "peers", "silver", "stated",
    "One worker's connection: from joining to leaving, or to the broker's next start.",
    (
        _BROKER,
        Column("worker_no", "long", "its number", is_key=True),
        Column("worker_dialect", "byte", "what it spoke"),
        Column("listener", "string", "where it came in"),
        Column("remote", "string", "its address"),
        Column("identity", "string", "its identity: as text where it is text, else in hex"),
        Column("queues", "strings", "the queues it served last"),
        Column("joined_at", "timestamp", "when it joined"),
        Column("left_at", "timestamp", "when it left; null: still there at the lake's end"),
        Column("reason", "byte", "why it left"),
        Column("connected_ms", "double", "from joining to leaving, or to the lake's end", "ms"),
    ),
)  # fmt: skip

MESSAGES: Final = Table(
    "messages", "silver", "added",
    "One settled message, with its whole timing.",
    (
        _BROKER,
        Column("message_no", "long", "its number", is_key=True),
        _QUEUE_NO,
        Column("client_dialect", "byte", "what its client spoke"),
        Column("worker_dialect", "byte", "what the worker that settled it spoke; null: none did"),
        Column("worker_no", "long", "the worker that settled it; null: none did"),
        Column("attempts", "int", "how often a worker had it"),
        Column("outcome", "byte", "how it ended"),
        Column("reason", "byte", "why"),
        Column("accepted_at", "timestamp", "when the broker took it over"),
        Column("due_at", "timestamp", "not before, as its client asked; null: at once"),
        Column("first_leased_at", "timestamp", "when a worker first had it; null: never"),
        Column("leased_at", "timestamp", "when the attempt began that was under way at its end; null: it waited"),
        Column("delivered_at", "timestamp", "when the worker confirmed that it had begun; null where its dialect has no such message"),
        Column("closed_at", "timestamp", "when it ended"),
        Column("wait_ms", "double", "from accepted (or due, if later) to the first lease; null: never leased", "ms"),
        Column("work_ms", "double", "from the last lease to the end; null: no worker settled it", "ms"),
        Column("total_ms", "double", "from accepted (or due, if later) to the end", "ms"),
        Column("body_size", "int", "of the message", "bytes"),
        Column("reply_size", "int", "of the answer", "bytes"),
        Column("lsn", "long", "of the closing fact"),
        _DATE,
    ),
)  # fmt: skip

ATTEMPTS: Final = Table(
    "attempts", "silver", "added",
    "One attempt that has ended: a message in one worker's hands.",
    (
        _BROKER,
        Column("message_no", "long", "the message", is_key=True),
        Column("attempt", "int", "its number, from 1", is_key=True),
        _QUEUE_NO,
        Column("worker_no", "long", "the worker that had it"),
        Column("client_dialect", "byte", "what the client spoke"),
        Column("worker_dialect", "byte", "the worker's dialect; null if no worker settled the message"),
        Column("leased_at", "timestamp", "when it began"),
        Column("ended_at", "timestamp", "when it ended"),
        Column("held_ms", "double", "from the one to the other", "ms"),
        Column("ended_by", "byte", "the kind of fact that ended it: closed, released or quarantined"),
        Column("outcome", "byte", "how the message ended with it; null: it did not"),
        Column("reason", "byte", "why it ended"),
        Column("is_death", "boolean", "the worker died holding it"),
        Column("lsn", "long", "of the fact that ended it"),
        _DATE,
    ),
)  # fmt: skip

OPEN: Final = Table(
    "open", "silver", "stated",
    "One message that is not settled at the lake's end.",
    (
        _BROKER,
        Column("message_no", "long", "its number", is_key=True),
        _QUEUE_NO,
        Column("client_dialect", "byte", "what its client spoke"),
        Column("accepted_at", "timestamp", "when it was accepted"),
        Column("due_at", "timestamp", "not before: as asked, or as its last release set it; null: at once, as after the operator's retry"),
        Column("expires_at", "timestamp", "when it expires; null: never"),
        Column("state", "string", "waiting, leased or quarantined"),
        Column("attempts", "int", "how often a worker had it"),
        Column("worker_no", "long", "the worker that has it, or had it last"),
        Column("last_reason", "byte", "why its last attempt ended"),
        Column("last_at", "timestamp", "its latest fact"),
        Column("priority", "byte", "0 … 9"),
        Column("body_size", "int", "of the message", "bytes"),
        Column("accepted_lsn", "long", "of its accepted fact"),
        Column("last_lsn", "long", "of its latest fact"),
    ),
)  # fmt: skip

ORPHANS: Final = Table(
    "orphans", "silver", "added",
    "One message number whose facts fit no life. Must be empty, but for lives that began before the lake did.",
    (
        _BROKER,
        Column("message_no", "long", "the number", is_key=True),
        Column("why", "string", "no_accepted, accepted_twice, closed_twice, after_closed, before_accepted; before_lake is no fault"),
        Column("facts", "long", "how many facts name it"),
        Column("first_lsn", "long", "the first of them"),
        Column("last_lsn", "long", "the last of them"),
        Column("first_at", "timestamp", "when the first happened"),
    ),
)  # fmt: skip

QUALITY: Final = Table(
    "quality", "silver", "added",
    "One expectation, tried on one batch.",
    (
        Column("batch", "long", "the batch", is_key=True),
        Column("expectation", "string", "its name", is_key=True),
        Column("rows", "long", "rows that break it; 0 is what is expected"),
        Column("is_fatal", "boolean", "breaking it makes the command fail"),
        Column("example", "string", "one row that breaks it, as JSON; null: none does"),
    ),
)  # fmt: skip

LATENCY: Final = Table(
    "latency", "gold", "counted",
    "How many messages took how long: one bucket of a logarithmic histogram, 32 buckets an octave of microseconds.",
    (
        Column("hour", "timestamp", "hour in which the message ended", is_key=True),
        _QUEUE,
        _CLIENT_DIALECT,
        _WORKER_DIALECT,
        Column("measure", "string", "wait, work or total, as in messages", is_key=True),
        Column("bucket", "int", "0: below 1 µs; n: from 2^((n-1)/32) µs to 2^(n/32) µs", is_key=True),
        Column("messages", "long", "how many"),
    ),
)  # fmt: skip

THROUGHPUT: Final = Table(
    "throughput", "gold", "counted",
    "One minute of one queue and client dialect: what came, what went, and the sums to make means of.",
    (
        Column("minute", "timestamp", "the minute in which it happened", is_key=True),
        _QUEUE,
        _CLIENT_DIALECT,
        Column("accepted", "long", "messages accepted"),
        Column("done", "long", "messages answered"),
        Column("rejected", "long", "messages that failed for good"),
        Column("expired", "long", "messages that expired"),
        Column("cancelled", "long", "messages cancelled"),
        Column("released", "long", "attempts that ended without an end of the message"),
        Column("quarantined", "long", "times a message was set aside"),
        Column("waited", "long", "messages that ended and had been leased: those wait_ms is summed over"),
        Column("wait_ms", "double", "sum of their waits", "ms"),
        Column("worked", "long", "messages that a worker settled: those work_ms is summed over"),
        Column("work_ms", "double", "sum of their work", "ms"),
        Column("body_bytes", "long", "sum of accepted bodies", "bytes"),
        Column("reply_bytes", "long", "sum of answers", "bytes"),
    ),
)  # fmt: skip

FUNNEL: Final = Table(
    "funnel", "gold", "counted",
    "One day of one queue and client dialect: how far messages came. Steps are counted on the day they happened.",
    (
        _DATE,
        _QUEUE,
        _CLIENT_DIALECT,
        Column("accepted", "long", "messages accepted"),
        Column("leased", "long", "messages ended that a worker had at least once"),
        Column("delivered", "long", "messages ended whose worker confirmed that it had begun"),
        Column("done", "long", "messages answered"),
        Column("rejected", "long", "messages that failed for good"),
        Column("expired", "long", "messages that expired"),
        Column("cancelled", "long", "messages cancelled"),
        Column("quarantined", "long", "times a message was set aside"),
        Column("requeued", "long", "times the operator let a message try again at once: one set aside, or one that waited for its next attempt"),
        Column("retried", "long", "messages ended after more than one attempt"),
        Column("retries", "long", "attempts beyond the first of messages ended"),
    ),
)  # fmt: skip

CROSSINGS: Final = Table(
    "crossings", "gold", "counted",
    "One day of one client dialect meeting one worker dialect.",
    (
        _DATE,
        _CLIENT_DIALECT,
        _WORKER_DIALECT,
        Column("messages", "long", "messages ended"),
        Column("done", "long", "of these answered"),
        Column("wait_ms", "double", "sum of waits (of leased ones)", "ms"),
        Column("work_ms", "double", "sum of work", "ms"),
        Column("total_ms", "double", "sum of totals", "ms"),
        Column("body_bytes", "long", "sum of bodies", "bytes"),
        Column("reply_bytes", "long", "sum of answers", "bytes"),
    ),
)  # fmt: skip

WORKERS: Final = Table(
    "workers", "gold", "stated",
    "One worker's connection and what it did.",
    (
        _BROKER,
        Column("worker_no", "long", "its number", is_key=True),
        Column("worker", "string", "its identity, else its address"),
        Column("worker_dialect", "string", "what it spoke"),
        Column("joined_at", "timestamp", "when it joined"),
        Column("left_at", "timestamp", "when it left; null: still there"),
        Column("left_because", "string", "why it left"),
        Column("connected_ms", "double", "how long it was there", "ms"),
        Column("busy_ms", "double", "of that, with at least one message in hand", "ms"),
        Column("idle_ms", "double", "the rest", "ms"),
        Column("utilisation", "double", "busy / connected", "0 … 1"),
        Column("held_mean", "double", "messages in hand on average while connected"),
        Column("attempts", "long", "messages it had in hand, each attempt counted"),
        Column("done", "long", "of these answered"),
        Column("failed", "long", "of these failed, timed out or returned"),
        Column("deaths", "long", "messages it held when it died"),
        Column("work_ms_mean", "double", "held per attempt", "ms"),
    ),
)  # fmt: skip

SLO: Final = Table(
    "slo", "gold", "stated",
    "One objective over one window that ends at the lake's end.",
    (
        Column("objective", "string", "its name in the objectives file", is_key=True),
        Column("queue", "string", "the queue it is for; `*`: all", is_key=True),
        Column("window", "string", "1h, 6h or 3d", is_key=True),
        Column("measure", "string", "wait, work, total, or success"),
        Column("threshold_ms", "double", "at most so long counts as good; null for success", "ms"),
        Column("target", "double", "share that has to be good", "0 … 1"),
        Column("messages", "long", "messages that ended in the window"),
        Column("good", "long", "of these good: answered, and within the threshold"),
        Column("share", "double", "good / messages; null: none ended", "0 … 1"),
        Column("burn_rate", "double", "(1 - share) / (1 - target): above 1 the budget is used up before its time"),
        Column("is_met", "boolean", "share reaches the target"),
    ),
)  # fmt: skip

STUCK: Final = Table(
    "stuck", "gold", "stated",
    "One of the messages that have been open longest, and why.",
    (
        _BROKER,
        Column("message_no", "long", "its number", is_key=True),
        Column("message", "string", "as people see it: boot.count"),
        Column("queue", "string", "its queue"),
        Column("client_dialect", "string", "what its client spoke"),
        Column("state", "string", "waiting, leased or quarantined"),
        Column("age_ms", "double", "since it was accepted (or due, if later)", "ms"),
        Column("attempts", "int", "how often a worker had it"),
        Column("why", "string", "in words: no worker ever served the queue; the queue is paused; delayed until …; held by …"),
    ),
)  # fmt: skip

CAPACITY: Final = Table(
    "capacity", "gold", "stated",
    "One of the next 168 hours of one queue: what is expected, and how many one-slot workers meet the wait objective (Erlang C).",
    (
        Column("hour", "timestamp", "the hour", is_key=True),
        Column("queue", "string", "the queue", is_key=True),
        Column("arrivals_per_s", "double", "expected: mean of the same hour of the week, else of the day, else of all", "1/s"),
        Column("service_ms", "double", "mean work of one message in that queue", "ms"),
        Column("load_erlangs", "double", "arrivals × service: messages in hand on average"),
        Column("wait_objective_ms", "double", "mean wait that is wanted", "ms"),
        Column("workers_needed", "int", "the fewest slots whose mean wait is within the objective"),
        Column("wait_ms", "double", "mean wait with so many", "ms"),
        Column("wait_probability", "double", "share of messages that wait at all with so many", "0 … 1"),
        Column("weeks", "int", "weeks of history behind the forecast of this hour; 0: taken from other hours"),
    ),
)  # fmt: skip

ANOMALIES: Final = Table(
    "anomalies", "gold", "stated",
    "One hour of one queue that is far from what such hours are: a robust seasonal outlier.",
    (
        Column("hour", "timestamp", "the hour", is_key=True),
        Column("queue", "string", "the queue", is_key=True),
        Column("metric", "string", "accepted, failed or wait_ms (mean)", is_key=True),
        Column("value", "double", "what it was"),
        Column("expected", "double", "median of the other hours of its season"),
        Column("spread", "double", "their median absolute deviation × 1.4826, but at least what chance alone would make of it"),
        Column("score", "double", "(value - expected) / spread; listed from 4 on, either side"),
        Column("season", "string", "hour_of_week, or hour_of_day where there are fewer than 4 weeks"),
    ),
)  # fmt: skip

TABLES: Final = (
    EVENTS, QUEUES, PEERS, MESSAGES, ATTEMPTS, OPEN, ORPHANS, QUALITY,
    LATENCY, THROUGHPUT, FUNNEL, CROSSINGS, WORKERS, SLO, STUCK, CAPACITY, ANOMALIES,
)  # fmt: skip
BY_NAME: Final = {table.name: table for table in TABLES}
