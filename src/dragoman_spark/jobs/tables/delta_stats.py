"""File statistics for a Delta log, so that readers can skip files: rows, nulls, minima and maxima, from the file's own footer.

Instants are in whole milliseconds, the minimum rounded down and the maximum up: a range may be wider than the data, never
narrower. Texts, fractions and lists are left out.
"""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from typing import Any, Final

from dragoman_spark.schemas import Table

_TOLD: Final = frozenset({"byte", "short", "int", "long", "date", "timestamp"})


def stats(table: Table, footer: Any) -> str:
    """A file's statistics in the log's format, from its Parquet footer."""
    chunks = _chunks(footer)
    nulls, least, greatest = {}, {}, {}
    for column in table.columns:
        found = [chunk.statistics for chunk in chunks.get(column.name, [])]
        if not found or not all(one is not None and one.has_null_count for one in found):
            continue
        nulls[column.name] = sum(one.null_count for one in found)
        filled = [one for one in found if one.has_min_max]
        # A row group without minimum and maximum has nulls only, or no statistics: only complete statistics count.
        is_whole = sum(one.num_values for one in filled) + nulls[column.name] == footer.num_rows
        if column.type in _TOLD and filled and is_whole:
            least[column.name] = _told(min(one.min for one in filled), 0)
            greatest[column.name] = _told(max(one.max for one in filled), 999)
    return json.dumps({"numRecords": footer.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls})


def _chunks(footer: Any) -> dict[str, list[Any]]:
    """The chunks of each column, over all row groups."""
    found: dict[str, list[Any]] = {}
    for n in range(footer.num_row_groups):
        group = footer.row_group(n)
        for index in range(group.num_columns):
            chunk = group.column(index)
            found.setdefault(chunk.path_in_schema, []).append(chunk)
    return found


def _told(value: Any, up_us: int) -> Any:
    if isinstance(value, datetime):
        return (value + timedelta(microseconds=up_us)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    return value.isoformat() if isinstance(value, date) else value
