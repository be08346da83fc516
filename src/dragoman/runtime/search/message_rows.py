"""Converts the history of a listed message to a row, if the message matches the search and is listed at this fact.

What one segment alone could not decide is decided here, by the same `Filter`, from all facts of the message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from dragoman.model.facts.record_filter import OPEN, Filter
from dragoman.model.identities import client_of, identities_of
from dragoman.model.phrases import number_text
from dragoman.model.words import DIALECT_NAMES, STATE_NAMES
from dragoman.runtime.search.lives import BEGINNINGS, Fact, Life


@dataclass(slots=True)
class Row:
    """Summary of one message. `state` is `open`, or how it ended; `unknown` if not everything that may contain its end was read."""

    number: int
    client_id: str
    queue_no: int
    queue: str
    dialect: str
    client: str  # its identity; empty: it gave none, or its acceptance is no longer stored
    worker_no: int  # the worker that settled it, or holds it now; 0: none
    worker_name: str
    accepted_ns: int
    ended_ns: int
    state: str
    reason: str
    lsn: int  # of the fact at which it is listed

    def view(self) -> dict[str, Any]:
        view = asdict(self) | {"id": number_text(self.number)}
        view["worker"] = f"w{number_text(self.worker_no)}" if self.worker_no else ""
        return {key: value for key, value in view.items() if key not in ("queue_no", "worker_no")}


class RowFilter:
    """Decides which messages become rows. `since`: by lsn, the time from which on messages were searched together with that fact."""

    def __init__(self, from_ns: int, to_ns: int, wanted: Filter, since: Callable[[int], int]) -> None:
        self._from_ns, self._to_ns, self._wanted, self._since = from_ns, to_ns, wanted, since

    def row(self, life: Life, lsn: int) -> Row | None:
        """The row; None if the message does not match, or is listed at another fact."""
        row = row_of(life, lsn)
        state = OPEN if row.state == "open" else number_of(STATE_NAMES, row.state)
        if not self._wanted.has_origin(row.queue_no, number_of(DIALECT_NAMES, row.dialect)):
            return None
        if not self._wanted.has_state(state):
            return None
        listed = [fact["lsn"] for fact in life.facts if self._lists(fact)]
        return row if listed and max(listed) == lsn else None

    def _lists(self, fact: Fact) -> bool:
        if not self._from_ns <= fact["time_ns"] < self._to_ns:
            return False
        wanted = self._wanted
        if fact["fact"] == "accepted":
            return wanted.lists_accepted(not wanted.identities.isdisjoint(identities_of(client_of(fact["address"]))))
        if fact["fact"] == "leased":
            return wanted.lists_leased(fact["worker_no"])
        if fact["fact"] == "closed":
            since_ns = self._since(fact["lsn"])
            return wanted.lists_closed(fact["worker_no"], fact.get("holder_no", 0), fact["accepted_ns"], since_ns)
        return False


def number_of(words: list[str], word: str) -> int:
    """The index of a word in the list; one past the end if it is not in it."""
    return words.index(word) if word in words else len(words)


def row_of(life: Life, lsn: int) -> Row:
    begin: Fact = next((fact for fact in life.facts if fact["fact"] in BEGINNINGS), {})
    end = life.end
    last = end if end is not None else current_lease(life)
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


def current_lease(life: Life) -> Fact:
    """The current lease, if it is leased."""
    leases = [fact for fact in life.facts if fact["fact"] == "leased"]
    return leases[-1] if life.is_leased and leases else {}


def accepted_ns_of(begin: Fact) -> int:
    return int(begin["accepted_ns"] if "accepted_ns" in begin else begin.get("time_ns") or 0)
