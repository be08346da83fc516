"""Builds the histories of messages (lives) from facts in order.

Facts about other things are included where a history needs them: starts of the broker end leases, late answers name a message by
an id, and queues and workers are named in facts of their own. Names are filled in at the end, because such a fact may come
before the history begins or after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from dragoman.model.facts.decode import decode
from dragoman.model.facts.record_filter import find_matches
from dragoman.model.message import fact_id
from dragoman.model.phrases import read_number
from dragoman.model.wire_ids import WireIds

# Workers remembered while reading, so that leases can be shown with names; the oldest are forgotten first.
WORKERS_REMEMBERED_MAX: Final = 100_000

JOURNAL: Final = "journal"

ACCEPTED: Final = "accepted"
BEGINNINGS: Final = (ACCEPTED, "carried")

Fact = dict[str, Any]


@dataclass
class MessageHistory:
    """One message: its facts in order, each with `lsn`, `time_ns` and its `source`, the journal or the lake."""

    number: int
    facts: list[Fact] = field(default_factory=list)
    queue_no: int = 0
    queue: str = ""  # empty when no stored fact names it
    client_id: str = ""
    is_leased: bool = False
    worker_id: str = ""  # the digits of its id towards workers; empty: the journal has no key to derive it

    @property
    def is_begun(self) -> bool:
        """False when the fact of its acceptance is no longer stored, nor a carried copy."""
        return any(fact["fact"] in BEGINNINGS for fact in self.facts)

    @property
    def is_whole(self) -> bool:
        """False when its first facts are no longer stored: a message that was carried forward may have a longer history."""
        return any(fact["fact"] == ACCEPTED for fact in self.facts)

    @property
    def end(self) -> Fact | None:
        return next((fact for fact in self.facts if fact["fact"] == "closed"), None)


class Names:
    """Names of queues and workers; if a number has two names, the later one wins."""

    def __init__(self) -> None:
        self._queues: dict[int, tuple[int, str]] = {}
        self._workers: dict[int, tuple[int, str]] = {}

    def add(self, fact: Fact) -> None:
        if fact["fact"] == "queue_named":
            known = self._queues.get(fact["queue_no"], (0, ""))
            self._queues[fact["queue_no"]] = max((fact["lsn"], fact["queue"]), known)
        elif fact["fact"] == "worker_joined":
            known = self._workers.get(fact["worker_no"], (0, ""))
            self._workers[fact["worker_no"]] = max((fact["lsn"], fact["identity"] or fact["remote"]), known)
            if len(self._workers) > WORKERS_REMEMBERED_MAX:
                del self._workers[next(iter(self._workers))]

    def put_in(self, life: MessageHistory) -> None:
        life.queue = self._queues.get(life.queue_no, (0, ""))[1]
        for fact in life.facts:
            if fact.get("worker_no", 0):
                fact["worker"] = self._workers.get(fact["worker_no"], (0, ""))[1]


class FactCollector:
    """Takes blocks in order and collects the facts of the messages that match a key."""

    def __init__(self, key: str, ids: WireIds | None = None) -> None:
        number = read_number(key)
        self.client_id = key.encode("utf-8", "surrogateescape")
        self.numbers: set[int] = {number} if number > 0 else set()
        self.ids = ids if ids is not None else WireIds()
        self.numbers.update(self.ids.numbers_of(key))
        self.wire_ids: set[str] = set()  # ids by which late answers may name the messages
        self.names = Names()
        self.facts: list[Fact] = []

    def block(self, records: bytes, first_lsn: int, time_ns: int) -> None:
        found: list[tuple[int, int]] = []
        find_matches(records, self.numbers, self.client_id, found)
        for at, ordinal in found:
            fact = decode(records, at)
            fact["lsn"] = first_lsn + ordinal
            fact["time_ns"] = time_ns
            fact["source"] = JOURNAL
            self.add(fact)

    def add(self, fact: Fact) -> None:
        """Add a fact of one of these messages, or of no message."""
        name = fact["fact"]
        if name in ("queue_named", "worker_joined"):
            self.names.add(fact)
            return
        if name == "late" and fact["wire_id"] not in self.wire_ids:
            return
        if name in BEGINNINGS:
            self.wire_ids.update(wire_ids_of(fact["message_no"], fact["client_id"]))
        self.facts.append(fact)

    def lives(self) -> list[MessageHistory]:
        """The histories, oldest first; names are filled in later."""
        in_journal = {fact["lsn"] for fact in self.facts if fact["source"] == JOURNAL and fact["fact"] != "carried"}
        facts = [fact for fact in self.facts if fact["source"] == JOURNAL or fact["lsn"] not in in_journal]
        builder = _HistoryBuilder()
        for fact in sorted(facts, key=lambda fact: int(fact["lsn"])):
            builder.add(fact)
        if self.ids.key:
            for life in builder.lives.values():
                life.worker_id = self.ids.digits(life.number).decode()
        return [life for _, life in sorted(builder.lives.items())]


class _HistoryBuilder:
    """Builds histories from facts in order."""

    def __init__(self) -> None:
        self.lives: dict[int, MessageHistory] = {}
        self._wire_ids: dict[str, int] = {}

    def add(self, fact: Fact) -> None:
        name = fact["fact"]
        if name == "started":
            for life in self.lives.values():
                if life.is_leased:  # all sessions of the previous boot have ended, and its leases with them
                    life.is_leased = False
                    life.facts.append(dict(fact))
        elif name == "released" and fact["reason"] == "broker_started":
            pass  # `started` covers it
        elif name == "late":
            number = self._wire_ids.get(fact["wire_id"])
            if number is not None:
                self._append(number, fact)
        else:
            self._append(fact["message_no"], fact)

    def _append(self, number: int, fact: Fact) -> None:
        life = self.lives.setdefault(number, MessageHistory(number))
        name = fact["fact"]
        if name == "carried" and life.is_begun:
            return  # moved to another file: not an event of the message
        life.queue_no = fact.get("queue_no", life.queue_no)
        if name in BEGINNINGS:
            life.client_id = fact["client_id"]
            for wire_id in wire_ids_of(number, life.client_id):
                self._wire_ids[wire_id] = number
        if name in ("leased", "released", "closed", "quarantined"):
            life.is_leased = name == "leased"
        life.facts.append(fact)


def wire_ids_of(number: int, client_id: str) -> list[str]:
    """The ids by which a late answer may name a message."""
    own = fact_id(number).decode()
    return [own, client_id] if client_id else [own]
