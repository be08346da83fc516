"""Erlang's C formula in plain Python, for contenders that leave it to the host language: a few thousand rows, a few steps each."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=100_000)
def staffing(
    load: float | None, service_ms: float | None, wait_ms: float
) -> tuple[int | None, float | None, float | None]:
    """The fewest one-slot workers whose mean wait is at most `wait_ms`, that wait, and the share of messages that wait."""
    if load is not None and load == 0:
        return 0, 0.0, 0.0
    if load is None or service_ms is None or load < 0 or service_ms <= 0:
        return None, None, None
    inverse_b, workers = 1.0, 0
    while True:
        workers += 1
        inverse_b = 1 + workers / load * inverse_b
        if workers <= load:
            continue
        spare = workers - load
        waits = workers / (spare * inverse_b + load)
        mean_wait_ms = waits * service_ms / spare
        if mean_wait_ms <= wait_ms:
            return workers, mean_wait_ms, waits
