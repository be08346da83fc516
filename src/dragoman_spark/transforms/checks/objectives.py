"""Service objectives of the queues, read from a TOML file. No Spark here.

Two kinds. A *share* is the fraction of a queue's messages that must be good (answered, and within a time): the `slo` table measures it.
A *mean wait* is how long a message may wait on average: the `capacity` table computes the workers for it. A file with an unknown
key is refused: a misspelt objective would go unmonitored.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from os import fspath
from pathlib import Path
from typing import Any, Final, NoReturn

from dragoman.errors import BadObjectives

ALL_QUEUES: Final = "*"
SHARES: Final = ("wait", "work", "total", "success")
MEAN_WAIT: Final = "mean_wait"
# Each objective costs a few columns of one aggregate; more than this belong in a report of their own.
OBJECTIVES_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Objective:
    """One objective of one queue, or of all."""

    name: str
    queue: str = ALL_QUEUES
    # wait, work, total or success: a share. mean_wait: what capacity is planned for.
    measure: str = "success"
    # Durations up to this count as good; None for success.
    threshold_ms: float | None = None
    # The share that has to be good; None for mean_wait.
    target: float | None = None


DEFAULTS: Final = (
    Objective("done within a minute", ALL_QUEUES, "total", 60_000.0, 0.99),
    Objective("success", ALL_QUEUES, "success", None, 0.999),
    Objective("mean wait", ALL_QUEUES, MEAN_WAIT, 1_000.0),
)


def read(path: Path | str | None) -> list[Objective]:
    """The objectives of a file, or the pipeline's defaults without one. What a file leaves out is taken from the defaults: shares if it has
    no [[objective]], the mean wait if [capacity] has no `wait_ms`."""
    if path is None:
        return list(DEFAULTS)
    file = fspath(path)
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise BadObjectives(file, "", f"cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadObjectives(file, "", f"is no TOML: {error}") from error
    return _Reader(file).objectives(document)


def shares(objectives: Iterable[Objective]) -> list[Objective]:
    """The objectives that `slo` measures."""
    return [objective for objective in objectives if objective.measure in SHARES]


def mean_waits_ms(objectives: Iterable[Objective]) -> dict[str, float]:
    """The mean wait objective by queue; there is always one for `*`."""
    waits = {ALL_QUEUES: next(o.threshold_ms for o in DEFAULTS if o.measure == MEAN_WAIT)}
    waits |= {objective.queue: objective.threshold_ms for objective in objectives if objective.measure == MEAN_WAIT}
    return {queue: wait_ms for queue, wait_ms in waits.items() if wait_ms is not None}


class _Reader:
    """Parses one file; every error names it and the key."""

    def __init__(self, file: str) -> None:
        self.file = file

    def objectives(self, document: dict[str, Any]) -> list[Objective]:
        self.known(document, "", {"objective", "capacity"})
        tables = document.get("objective", [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self.refuse("objective", "write each objective as a table of its own, [[objective]]")
        if len(tables) > OBJECTIVES_MAX:
            self.refuse("objective", f"{len(tables)} objectives; at most {OBJECTIVES_MAX} are allowed")
        found = [self.share(table, f"objective {n}") for n, table in enumerate(tables, start=1)]
        self.distinct(found)
        return (found or shares(DEFAULTS)) + self.mean_waits(document.get("capacity", {}))

    def share(self, table: dict[str, Any], place: str) -> Objective:
        self.known(table, place, {"name", "queue", "measure", "threshold_ms", "target"})
        name = self.text(table, place, "name")
        place = f"{place} ({name})"
        measure = self.text(table, place, "measure")
        if measure not in SHARES:
            self.refuse(f"{place}: measure", f"is {measure!r}; it may be {', '.join(SHARES)}")
        if measure == "success":
            if "threshold_ms" in table:
                self.refuse(f"{place}: threshold_ms", "success has no threshold; measure total, wait or work for one")
            threshold_ms = None
        else:
            threshold_ms = self.above_zero(table, place, "threshold_ms")
        target = self.above_zero(table, place, "target")
        if target >= 1:
            self.refuse(
                f"{place}: target", f"is {target:g}; it must be below 1, as 0.999: a budget of nothing cannot burn"
            )
        return Objective(name, self.text(table, place, "queue", ALL_QUEUES), measure, threshold_ms, target)

    def mean_waits(self, table: Any) -> list[Objective]:
        if not isinstance(table, dict):
            self.refuse("capacity", "write it as a table, [capacity]")
        self.known(table, "capacity", {"wait_ms", "queue_wait_ms"})
        default = next(objective for objective in DEFAULTS if objective.measure == MEAN_WAIT)
        default_ms = self.above_zero(table, "capacity", "wait_ms") if "wait_ms" in table else default.threshold_ms
        by_queue = table.get("queue_wait_ms", {})
        if not isinstance(by_queue, dict):
            self.refuse(
                "capacity: queue_wait_ms", "write it as a table, [capacity.queue_wait_ms], with a line per queue"
            )
        waits = {ALL_QUEUES: default_ms} | {
            queue: self.above_zero(by_queue, "capacity: queue_wait_ms", queue) for queue in by_queue
        }
        return [Objective(default.name, queue, MEAN_WAIT, wait_ms) for queue, wait_ms in waits.items()]

    def distinct(self, found: list[Objective]) -> None:
        """Name and queue are the key of the `slo` table."""
        seen: set[tuple[str, str]] = set()
        for n, objective in enumerate(found, start=1):
            key = (objective.name, objective.queue)
            if key in seen:
                self.refuse(
                    f"objective {n} ({objective.name}): name", f"queue {objective.queue!r} has one of this name already"
                )
            seen.add(key)

    def text(self, table: dict[str, Any], place: str, key: str, default: str | None = None) -> str:
        value = table.get(key, default)
        if value is None:
            self.refuse(f"{place}: {key}", "is missing")
        if not isinstance(value, str) or not value.strip():
            self.refuse(f"{place}: {key}", f"is {value!r}; it must be a text")
        return value

    def above_zero(self, table: dict[str, Any], place: str, key: str) -> float:
        value = table.get(key)
        if value is None:
            self.refuse(f"{place}: {key}", "is missing")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
            self.refuse(f"{place}: {key}", f"is {value!r}; it must be a number above 0")
        return float(value)

    def known(self, table: dict[str, Any], place: str, keys: set[str]) -> None:
        for key in table:
            if key not in keys:
                self.refuse(
                    f"{place}: {key}" if place else key, f"is not known here; known are {', '.join(sorted(keys))}"
                )

    def refuse(self, key: str, problem: str) -> NoReturn:
        raise BadObjectives(self.file, key, problem)
