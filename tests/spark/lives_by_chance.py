"""Lawful facts, made up by chance from a seed: messages, workers, quarantine, pauses and restarts, as a broker would write them.

A toy broker makes one random lawful move after another. It knows nothing of the transforms; its facts say what real ones say.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dragoman.lake.arrow import arrow_schema
from dragoman.lake.schema import KINDS, OUTCOMES, REASONS
from tests.spark.frames import BROKER, DAY

Fact = dict[str, Any]
KIND = {word: number for number, word in KINDS.items()}
REASON = {word: number for number, word in REASONS.items()}
OUTCOME = {word: number for number, word in OUTCOMES.items()}
RQ = 5
# How often a move is tried, against the others.
MOVES = {
    "accept": 12, "lease": 12, "answer": 9, "join": 2, "deliver": 2, "release": 2, "reject": 1, "expire": 1, "cancel": 1,
    "answer_late": 1, "set_aside": 2, "requeue": 0.6, "drop": 0.6, "leave": 1, "pause": 1, "note": 1, "start": 0.2,
}  # fmt: skip


def facts_by_chance(seed: int, moves: int = 400, broker_id: int = BROKER) -> list[Fact]:
    """About as many facts as moves, in the order of their lsn, from 1 on."""
    return _Broker(seed, broker_id).live(moves)


def to_arrow(facts: list[Fact]) -> pa.Table:
    schema = arrow_schema(b"\0" * 16)
    return pa.table({name: [fact.get(name) for fact in facts] for name in schema.names}, schema=schema)


def to_parquet(facts: list[Fact], path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(to_arrow(facts), path)
    return path


@dataclass(eq=False)
class _Message:
    number: int
    queue_no: int
    dialect: int
    body_size: int
    asked_due_at: datetime | None
    due_at: datetime | None
    accepted_at: datetime
    attempt: int = 0
    first_leased_at: datetime | None = None
    leased_at: datetime | None = None
    delivered_at: datetime | None = None
    holder: int | None = None
    holders: list[int] = field(default_factory=list)


class _Broker:
    def __init__(self, seed: int, broker_id: int) -> None:
        self.chance = random.Random(seed)
        self.broker_id = broker_id
        self.now = DAY + timedelta(hours=self.chance.randrange(24))
        self.facts: list[Fact] = []
        self.boot = self.count = 0
        self.queues = {1: "mail", 2: "images", 3: "a queue\twith a tab"}
        self.paused: set[int] = set()
        self.waiting: list[_Message] = []
        self.leased: list[_Message] = []
        self.aside: list[_Message] = []
        self.workers: dict[int, int] = {}  # the dialect of each that is there

    def live(self, moves: int) -> list[Fact]:
        self.start()
        for name in self.chance.choices(list(MOVES), list(MOVES.values()), k=moves):
            self.now += timedelta(microseconds=self.chance.choice([0, 1, 700, 45_000, 3_000_000]))
            getattr(self, name)()
        return self.facts

    def write(self, kind: str, **columns: Any) -> None:
        fact = {"broker_id": self.broker_id, "lsn": len(self.facts) + 1, "kind": KIND[kind], "at": self.now}
        self.facts.append({**fact, **columns})

    def number(self) -> int:
        self.count += 1
        return self.boot << 40 | self.count

    def later(self) -> datetime | None:
        return self.chance.choice([None, None, self.now + timedelta(seconds=self.chance.randrange(1, 60))])

    def one_of(self, messages: list[_Message]) -> list[_Message]:
        """One by chance; none where there is none."""
        return [self.chance.choice(messages)] if messages else []

    def start(self) -> None:
        self.boot, self.count = self.boot + 1, 0
        self.write("started", count=self.boot, text="1.0")
        for m in list(self.leased):
            self.end_attempt(m, "released", "broker_started", due_at=m.due_at, is_death=False, worker_dialect=None)
        for queue_no, name in self.queues.items():
            self.write("queue_named", queue_no=queue_no, text=name)
        self.workers.clear()

    def join(self) -> None:
        number = self.chance.choice([*self.workers, 0]) or self.number()
        dialect = self.workers.setdefault(number, self.chance.randrange(1, 6))
        served = [f"0 {name}" for name in self.chance.sample(list(self.queues.values()), self.chance.randrange(4))]
        text = "\t".join(["main", f"127.0.0.1:{number % 999}", self.chance.choice(["", "00ff", "6d6169"]), *served])
        self.write("worker_joined", worker_no=number, worker_dialect=dialect, text=text)

    def leave(self) -> None:
        if self.workers:
            gone = self.chance.choice(list(self.workers))
            for m in [m for m in self.leased if m.holder == gone]:
                self.end_attempt(m, "released", "worker_lost", due_at=self.later(), is_death=True)
            self.write("worker_left", worker_no=gone, reason=REASON["connection_ended"])
            del self.workers[gone]

    def pause(self) -> None:
        queue_no = self.chance.choice(list(self.queues))
        self.write("resumed" if queue_no in self.paused else "paused", queue_no=queue_no)
        self.paused ^= {queue_no}

    def note(self) -> None:
        self.write("noted", count=self.chance.randrange(1, 9), text="UNKNOWN_COMMAND")

    def accept(self) -> None:
        due_at = self.later()
        queue_no, dialect, body_size = (
            self.chance.randrange(1, 4),
            self.chance.randrange(6),
            self.chance.randrange(5000),
        )
        m = _Message(self.number(), queue_no, dialect, body_size, due_at, due_at, self.now)
        self.waiting.append(m)
        self.write(
            "accepted", message_no=m.number, queue_no=m.queue_no, client_dialect=m.dialect, due_at=m.due_at, flags=1,
            priority=self.chance.randrange(10), expires_at=self.later(), body_size=m.body_size,
        )  # fmt: skip

    def lease(self) -> None:
        ready = [m for m in self.waiting if m.due_at is None or m.due_at <= self.now] if self.workers else []
        for m in self.one_of(ready):
            m.holder = self.chance.choice(list(self.workers))
            m.attempt += 1
            m.leased_at, m.delivered_at, m.first_leased_at = self.now, None, m.first_leased_at or self.now
            m.holders.append(m.holder)
            self.waiting.remove(m)
            self.leased.append(m)
            self.write("leased", message_no=m.number, worker_no=m.holder, attempt=m.attempt)

    def deliver(self) -> None:
        for m in self.one_of([m for m in self.leased if not m.delivered_at and self.workers.get(m.holder or 0) == RQ]):
            m.delivered_at = self.now
            self.write("delivered", message_no=m.number, worker_no=m.holder)

    def release(self) -> None:
        for m in self.one_of(self.leased):
            reason = self.chance.choice(["failed", "timed_out", "returned"])
            self.end_attempt(m, "released", reason, due_at=self.later(), is_death=False)

    def set_aside(self) -> None:
        for m in self.one_of(self.leased):
            self.end_attempt(m, "quarantined", self.chance.choice(["workers_died", "retries_used_up"]))

    def end_attempt(self, m: _Message, kind: str, reason: str, **columns: Any) -> None:
        """The attempt ends, the message does not."""
        said = {"worker_dialect": self.workers.get(m.holder or 0), **columns}
        self.write(
            kind, message_no=m.number, worker_no=m.holder, attempt=m.attempt, leased_at=m.leased_at, queue_no=m.queue_no,
            client_dialect=m.dialect, reason=REASON[reason], **said,
        )  # fmt: skip
        m.holder, m.due_at = None, columns.get("due_at")
        self.leased.remove(m)
        (self.aside if kind == "quarantined" else self.waiting).append(m)

    def requeue(self) -> None:
        backing_off = [m for m in self.waiting if m.attempt and m.due_at and m.due_at > self.now]
        for m in self.one_of([*self.aside, *backing_off]):
            (self.aside if m in self.aside else self.waiting).remove(m)
            m.due_at = None
            self.waiting.append(m)
            self.write("requeued", message_no=m.number, queue_no=m.queue_no, client_dialect=m.dialect)

    def answer(self) -> None:
        for m in self.one_of(self.leased):
            self.close(m, "done", "answered", m.holder)

    def reject(self) -> None:
        for m in self.one_of(self.leased):
            self.close(m, "rejected", "failed", m.holder)

    def answer_late(self) -> None:
        """By an earlier holder, while another one has it or nobody does."""
        for m in self.one_of(
            [m for m in [*self.leased, *self.waiting] if set(m.holders) & set(self.workers) - {m.holder}]
        ):
            earlier = sorted(set(m.holders) & set(self.workers) - {m.holder})
            self.close(m, "done", "answered_late", self.chance.choice(earlier))

    def expire(self) -> None:
        for m in self.one_of(self.waiting):
            self.close(m, "expired", "past_expiry", None)

    def cancel(self) -> None:
        for m in self.one_of([*self.waiting, *self.leased]):
            self.close(m, "cancelled", "by_client", None)

    def drop(self) -> None:
        for m in self.one_of(self.aside):
            self.close(m, "cancelled", "dropped", None)

    def close(self, m: _Message, outcome: str, reason: str, by: int | None) -> None:
        self.write(
            "closed", message_no=m.number, worker_no=by, holder_no=m.holder if m.holder != by else None, attempt=m.attempt,
            queue_no=m.queue_no, client_dialect=m.dialect, worker_dialect=self.workers[by] if by else None,
            outcome=OUTCOME[outcome], reason=REASON[reason], due_at=m.asked_due_at, accepted_at=m.accepted_at,
            first_leased_at=m.first_leased_at, leased_at=m.leased_at if m.holder else None, delivered_at=m.delivered_at,
            body_size=m.body_size, reply_size=self.chance.randrange(900) if by else 0,
        )  # fmt: skip
        for place in (self.waiting, self.leased, self.aside):
            if m in place:
                place.remove(m)
