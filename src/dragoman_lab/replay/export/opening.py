"""The state when a story begins: messages that were open already, with their earlier attempts, and the workers that had them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dragoman.model.units import SECOND_NS
from dragoman_lab.replay.export.cast import Entry
from dragoman_lab.replay.export.history import Fact, Life

BEFORE_MAX_NS: Final = 600 * SECOND_NS  # a story may start this long before its beginning, to set up what was open


def placed_ns(life: Life, start_ns: int) -> int:
    """When a message is accepted in the story: its real instant, or if that is very long ago, a while before the beginning."""
    if life.is_new:
        return life.accepted_ns
    return min(max(life.accepted_ns, start_ns - BEFORE_MAX_NS), start_ns)


@dataclass
class Past:
    """What had happened to a message before the story: attempts that ended, and the open lease."""

    had: Entry  # empty: nothing
    leased: Fact | None
    is_delivered: bool = False
    is_handed_over: bool = False


def past_of(life: Life, from_ns: int, start_ns: int) -> Past:
    past = Past({}, None)
    dead: set[int] = set()
    for fact in life.facts:
        if fact["time_ns"] >= from_ns:
            break
        if fact["fact"] == "leased":
            past.leased, past.is_delivered = fact, False
        elif fact["fact"] == "delivered":
            past.is_delivered = True
        elif fact["fact"] == "requeued":
            past.had.pop("due_s", None)
            if past.had.pop("quarantined", None) is not None:  # a requeue out of a backoff keeps the count of deaths
                dead.clear()
        else:
            past.leased = None
            past.had = ended_attempts(fact, life, start_ns)
            # An rq worker confirms delivery itself; for any other dialect the broker has notified the client.
            past.is_handed_over = past.is_handed_over or past.is_delivered or fact.get("worker_dialect") != "rq"
            if fact.get("is_death") or fact.get("died_with"):
                dead.add(fact["worker_no"])
    first = next((fact["attempt"] for fact in life.facts if fact["fact"] == "leased"), 1)
    if not past.had and first > 1:  # attempts older than what the journal keeps
        past.had = {"attempts": first - 1, "retries_left": life.message.retries_left}
    if dead:
        past.had["deaths"] = len(dead)
    if past.had and past.is_handed_over:
        past.had["handed_over"] = True
    return past


def ended_attempts(fact: Fact, life: Life, start_ns: int) -> Entry:
    """The state after a released or quarantined fact."""
    had: Entry = {"attempts": fact["attempt"], "retries_left": fact.get("retries_left", life.message.retries_left)}
    if fact.get("due_ns", 0) > start_ns:
        had["due_s"] = round((fact["due_ns"] - start_ns) / SECOND_NS, 6)
    if fact["fact"] == "quarantined":
        had["quarantined"] = fact["reason"]
    return had
