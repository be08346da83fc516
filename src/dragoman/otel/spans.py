"""The spans of a message: one for its whole life, and below it its waits, each worker's lease and work, and the reply.

    message   accepted ──────────────────────────────────────────────── closed      below the client's span, if it sent one
      wait    accepted (or due) ── leased
      work                         leased ── released                               has a link to the attempt before
      wait                                   released ── leased
      lease                                              leased ── delivered         only if the worker reports that it has begun
      work                                                         delivered ── closed
      reply                                                            closed       the instant the reply was kept and sent

A span is made when it ends, from the fact that ends it, which has the whole timing (docs/reference/facts.md). Names of attributes are
those of OpenTelemetry's semantic conventions for messaging, or `dragoman.…` where these have none.

The client's span comes from `traceparent` (W3C Trace Context) in the message's headers:

    traceparent:00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
                │  trace id                         the client's span │
                version                                               flags: 1 = sampled

eMQP clients send it among their headers. A Scale0 client's comes first in the stored headers, before the client's original id
(dialects/traceparent), and nowhere else. Anything malformed is ignored: the message then has a trace of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from dragoman.model.phrases import number_text

# OTLP's numbers.
INTERNAL, CLIENT, PRODUCER, CONSUMER = 1, 3, 4, 5
UNSET, OK, ERROR = 0, 1, 2
# The kind of a span; part of its id, so never renumber.
MESSAGE, WAIT, WORK, REPLY, LEASE = 0, 1, 2, 3, 4
TRACE_ID_SIZE: Final = 16
SPAN_ID_SIZE: Final = 8

VERSION_00: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
IS_SAMPLED: Final = 1
# A cancelled message is neither a success nor an error.
ENDS: Final = {"done": OK, "rejected": ERROR, "expired": ERROR}
WORK_ENDS: Final = {"done": OK, "rejected": ERROR}
# Reasons why an attempt ends without an error of the work.
CALM_REASONS: Final = frozenset({"returned", "worker_left", "broker_started", "broker_stopped"})
UNSENT_REASONS: Final = frozenset({"reply_undeliverable"})
# The operations that the conventions define; a wait and a lease are none of them.
OPERATION_TYPES: Final = {"message": "receive", "work": "process", "reply": "send"}

Fact = dict[str, Any]
Attributes = dict[str, str | int]


class Context(NamedTuple):
    """The trace and span of the client that a message continues."""

    trace_id: bytes
    span_id: bytes
    is_sampled: bool


def context_of(dialect: str, headers: bytes) -> Context | None:
    """The context of a message accepted with these headers; other dialects' headers are not set by their clients."""
    if dialect == "scale0":
        return find_context(headers.partition(b",")[0]) if headers.startswith(b"traceparent:") else None
    return find_context(headers) if dialect in ("emqp", "internal") else None


def find_context(headers: bytes) -> Context | None:
    """The first `traceparent` of an eMQP header text."""
    for item in headers.split(b","):
        name, _, value = item.partition(b":")
        if name.strip().lower() == b"traceparent":
            return read_traceparent(value.strip())
    return None


def read_traceparent(text: bytes) -> Context | None:
    found = VERSION_00.fullmatch(text)
    if found is None or found[1] == b"ff" or (found[1] == b"00" and found[5] is not None):
        return None
    trace_id, span_id = bytes.fromhex(found[2].decode()), bytes.fromhex(found[3].decode())
    if not any(trace_id) or not any(span_id):
        return None
    return Context(trace_id, span_id, bool(int(found[4], 16) & IS_SAMPLED))


class Ids:
    """Trace and span ids of one broker, derived from values that never change in the journal: the broker's id, the message's number, the attempt.

    The same fact always gives the same ids. So spans sent again after a crash are the same spans to every collector, and the link to an
    earlier attempt needs no stored state.
    """

    def __init__(self, broker_id: bytes) -> None:
        self._trace = blake2b(broker_id, digest_size=TRACE_ID_SIZE, person=b"dragoman trace")
        self._span = blake2b(broker_id, digest_size=SPAN_ID_SIZE, person=b"dragoman span")

    def trace_id(self, message_no: int) -> bytes:
        """The trace id of a message whose client sent none."""
        made = self._trace.copy()
        made.update(message_no.to_bytes(8, "little"))
        return made.digest()

    def span_id(self, message_no: int, kind: int, attempt: int = 0) -> bytes:
        made = self._span.copy()
        made.update(message_no.to_bytes(8, "little") + bytes([kind]) + attempt.to_bytes(4, "little"))
        return made.digest()


class SpanId(NamedTuple):
    """A span that another one refers to."""

    trace_id: bytes
    span_id: bytes


@dataclass(slots=True)
class Span:
    """One span to send."""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    name: str
    kind: int
    start_ns: int
    end_ns: int
    attributes: Attributes
    status: int = UNSET
    problem: str = ""
    is_parent_remote: bool = False
    links: list[SpanId] = field(default_factory=list)


class Subject(NamedTuple):
    """The message of a span, as far as it is known."""

    number: int
    queue: str
    dialect: str
    client_id: str
    context: Context | None


class SpanMaker:
    """Makes the spans of one broker's messages."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    def message(self, subject: Subject, closed: Fact) -> Span:
        """The span from acceptance to the end."""
        outcome, reason = closed["outcome"], closed["reason"]
        accepted_ns = closed["accepted_ns"] or closed["time_ns"]
        span = self._span(subject, "message", MESSAGE, 0, CONSUMER, accepted_ns, closed["time_ns"])
        context = subject.context
        span.parent_id = context.span_id if context is not None else b""
        span.is_parent_remote = context is not None
        span.attributes |= {
            "messaging.message.body.size": closed["body_size"],
            "dragoman.outcome": outcome,
            "dragoman.reason": reason,
            "dragoman.attempts": closed["attempt"],
        }
        if subject.client_id:
            span.attributes["dragoman.client.message.id"] = subject.client_id
        self._judge(span, ENDS.get(outcome, UNSET), reason)
        return span

    def first_wait(self, subject: Subject, closed: Fact) -> Span | None:
        """The wait until the first lease, or until the message ended without one; None if it ended before it was due."""
        begins_ns = max(closed["accepted_ns"], closed.get("due_ns", 0))
        ends_ns = closed["first_leased_ns"] or closed["time_ns"]
        if not begins_ns or ends_ns < begins_ns:
            return None
        return self.wait(subject, 1, begins_ns, ends_ns)

    def wait(self, subject: Subject, attempt: int, begins_ns: int, ends_ns: int) -> Span:
        span = self._span(subject, "wait", WAIT, attempt, INTERNAL, begins_ns, ends_ns)
        span.attributes["dragoman.attempt"] = attempt
        return span

    def lease(self, subject: Subject, fact: Fact, worker_no: int, worker: str, delivered_ns: int) -> Span:
        """From the lease to the worker's report that it had begun, in the attempt that `fact` ended."""
        span = self._span(subject, "lease", LEASE, fact["attempt"], INTERNAL, fact["leased_ns"], delivered_ns)
        self._name_attempt(span, fact["attempt"], worker_no, worker)
        return span

    def work_ended(self, subject: Subject, fact: Fact, worker: str, delivered_ns: int) -> Span:
        """An attempt that `released` or `quarantined` ended; these facts do not say when the worker had begun."""
        span = self._work(subject, fact["attempt"], fact["worker_no"], worker, fact, delivered_ns)
        span.attributes["dragoman.reason"] = fact["reason"]
        self._judge(span, UNSET if fact["reason"] in CALM_REASONS else ERROR, fact["reason"])
        return span

    def work_closed(self, subject: Subject, closed: Fact, worker: str) -> Span:
        """The attempt that ended with the message."""
        settler_no = closed["worker_no"]
        holder_no = closed.get("holder_no", 0) or settler_no
        span = self._work(subject, closed["attempt"], holder_no, worker, closed, closed["delivered_ns"])
        if holder_no == settler_no:
            span.attributes["dragoman.outcome"] = closed["outcome"]
            self._judge(span, WORK_ENDS.get(closed["outcome"], UNSET), closed["reason"])
        elif settler_no:
            span.attributes["dragoman.settled_by"] = "w" + number_text(settler_no)
        return span

    def reply(self, subject: Subject, closed: Fact) -> Span:
        at_ns = closed["time_ns"]
        span = self._span(subject, "reply", REPLY, 0, PRODUCER, at_ns, at_ns)
        span.attributes["messaging.message.body.size"] = closed["reply_size"]
        span.attributes["dragoman.worker.dialect"] = closed["worker_dialect"]
        return span

    def _work(self, subject: Subject, attempt: int, worker_no: int, worker: str, fact: Fact, delivered_ns: int) -> Span:
        begins_ns = delivered_ns or fact["leased_ns"]
        span = self._span(subject, "work", WORK, attempt, CLIENT, begins_ns, fact["time_ns"])
        self._name_attempt(span, attempt, worker_no, worker)
        # If another worker than the holder settled the message, the fact has the settler's dialect.
        if fact.get("worker_dialect") and not fact.get("holder_no"):
            span.attributes["dragoman.worker.dialect"] = fact["worker_dialect"]
        if attempt > 1:
            span.links.append(SpanId(span.trace_id, self._ids.span_id(subject.number, WORK, attempt - 1)))
        return span

    def _name_attempt(self, span: Span, attempt: int, worker_no: int, worker: str) -> None:
        span.attributes["dragoman.attempt"] = attempt
        if worker_no:
            span.attributes["dragoman.worker.id"] = "w" + number_text(worker_no)
        if worker:
            span.attributes["dragoman.worker.name"] = worker

    def _span(
        self, subject: Subject, name: str, what: int, attempt: int, kind: int, start_ns: int, end_ns: int
    ) -> Span:
        ids, number, context = self._ids, subject.number, subject.context
        attributes: Attributes = {
            "messaging.system": "dragoman",
            "messaging.operation.name": name,
            "messaging.destination.name": subject.queue,
            "messaging.message.id": number_text(number),
            "dragoman.client.dialect": subject.dialect,
        }
        if name in OPERATION_TYPES:
            attributes["messaging.operation.type"] = OPERATION_TYPES[name]
        return Span(
            context.trace_id if context is not None else ids.trace_id(number),
            ids.span_id(number, what, attempt),
            ids.span_id(number, MESSAGE),
            f"{name} {subject.queue}",
            kind,
            start_ns,
            max(end_ns, start_ns),  # the clock may have stepped back between two boots
            attributes,
        )

    def _judge(self, span: Span, status: int, reason: str) -> None:
        span.status = status
        if status == ERROR:
            span.problem = reason
            span.attributes["error.type"] = reason
