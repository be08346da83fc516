"""Writes blocks of facts as files of the lake.

Invariant: lsns rise strictly and every file is dense. A file is cut where the date changes (UTC, of the facts' instant) and where
lsns jump, and only between blocks; so a broker's files never overlap, and the highest lsn in the lake says where to continue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from dragoman import limits
from dragoman.lake.layout import INCOMING, Part, Tier, broker_name, broker_no, date_of
from dragoman.lake.store import Lake
from dragoman.model.facts.columns import BODIES_FULL, BODIES_HASH, BODIES_NONE, FactColumns

Bodies = Literal["none", "hash", "full"]
BODIES: Final[dict[str, int]] = {"none": BODIES_NONE, "hash": BODIES_HASH, "full": BODIES_FULL}
_DAY_NS: Final = 86_400 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was just written to the lake."""

    part: Part
    size: int


class LakeWriter:
    """Collects rows of one broker; `flush` writes them as files."""

    def __init__(
        self,
        lake: Lake,
        broker_id: bytes,
        bodies: Bodies = "hash",
        next_lsn: int = 1,
        rows_max: int = limits.LAKE_FILE_ROWS,
    ) -> None:
        """`next_lsn`: facts below it are in the lake already and are skipped."""
        from dragoman.lake.arrow import arrow_schema

        assert len(broker_id) == 16, "a broker's id has 16 bytes"
        self.lake = lake
        self.broker = broker_name(broker_id)
        self.next_lsn = next_lsn
        self._broker_no = broker_no(broker_id)
        self._bodies = BODIES[bodies]
        self._schema = arrow_schema(broker_id)
        self._rows_max = rows_max
        self._seen_lsn = 0
        self.oldest_ns = 0  # the instant of the first row that is in no file yet
        self._day = -1
        self._first_lsn = 0
        self._columns = FactColumns(self._bodies)
        self._spare: FactColumns | None = None
        self._cut: list[tuple[Part, FactColumns]] = []
        self._unreported: list[Written] = []

    @property
    def rows(self) -> int:
        """Rows that are collected and in no file yet."""
        return self._columns.rows + sum(columns.rows for _, columns in self._cut)

    @property
    def is_full(self) -> bool:
        """Whether rows should be flushed now, to bound memory."""
        return self.rows >= self._rows_max or self._columns.size() >= limits.LAKE_FILE_BYTES

    def add(self, records: bytes, first_lsn: int, count: int, time_ns: int) -> None:
        """Add the facts of one block: `count` of them from `first_lsn` on, all with the instant `time_ns`."""
        end = first_lsn + count
        assert first_lsn >= self._seen_lsn, f"fact {first_lsn} comes after fact {self._seen_lsn - 1}"
        self._seen_lsn = end
        if end <= self.next_lsn:
            return
        from_lsn = max(first_lsn, self.next_lsn)
        if not self.rows:
            self.oldest_ns = time_ns
        day = time_ns // _DAY_NS
        if self._columns.rows and (day != self._day or from_lsn != self.next_lsn):
            self._cut_here()
        if not self._columns.rows:
            self._first_lsn, self._day = from_lsn, day
        reached = self._columns.add(records, first_lsn, time_ns, from_lsn)
        assert reached == end, f"a block of {count} facts has {reached - first_lsn}"
        self.next_lsn = end

    def flush(self, into: Tier = INCOMING) -> list[Written]:
        """Write all rows as files; return the new files. May be retried after a failure: files written before it are returned then, too."""
        from dragoman.lake.arrow import to_parquet, to_table

        self._cut_here()
        while self._cut:
            part, columns = self._cut[0]
            data = to_parquet(to_table(columns, self._broker_no, self._schema))
            self.lake.put(part, into, data)
            del self._cut[0]
            columns.clear()
            self._spare = columns
            self._unreported.append(Written(part, data.size))
        written, self._unreported = self._unreported, []
        return written

    def _cut_here(self) -> None:
        if self._columns.rows:
            part = Part(self.broker, self._first_lsn, self.next_lsn - 1, date_of(self._day * _DAY_NS))
            self._cut.append((part, self._columns))
            self._columns, self._spare = self._spare or FactColumns(self._bodies), None
