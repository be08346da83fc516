"""Which features survive when a client of one dialect is served by a worker of another.

Each dialect's description declares which features its clients and its workers can express, and how. Everything else is derived: a feature
survives a crossing when the client can express it and, where the worker takes part in it, the worker can, too. What the broker does by
itself (priorities, retries, timeouts) needs no support from the worker.

The reference page, the SDK's checks and the tests of every crossing read only these declarations.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.dialects.features import CROSSING, FEATURES, HANDOVER
from dragoman.dialects.registry import DESCRIPTIONS

DIALECTS: Final = [description.number for description in DESCRIPTIONS]


@final
class Words:
    """How the dialects express features in one role, by dialect and feature."""

    def __init__(self, declared: list[tuple[int, list[tuple[int, str]]]]) -> None:
        self.texts: dict[int, str] = {}
        for dialect, words in declared:
            for feature, text in words:
                self.texts[dialect << 8 | feature] = text

    def text(self, dialect: int, feature: int) -> str:
        """How a dialect expresses a feature; empty: it does not have it."""
        return self.texts.get(dialect << 8 | feature, "")


CLIENTS: Final = Words([(description.number, description.client_words) for description in DESCRIPTIONS])
WORKERS: Final = Words([(description.number, description.worker_words) for description in DESCRIPTIONS])


def client_has(dialect: int, feature: int) -> bool:
    """Whether a client of this dialect can send or receive it."""
    return CLIENTS.text(dialect, feature) != ""


def worker_has(dialect: int, feature: int) -> bool:
    """Whether this dialect's workers can express the feature."""
    return WORKERS.text(dialect, feature) != ""


def survives(client: int, worker: int, feature: int) -> bool:
    """Whether a feature works between a client of one dialect and a worker of another."""
    if not client_has(client, feature):
        return False
    return worker_has(worker, feature) or not FEATURES[feature].is_joint


def surviving(client: int, worker: int) -> list[int]:
    """The features that survive this crossing."""
    found: list[int] = []
    for feature in CROSSING:
        if survives(client, worker, feature):
            found.append(feature)
    return found


def dropped(client: int, worker: int) -> list[int]:
    """The features that one of the two can express and the other cannot receive."""
    found: list[int] = []
    for feature in CROSSING:
        is_used = worker_has(worker, feature) if feature <= HANDOVER else client_has(client, feature)
        if is_used and not survives(client, worker, feature):
            found.append(feature)
    return found


def wording(client: int, worker: int, feature: int) -> str:
    """How a surviving feature is expressed on its way; empty: it does not survive."""
    if not survives(client, worker, feature):
        return ""
    text = WORKERS.text(worker, feature) or FEATURES[feature].otherwise
    return CLIENTS.text(client, feature) + (" — " + text if text else "")


def having(feature: int) -> list[int]:
    """The dialects whose clients have the feature, the last one first."""
    return [dialect for dialect in reversed(DIALECTS) if client_has(dialect, feature)]
