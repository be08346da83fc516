"""Maps a fact to its cause: `what, who` of a story's row, or None if an earlier row caused it.

Most reasons name the cause. A message that had no retries left, or had expired when its worker ended the attempt, ended for two reasons
of which the fact keeps one: the other is inferred from the facts around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from dragoman.model.words import DIALECT_NAMES

Fact = dict[str, Any]
Cause = tuple[str, str] | None  # what, and who: "worker", "holder", "message", "client" or "operator"

SAYS: Final[dict[str, Cause]] = {
    "failed": ("fails", "holder"),
    "timed_out": ("times out", "message"),
    "returned": ("returns", "holder"),
    "refused_by_worker": ("rejects", "worker"),
    "worker_lost": None,
    "worker_left": None,
    "workers_died": None,
    "broker_started": None,
}
BY_CLIENT_DIALECTS: Final = ("emqp", "ebus")  # whose clients can send a cancel


@dataclass(frozen=True)
class Scene:
    """The circumstances of a fact: whether its worker left at that instant, and whether its lease had expired."""

    has_worker_left: bool
    is_overdue: bool
    worker_dialect: str


def cause_of(fact: Fact, client_dialect: int, scene: Scene) -> Cause:
    """The cause of a released, quarantined or closed fact."""
    outcome, reason = fact.get("outcome", ""), fact["reason"]
    if outcome == "done":
        return "answers", "worker"
    if outcome == "cancelled":
        is_said = reason == "by_client" and DIALECT_NAMES[client_dialect] in BY_CLIENT_DIALECTS
        return "cancels", "client" if is_said else "operator"
    if outcome == "expired" and not fact["worker_no"]:
        return "expires", "message"
    if reason in SAYS:
        return SAYS[reason]
    return hidden_cause(fact, scene)


def hidden_cause(fact: Fact, scene: Scene) -> Cause:
    if scene.has_worker_left:
        return None
    if fact.get("reply_size", 0):
        return SAYS["failed"]
    if scene.is_overdue:
        return SAYS["timed_out"]
    return SAYS["returned"] if scene.worker_dialect == "rq" else SAYS["failed"]
