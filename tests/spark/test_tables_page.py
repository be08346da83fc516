"""docs/reference/tables.md says what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman_spark.schemas import SPARK_TYPES, Table
from dragoman_spark.tables import TABLES
from dragoman_spark.tables_page import render

PAGE = Path(__file__).parents[2] / "docs/reference/tables.md"


def test_the_page_of_the_tables_is_current() -> None:
    """`make docs` rewrites it."""
    assert PAGE.read_text(encoding="utf-8") == render()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_column_is_explained_and_typed_and_every_table_has_a_key(table: Table) -> None:
    assert table.keys, "rows without a key cannot be told apart"
    assert len(set(table.names)) == len(table.names)
    assert [column.name for column in table.columns if not column.about or column.type not in SPARK_TYPES] == []


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_duration_or_a_size_says_its_unit(table: Table) -> None:
    silent = [
        column.name
        for column in table.columns
        if not column.unit and column.name.endswith(("_ms", "_bytes", "_size", "_per_s"))
    ]
    assert silent == []
