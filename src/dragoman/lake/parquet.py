"""Writes a table of facts as a Parquet file, with encodings chosen by measurement.

Numbers that rise or cluster (lsn, instants, message numbers) are delta-encoded; those with few values use a
dictionary; hashes, ids and bodies are plain. All columns are compressed with zstd. Every reader of Parquet supports these encodings,
Spark's vectorised one included.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyarrow import parquet

from dragoman.lake import schema

# Spark splits a file at row groups, and its vectorised reader skips by their statistics.
ROW_GROUP_ROWS: Final = 250_000
ZSTD_LEVEL: Final = 2  # level 3 takes a fifth longer and saves nothing here
_DELTA: Final = frozenset({"lsn", "at", "message_no", "schedule_no", "timeout_us", "expires_at", "due_at", "accepted_at"}) | {
    "first_leased_at", "leased_at", "delivered_at"
}  # fmt: skip
_PLAIN: Final = frozenset({"body_hash", "body", "client_id"})
_NAMES: Final = [column.name for column in schema.COLUMNS]


class FileMaker:
    """One file, built in memory from consecutive tables."""

    def __init__(self, file_schema: pa.Schema) -> None:
        self._schema = file_schema
        self._sink = pa.BufferOutputStream()
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._writer = parquet.ParquetWriter(
            self._sink,
            file_schema,
            compression="zstd",
            compression_level=ZSTD_LEVEL,
            use_dictionary=[name for name in _NAMES if name not in _DELTA and name not in _PLAIN],
            column_encoding={name: "DELTA_BINARY_PACKED" for name in _NAMES if name in _DELTA},
            coerce_timestamps="us",
            store_schema=False,  # Arrow's own copy of the schema takes a third of a small file and adds no information
        )
        self._writer.add_key_value_metadata(file_schema.metadata)

    def add(self, table: pa.Table) -> None:
        """Buffer rows until they make a row group, so that many small tables do not make many small groups."""
        self._waiting.append(fitted(table, self._schema))
        self._waiting_rows += table.num_rows
        if self._waiting_rows >= ROW_GROUP_ROWS:
            self._write()

    def finish(self) -> pa.Buffer:
        self._write()
        self._writer.close()
        return self._sink.getvalue()

    def _write(self) -> None:
        if self._waiting:
            rows = pa.concat_tables(self._waiting).combine_chunks()
            self._waiting, self._waiting_rows = [], 0
            self._writer.write_table(rows, row_group_size=2 * ROW_GROUP_ROWS)


def to_parquet(table: pa.Table) -> pa.Buffer:
    maker = FileMaker(table.schema)
    maker.add(table)
    return maker.finish()


def fitted(table: pa.Table, target: pa.Schema) -> pa.Table:
    """A table of an older version converted to this schema: columns added later are null."""
    arrays = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in target
    ]
    return pa.Table.from_arrays(arrays, schema=target)
