"""Compaction: joins small files of `incoming` into large files in `history`.

Invariant: the new file is complete before, much later, the old ones are deleted. In between both hold the same facts and the one in
`history` counts (lake/layout), so a crash at any point changes no result. Parts are joined only if they are consecutive and have the
same date, so that the new one is dense, too.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman import limits
from dragoman.errors import LakeDamaged
from dragoman.lake import schema
from dragoman.lake.layout import HISTORY, INCOMING, Part, cover, date_of
from dragoman.lake.store import Lake, Stored
from dragoman.lake.writer import Written
from dragoman.model.units import SECOND_NS


@dataclass(frozen=True, slots=True)
class Tidied:
    """What one step did."""

    written: Written | None = None
    deleted: int = 0


class Compactor:
    """Compacts the parts of one broker. It lists the lake once, and the sealer adds new parts: a broker has only one sealer."""

    def __init__(self, lake: Lake, broker: str, incoming_keep_s: float = limits.LAKE_INCOMING_KEEP_S) -> None:
        self._lake, self._broker, self._keep_s = lake, broker, incoming_keep_s
        incoming = {stored.part: stored for stored in lake.stored(INCOMING, broker)}
        shares = cover(incoming, lake.parts(HISTORY, broker))
        needed = {share.part for share in shares if share.tier == INCOMING}
        whole = {share.part for share in shares if share.tier == INCOMING and share.is_whole}
        self._waiting = [incoming[part] for part in sorted(whole)]  # in lsn order
        self._covered = [stored for part, stored in incoming.items() if part not in needed]

    @property
    def waiting_rows(self) -> int:
        """Rows that are in no file of `history`."""
        return sum(stored.part.rows for stored in self._waiting)

    def add(self, written: Written, now_s: float) -> None:
        self._waiting.append(Stored(written.part, INCOMING, written.size, now_s))

    def step(self, now_s: float, is_all: bool = False) -> Tidied | None:
        """Do one piece of work, if there is one. `is_all`: join even small groups and those of today."""
        over = date_of(int((now_s - limits.LAKE_DATE_OVER_S) * SECOND_NS))
        group = next_group(self._waiting, over, is_all)
        if group:
            return Tidied(written=self._join(group))
        return self._delete_old(now_s)

    def _join(self, group: list[Stored]) -> Written:
        parts = [stored.part for stored in group]
        part = Part(self._broker, parts[0].first_lsn, parts[-1].last_lsn, parts[0].date)
        if len(parts) == 1:
            self._lake.copy(part, INCOMING, HISTORY)
            size = group[0].size
        else:
            size = join(self._lake, parts, part)
        del self._waiting[: len(group)]
        self._covered += group
        return Written(part, size)

    def _delete_old(self, now_s: float) -> Tidied | None:
        old = [stored for stored in self._covered if stored.modified_s <= now_s - self._keep_s]
        old = old[: limits.LAKE_DELETES_MAX]
        for stored in old:
            self._lake.delete(stored.part, INCOMING)
            self._covered.remove(stored)
        for date in {stored.part.date for stored in old} - {date_of(int(now_s * SECOND_NS))}:
            self._lake.remove_empty(date, INCOMING)
        return Tidied(deleted=len(old)) if old else None


def next_group(waiting: Sequence[Stored], over: datetime.date, is_all: bool = False) -> list[Stored]:
    """The parts to join next, from `waiting` in lsn order; empty if none is worth it yet. A group is worth joining if it makes a large
    file, has many files, or can grow no more: its date is before `over`, or the next part does not follow it. A part that is large
    already stays alone."""
    if not waiting or _is_large(waiting[0].part):
        return list(waiting[:1])
    group, rows, size = [waiting[0]], waiting[0].part.rows, waiting[0].size
    for stored in waiting[1:]:
        rows, size = rows + stored.part.rows, size + stored.size
        if not _follows(group[-1].part, stored.part):
            return group
        if rows > limits.LAKE_HISTORY_ROWS_MAX or size > limits.LAKE_HISTORY_SIZE_MAX or _is_large(stored.part):
            return group
        group.append(stored)
    is_much = rows >= limits.LAKE_FILE_ROWS or size >= limits.LAKE_FILE_BYTES or len(group) >= limits.LAKE_PARTS_MAX
    return group if is_much or is_all or group[0].part.date < over else []


def join(lake: Lake, group: Sequence[Part], part: Part) -> int:
    """Write the parts as one file into `history`; return its size in bytes. They are read one at a time."""
    from dragoman.lake.arrow import FileMaker, arrow_schema

    maker: FileMaker | None = None
    for old in group:
        table = lake.read(old, INCOMING)
        lsns = table.column("lsn")
        if (lsns[0].as_py(), lsns[-1].as_py()) != (old.first_lsn, old.last_lsn):
            raise LakeDamaged(lake.path(old, INCOMING), "its facts are not those of its name")
        if maker is None:
            maker = FileMaker(arrow_schema(bytes.fromhex(table.schema.metadata[schema.BROKER_KEY.encode()].decode())))
        maker.add(table)
    assert maker is not None, "nothing to join"
    data = maker.finish()
    lake.put(part, HISTORY, data)
    return int(data.size)


def _follows(before: Part, after: Part) -> bool:
    return before.last_lsn + 1 == after.first_lsn and before.date == after.date


def _is_large(part: Part) -> bool:
    return part.rows >= limits.LAKE_FILE_ROWS
