"""From the life of a message that was seen to its row in a list, if it is what was asked for and is listed at this fact.

The same law as `model/sightings` has for records, for facts that are told: what one segment alone could not say is decided here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dragoman.core.phrases import number_text
from dragoman.model.decode import OUTCOME_NAMES
from dragoman.model.identities import client_of, identities_of
from dragoman.model.sightings import ANY, ENDED, OPEN, Sought
from dragoman.model.words import DIALECT_NAMES
from dragoman.runtime.lives import BEGINNINGS, Fact, Life


@dataclass(slots=True)
class Row:
    """One message in short. `state` is `open`, or how it ended; `unknown` where not all that might tell of its end was read."""

    number: int
    client_id: str
    queue_no: int
    queue: str
    dialect: str
    client: str  # its identity; empty: it gave none, or its acceptance is not kept
    worker_no: int  # who settled it, or has it now; 0: nobody
    worker_name: str
    accepted_ns: int
    ended_ns: int
    state: str
    reason: str
    lsn: int  # of the fact it is listed at

    def view(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "id": number_text(self.number),
            "client_id": self.client_id,
            "queue": self.queue,
            "dialect": self.dialect,
            "client": self.client,
            "worker": f"w{number_text(self.worker_no)}" if self.worker_no else "",
            "worker_name": self.worker_name,
            "accepted_ns": self.accepted_ns,
            "ended_ns": self.ended_ns,
            "state": self.state,
            "reason": self.reason,
            "lsn": self.lsn,
        }


class Listed:
    """What makes a message a row. `since`: by lsn, since when messages were looked through together with that fact."""

    def __init__(self, from_ns: int, to_ns: int, sought: Sought, since: Callable[[int], int]) -> None:
        self._from_ns, self._to_ns, self._sought, self._since = from_ns, to_ns, sought, since

    def row(self, life: Life, lsn: int) -> Row | None:
        """None: it is not asked for, or is listed at another fact than this."""
        row = row_of(life, lsn)
        if not self._is_like(row) or not self._is_state(row):
            return None
        seen = [fact["lsn"] for fact in life.facts if self._sees(fact)]
        return row if seen and max(seen) == lsn else None

    def _is_like(self, row: Row) -> bool:
        if self._sought.dialect != ANY and row.dialect != DIALECT_NAMES[self._sought.dialect]:
            return False
        return not self._sought.has_queue or row.queue_no in self._sought.queue_nos

    def _is_state(self, row: Row) -> bool:
        state = self._sought.state
        if state == ANY:
            return True
        if state == OPEN:
            return row.state == "open"
        return row.state != "open" if state == ENDED else row.state == OUTCOME_NAMES[state]

    def _sees(self, fact: Fact) -> bool:
        name = fact["fact"]
        if not self._from_ns <= fact["time_ns"] < self._to_ns:
            return False
        if self._sought.has_peer:
            return self._sees_peer(name, fact)
        if name == "accepted":
            return self._sought.state in (ANY, OPEN)
        if name != "closed":
            return False
        return self._sought.state != ANY or bool(fact["accepted_ns"] < self._since(fact["lsn"]))

    def _sees_peer(self, name: str, fact: Fact) -> bool:
        if name == "accepted":
            return bool(self._sought.identities & identities_of(client_of(fact["address"])))
        if name not in ("leased", "closed"):
            return False
        return not self._sought.worker_nos.isdisjoint((fact["worker_no"], fact.get("holder_no", 0)))


def row_of(life: Life, lsn: int) -> Row:
    begin: Fact = next((fact for fact in life.facts if fact["fact"] in BEGINNINGS), {})
    end = life.end
    last = end if end is not None else holding(life)
    return Row(
        number=life.number,
        client_id=life.client_id,
        queue_no=life.queue_no,
        queue=life.queue,
        dialect=begin.get("dialect") or (end["dialect"] if end is not None else ""),
        client=client_of(begin.get("address", "")),
        worker_no=last.get("worker_no", 0),
        worker_name=last.get("worker", ""),
        accepted_ns=end["accepted_ns"] if end is not None else accepted_ns_of(begin),
        ended_ns=end["time_ns"] if end is not None else 0,
        state=end["outcome"] if end is not None else "open",
        reason=end["reason"] if end is not None else "",
        lsn=lsn,
    )


def holding(life: Life) -> Fact:
    """The lease it is held by now, if it is held."""
    leases = [fact for fact in life.facts if fact["fact"] == "leased"]
    return leases[-1] if life.is_leased and leases else {}


def accepted_ns_of(begin: Fact) -> int:
    return int(begin["accepted_ns"] if "accepted_ns" in begin else begin.get("time_ns") or 0)
