"""Conversion of fact columns to Arrow arrays, whole columns at a time, without a loop over rows; and of Arrow tables to Parquet files.

Arrow's types follow from lake/schema; the numbers that mean "absent" (model/facts/columns) become nulls here.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from librt.strings import BytesWriter
from pyarrow import parquet

from dragoman.lake import schema
from dragoman.model.facts.columns import BODIES_FULL, NO_BYTE, NO_INT, NO_LONG, FactColumns

ARROW_TYPES: Final[dict[str, pa.DataType]] = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "int": pa.int32(),
    "long": pa.int64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
}
_NS_PER_US: Final = 1000
# Spark splits a file at row groups, and its vectorised reader skips by their statistics.
ROW_GROUP_ROWS: Final = 250_000
ZSTD_LEVEL: Final = 2  # level 3 takes a fifth longer and saves nothing here
_DELTA: Final = frozenset({"lsn", "at", "message_no", "schedule_no", "timeout_us", "expires_at", "due_at", "accepted_at"}) | {
    "first_leased_at", "leased_at", "delivered_at"
}  # fmt: skip
_PLAIN: Final = frozenset({"body_hash", "body", "client_id"})
_NAMES: Final = [column.name for column in schema.COLUMNS]


def arrow_schema(broker_id: bytes) -> pa.Schema:
    """The schema of the `facts` table for one broker's files, with the version and the broker's whole id as metadata."""
    fields = [pa.field(c.name, ARROW_TYPES[c.type], nullable=not c.is_required) for c in schema.COLUMNS]
    return pa.schema(fields, {schema.VERSION_KEY: str(schema.VERSION), schema.BROKER_KEY: broker_id.hex()})


def to_table(columns: FactColumns, broker_no: int, table_schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays([_column(c, columns, broker_no) for c in schema.COLUMNS], schema=table_schema)


def _array(out: BytesWriter, width: pa.DataType, rows: int) -> pa.Array:
    return pa.Array.from_buffers(width, rows, [None, pa.py_buffer(out.getvalue())])


def _nulled(values: pa.Array, absent: int | None) -> pa.Array:
    if absent is None:
        return values
    return pc.if_else(pc.equal(values, pa.scalar(absent, values.type)), pa.scalar(None, values.type), values)


def _varying(out: BytesWriter, sizes: BytesWriter, target: pa.DataType, rows: int) -> pa.Array:
    """Sizes become offsets: Arrow's are running sums, and a null takes no bytes."""
    counts = _array(sizes, pa.int32(), rows)
    is_there = pc.greater_equal(counts, pa.scalar(0, pa.int32()))
    ends = pc.cumulative_sum(pc.max_element_wise(counts, pa.scalar(0, pa.int32())))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    validity = is_there.buffers()[1]
    return pa.Array.from_buffers(target, rows, [validity, offsets.buffers()[1], pa.py_buffer(out.getvalue())])


# How numbers are collected: their width, and the number that means "absent"; of the ids that end in `_no` and of instants that is 0.
_NUMBERS: Final[dict[str, tuple[pa.DataType, int]]] = {
    "byte": (pa.uint8(), NO_BYTE),
    "boolean": (pa.uint8(), NO_BYTE),
    "short": (pa.int16(), NO_INT),
    "int": (pa.int32(), NO_INT),
    "long": (pa.int64(), NO_LONG),
}


def _column(column: schema.Column, columns: FactColumns, broker_no: int) -> pa.Array:
    name, target, rows = column.name, ARROW_TYPES[column.type], columns.rows
    if name == "broker_id":
        return pa.repeat(pa.scalar(broker_no, target), rows)
    if name == "body":
        is_there = columns.bodies == BODIES_FULL
        return _varying(columns.body, columns.body_bytes, target, rows) if is_there else pa.nulls(rows, target)
    if column.type == "string":
        return _varying(getattr(columns, name), getattr(columns, f"{name}_size"), target, rows)
    if column.type == "timestamp" or name == "timeout_us":
        out = columns.time_ns if name == "at" else getattr(columns, f"{name[:-3]}_ns")
        values = _nulled(_array(out, pa.int64(), rows), None if column.is_required else 0)
        return pc.divide(values, _NS_PER_US).cast(target)
    width, absent = _NUMBERS[column.type]
    none = None if column.is_required else 0 if name.endswith("_no") else absent
    return _nulled(_array(getattr(columns, name), width, rows), none).cast(target, safe=False)


class FileMaker:
    """One Parquet file, built in memory from consecutive tables, with encodings chosen by measurement.

    Numbers that rise or cluster (lsn, instants, message numbers) are delta-encoded; those with few values use a dictionary; hashes, ids and
    bodies are plain. All columns are compressed with zstd. Every reader of Parquet supports these encodings, Spark's vectorised one included.
    """

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
