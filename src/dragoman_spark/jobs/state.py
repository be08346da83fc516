"""The progress of the stream: one small document per batch, which commits the batch.

    <out>/progress/batch=N/state.json     written last: from then on batch N is visible to every reader
    <out>/progress/batch=N/…              the data carried to the next batch

The state of batch N is made from that of batch N-1 and from facts, from nothing else. So a batch that died half-way is
repeated: it overwrites its partial output. Batches are counted here, not by Spark: losing its checkpoint loses no data.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from dragoman.errors import StateTooNew
from dragoman.lake.layout import HISTORY, INCOMING, Part, parse
from dragoman_spark.jobs.plan import File, Held, Ranges
from dragoman_spark.jobs.tables.root import TableRoot

PROGRESS: Final = "progress"
VERSION: Final = 1
# The number of the first load of a lake with history; streamed batches are counted from 0.
FIRST_LOAD: Final = -1
# Earlier states are kept for concurrent readers: computing the stated tables may take as long as several batches.
STATES_KEPT: Final = 8
_NAME: Final = "state.json"
_BATCH: Final = "batch="


@dataclass(frozen=True, slots=True)
class Begin:
    """Where the lake begins, for one broker."""

    lsn: int
    at: datetime


@dataclass(frozen=True, slots=True)
class State:
    """The state after a batch."""

    batch: int
    done: dict[str, Ranges] = field(default_factory=dict)
    held: Sequence[Held] = ()
    begins: dict[str, Begin] = field(default_factory=dict)
    # The latest instant of any fact taken; None: none was.
    now: datetime | None = None
    facts: int = 0
    rows_by_table: dict[str, int] = field(default_factory=dict)
    # The facts that quality has checked; the rest of `done` is still to be checked.
    judged: dict[str, Ranges] = field(default_factory=dict)
    # The frames carried whole from batch to batch, and the folder where each was written last.
    carried: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        held = [{"path": wait.file.path, "batches": wait.batches} for wait in self.held]
        begins = {broker: {"lsn": begin.lsn, "at": begin.at.isoformat()} for broker, begin in self.begins.items()}
        document = {
            "version": VERSION,
            "batch": self.batch,
            "now": self.now.isoformat() if self.now else None,
            "facts": self.facts,
            "done": self.done,
            "held": held,
            "begins": begins,
            "rows": self.rows_by_table,
            "judged": self.judged,
            "carried": self.carried,
        }
        return json.dumps(document, indent=1)

    @staticmethod
    def from_json(text: str | bytes, source: str) -> State:
        document: dict[str, Any] = json.loads(text)
        if document["version"] > VERSION:
            raise StateTooNew(source, document["version"], VERSION)
        return State(
            batch=document["batch"],
            done=_ranges(document["done"]),
            held=[Held(_file(wait["path"]), wait["batches"]) for wait in document["held"]],
            begins={
                b: Begin(begin["lsn"], datetime.fromisoformat(begin["at"])) for b, begin in document["begins"].items()
            },
            now=datetime.fromisoformat(document["now"]) if document["now"] else None,
            facts=document["facts"],
            rows_by_table=document["rows"],
            judged=_ranges(document["judged"]),
            carried=document["carried"],
        )


BEFORE_ALL: Final = State(batch=FIRST_LOAD - 1)


def folder(batch: int) -> str:
    """The folder of a batch with the data carried to the next."""
    return f"{PROGRESS}/{_BATCH}{batch}"


def last_state(root: TableRoot) -> State | None:
    """The state of the last committed batch; None: there is none yet."""
    for batch in sorted(_batches(root), reverse=True):
        name = f"{folder(batch)}/{_NAME}"
        if (text := root.read(name)) is not None:
            return State.from_json(text, name)
    return None


def commit(root: TableRoot, state: State) -> None:
    """Commit the batch. Old states are removed, except those that still hold a carried table."""
    root.write(f"{folder(state.batch)}/{_NAME}", state.to_json().encode())
    needed = {folder.rpartition("/")[0] for folder in state.carried.values()}
    for batch in _batches(root):
        if batch < state.batch - STATES_KEPT and folder(batch) not in needed:
            root.remove(folder(batch))


def _batches(root: TableRoot) -> list[int]:
    numbers = [name.removeprefix(_BATCH) for name in root.folders(PROGRESS) if name.startswith(_BATCH)]
    return [int(number) for number in numbers if number.lstrip("-").isdigit()]


def _ranges(document: dict[str, list[list[int]]]) -> dict[str, Ranges]:
    return {broker: [(first, last) for first, last in ranges] for broker, ranges in document.items()}


def _file(path: str) -> File:
    part: Part | None = parse(path)
    assert part is not None, f"a held file's name is {path}"
    return File(part, HISTORY if f"/{HISTORY}/" in path else INCOMING)
