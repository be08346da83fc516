"""The cells of the crossing table, as the code declares them."""

from __future__ import annotations

import pytest

from dragoman.dialects import crossing
from dragoman.dialects.crossing import DIALECTS
from dragoman.model.enums import DIALECT_NAMES
from tests.independent.rq_peers import RETRIES, TIMEOUT, parameter


def cells_with(*features: int) -> list[object]:
    """Every client and worker between whom all of these survive, as parameters of a test."""
    return [
        pytest.param(
            DIALECT_NAMES[client], DIALECT_NAMES[worker], id=f"{DIALECT_NAMES[client]}-to-{DIALECT_NAMES[worker]}"
        )
        for client in DIALECTS
        for worker in DIALECTS
        if all(crossing.survives(client, worker, feature) for feature in features)
    ]


def survives(client: str, worker: str, feature: int) -> bool:
    return crossing.survives(DIALECT_NAMES.index(client), DIALECT_NAMES.index(worker), feature)


def with_retries(dialect: str, count: int) -> list[object]:
    """What a client adds to its question to say how often it may be tried again."""
    return {"emqp": [f"retry-count:{count}"], "rq": [parameter(RETRIES, count)]}.get(dialect, [])


def expiring(dialect: str) -> list[object]:
    """What a client adds to say that its question is soon of no use; rq counts in whole seconds."""
    return {"emqp": ["expires:0.2"], "ebus": [200], "rq": [parameter(TIMEOUT, 1)]}[dialect]
