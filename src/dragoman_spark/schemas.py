"""The definition of a table: its columns with type, unit and meaning, and their Spark types. No session here.

The lake's own schema (dragoman.lake.schema) is the source of the `facts` table; `tables` declares those that are made from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dragoman.lake import schema as lake

Layer = Literal["silver", "gold"]
# How a table grows. added: each batch adds rows that never change. counted: each batch adds counts, and rows with the same keys are summed
# when read. stated: rebuilt whole each time.
Growth = Literal["added", "counted", "stated"]

SPARK_TYPES: Final[dict[str, T.DataType]] = {
    "byte": T.ByteType(),
    "short": T.ShortType(),
    "int": T.IntegerType(),
    "long": T.LongType(),
    "double": T.DoubleType(),
    "boolean": T.BooleanType(),
    "timestamp": T.TimestampType(),
    "date": T.DateType(),
    "string": T.StringType(),
    "binary": T.BinaryType(),
    # They have no nulls, but Parquet does not record that, and Spark refuses to cast what it read back to it.
    "strings": T.ArrayType(T.StringType(), containsNull=True),
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. `is_key`: there is one row per key; in a counted table all other columns are summed."""

    name: str
    type: str
    about: str
    unit: str = ""
    is_key: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One table: the meaning of its rows, and its columns in order."""

    name: str
    layer: Layer
    growth: Growth
    about: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def keys(self) -> list[str]:
        return [column.name for column in self.columns if column.is_key]

    @property
    def sums(self) -> list[str]:
        return [column.name for column in self.columns if not column.is_key]

    def struct(self) -> T.StructType:
        return T.StructType([T.StructField(c.name, SPARK_TYPES[c.type], nullable=True) for c in self.columns])

    def select(self, frame: DataFrame) -> DataFrame:
        """The table's columns, in order and with their types: the last step of every transform. As SQL text, which goes to Spark in one
        call: for a small batch, passing each expression from Python to Java is most of the cost."""
        casts = [f"cast(`{c.name}` as {_sql_type(c.type)}) as `{c.name}`" for c in self.columns]
        return frame.selectExpr(*casts)

    def merged(self, frame: DataFrame) -> DataFrame:
        """Counts with the same keys, added up."""
        assert self.growth == "counted", f"{self.name} is not counted"
        return self.select(frame.groupBy(self.keys).agg(*[F.sum(name).alias(name) for name in self.sums]))


def _sql_type(name: str) -> str:
    """A type in SQL. The meaning of a plain `timestamp` would depend on the session."""
    return "timestamp_ltz" if name == "timestamp" else SPARK_TYPES[name].simpleString()


FACTS: Final = T.StructType(
    [T.StructField(c.name, SPARK_TYPES[c.type], nullable=not c.is_required) for c in lake.COLUMNS]
)


def kind(name: str) -> int:
    """The number of a kind of fact."""
    return _KIND_NUMBERS[name]


def worded(column: str, words: dict[int, str]) -> Expression:
    """The name of a small number; one of a later version shows as `unknown_n`, null stays null."""
    pairs = ", ".join(f"{number}, '{word}'" for number, word in words.items())
    word = f"element_at(map({pairs}), cast(`{column}` as int))"
    return F.expr(f"if(`{column}` is null, null, coalesce({word}, concat('unknown_', cast(`{column}` as string))))")


_KIND_NUMBERS: Final = {name: number for number, name in lake.KINDS.items()}
