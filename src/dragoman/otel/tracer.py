"""Turns facts, in journal order, into spans.

Most spans need no state: the fact that ends them has their whole timing, and ids are computed from numbers (`Ids`). The state of an open
message is what only its acceptance contains (its client's trace and id, whether it wants a reply), since when it waits
again, and when its worker reported that it had begun. Messages beyond `open_max` are not remembered: their spans are made from the
closing fact alone, in a trace of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dragoman.journal.format import Block
from dragoman.model.facts.decode import decode
from dragoman.model.facts.sampling import SAMPLES, find_traced, is_sampled
from dragoman.otel.spans import UNSENT_REASONS, Context, Fact, Ids, Span, SpanMaker, Subject, context_of

# Workers remembered by name; the oldest are dropped first.
WORKERS_MAX: Final = 100_000


@dataclass(slots=True)
class Open:
    """The state of a message until it is settled."""

    lsn: int
    client_id: str
    context: Context | None
    is_sampled: bool
    is_reply_wanted: bool
    waits_since_ns: int = 0  # after an attempt ended; 0: this is its first wait
    delivered_ns: int = 0  # in this attempt; 0: not yet, or its worker does not report it


class Tracer:
    """Processes the blocks of one broker, each once and in order."""

    def __init__(self, broker_id: bytes, sample_ratio: float, open_max: int) -> None:
        self._maker = SpanMaker(Ids(broker_id))
        self._samples = round(sample_ratio * SAMPLES)
        self._open_max = open_max
        self.open: dict[int, Open] = {}
        self.queues: dict[int, str] = {}
        self.workers: dict[int, str] = {}

    def oldest_lsn(self) -> int:
        """The lsn of the oldest remembered message; 0: none."""
        return next((open_.lsn for open_ in self.open.values()), 0)

    def take(self, block: Block, from_lsn: int) -> list[Span]:
        """The spans that end with facts of this block from `from_lsn` on; earlier facts only update the state."""
        found: list[tuple[int, int]] = []
        spans: list[Span] = []
        find_traced(block.records, self._samples, self.open, found)
        for at, ordinal in found:
            fact = decode(block.records, at)
            fact["time_ns"] = block.time_ns
            lsn = block.first_lsn + ordinal
            if "message_no" in fact:
                ended = self._move(fact, lsn)
                if lsn >= from_lsn:
                    spans += ended
            else:
                self._name(fact)
        return spans

    def _name(self, fact: Fact) -> None:
        if fact["fact"] == "queue_named":
            self.queues[fact["queue_no"]] = fact["queue"]
        elif fact["fact"] == "queue_forgotten":
            self.queues.pop(fact["queue_no"], None)
        else:
            self.workers[fact["worker_no"]] = fact["identity"] or fact["remote"]
            if len(self.workers) > WORKERS_MAX:
                del self.workers[next(iter(self.workers))]

    def _move(self, fact: Fact, lsn: int) -> list[Span]:
        number, name = fact["message_no"], fact["fact"]
        if name == "accepted":
            self._remember(fact, lsn)
            return []
        open_ = self.open.get(number)
        if name == "delivered":
            if open_ is not None:
                open_.delivered_ns = fact["time_ns"]
            return []
        if name == "closed" and open_ is not None:
            del self.open[number]
        if not (open_.is_sampled if open_ is not None else is_sampled(number, self._samples)):
            return []
        if name == "closed":
            return self._close(fact, open_)
        return self._end_attempt(fact, open_)

    def _remember(self, fact: Fact, lsn: int) -> None:
        if len(self.open) >= self._open_max:
            return
        number = fact["message_no"]
        context = context_of(fact["dialect"], fact["headers"].encode())
        decided = context.is_sampled if context is not None else is_sampled(number, self._samples)
        if context is not None or decided:
            self.open[number] = Open(lsn, fact["client_id"], context, decided, "reply_wanted" in fact["flags"])

    def _end_attempt(self, fact: Fact, open_: Open | None) -> list[Span]:
        """`released` and `quarantined` end an attempt; `requeued` does not, but begins a wait."""
        spans: list[Span] = []
        if fact.get("leased_ns"):  # older journals do not say when an attempt began
            subject = self._subject(fact, open_)
            spans += self._later_wait(subject, fact, open_)
            delivered_ns = open_.delivered_ns if open_ is not None else 0
            spans += self._lease(subject, fact, fact["worker_no"], delivered_ns)
            spans.append(self._maker.work_ended(subject, fact, self._worker(fact["worker_no"]), delivered_ns))
        if open_ is not None:
            open_.delivered_ns = 0
            open_.waits_since_ns = 0 if fact["fact"] == "quarantined" else max(fact.get("due_ns", 0), fact["time_ns"])
        return spans

    def _lease(self, subject: Subject, fact: Fact, worker_no: int, delivered_ns: int) -> list[Span]:
        """The lease span; none if the worker did not report that it had begun: then the work began with the lease."""
        if not delivered_ns:
            return []
        return [self._maker.lease(subject, fact, worker_no, self._worker(worker_no), delivered_ns)]

    def _later_wait(self, subject: Subject, fact: Fact, open_: Open | None) -> list[Span]:
        """The wait after an attempt, exported with the end of the next one. Its recorded start may be later than its end, because not every
        message waits until it is due."""
        if open_ is None or not open_.waits_since_ns:
            return []
        ends_ns = fact["leased_ns"] or fact["time_ns"]
        attempt = fact["attempt"] if fact["leased_ns"] else fact["attempt"] + 1
        return [self._maker.wait(subject, attempt, min(open_.waits_since_ns, ends_ns), ends_ns)]

    def _close(self, fact: Fact, open_: Open | None) -> list[Span]:
        maker, subject = self._maker, self._subject(fact, open_)
        spans = [maker.message(subject, fact)]
        if (wait := maker.first_wait(subject, fact)) is not None:
            spans.append(wait)
        spans += self._later_wait(subject, fact, open_)
        if fact["leased_ns"]:
            holder_no = fact.get("holder_no", 0) or fact["worker_no"]
            spans += self._lease(subject, fact, holder_no, fact["delivered_ns"])
            spans.append(maker.work_closed(subject, fact, self._worker(holder_no)))
        is_wanted = open_.is_reply_wanted if open_ is not None else fact["reply_size"] > 0
        if is_wanted and fact["worker_no"] and fact["reason"] not in UNSENT_REASONS:
            spans.append(maker.reply(subject, fact))
        return spans

    def _subject(self, fact: Fact, open_: Open | None) -> Subject:
        queue = self.queues.get(fact["queue_no"], f"#{fact['queue_no']}")
        context = open_.context if open_ is not None else None
        client_id = open_.client_id if open_ is not None else ""
        return Subject(fact["message_no"], queue, fact["dialect"], client_id, context)

    def _worker(self, worker_no: int) -> str:
        return self.workers.get(worker_no, "")
