"""Which features survive when a client of one dialect is served by a worker of another.

Each dialect's description declares which features its clients and its workers can express, and how. Everything else is derived: a feature
survives a crossing when the client can express it and, where the worker takes part in it, the worker can, too. What the broker does by
itself (priorities, retries, timeouts) needs no support from the worker.

The reference page, the SDK's checks and the tests of every crossing read only these declarations.
"""

from __future__ import annotations

from typing import Final

from dragoman.dialects.features import CROSSING, FEATURES, HANDOVER
from dragoman.dialects.registry import DESCRIPTIONS

DIALECTS: Final = [description.number for description in DESCRIPTIONS]
CLIENT_TEXTS: Final = {description.number: dict(description.client_words) for description in DESCRIPTIONS}
WORKER_TEXTS: Final = {description.number: dict(description.worker_words) for description in DESCRIPTIONS}


def client_text(dialect: int, feature: int) -> str:
    """How clients of a dialect express a feature; empty: they cannot."""
    return CLIENT_TEXTS[dialect].get(feature, "")


def worker_text(dialect: int, feature: int) -> str:
    """How workers of a dialect express a feature; empty: they cannot."""
    return WORKER_TEXTS[dialect].get(feature, "")


def survives(client: int, worker: int, feature: int) -> bool:
    """Whether a feature works between a client of one dialect and a worker of another."""
    is_provided = not FEATURES[feature].is_joint or worker_text(worker, feature) != ""
    return is_provided and client_text(client, feature) != ""


def surviving(client: int, worker: int) -> list[int]:
    """The features that survive this crossing."""
    return [feature for feature in CROSSING if survives(client, worker, feature)]


def dropped(client: int, worker: int) -> list[int]:
    """The features that one of the two can express and the other cannot receive."""
    found: list[int] = []
    for feature in CROSSING:
        used = worker_text(worker, feature) if feature <= HANDOVER else client_text(client, feature)
        if used and not survives(client, worker, feature):
            found.append(feature)
    return found


def wording(client: int, worker: int, feature: int) -> str:
    """How a surviving feature is expressed on its way; empty: it does not survive."""
    if not survives(client, worker, feature):
        return ""
    text = worker_text(worker, feature) or FEATURES[feature].otherwise
    return client_text(client, feature) + (" — " + text if text else "")


def having(feature: int) -> list[int]:
    """The dialects whose clients have the feature, the last one first."""
    return [dialect for dialect in reversed(DIALECTS) if client_text(dialect, feature)]
