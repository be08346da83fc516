"""Generates docs/reference/tables.md from the tables: `python -m dragoman_spark.tables_page docs/reference/tables.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dragoman.lake.schema import DIALECTS, KINDS, OUTCOMES, REASONS
from dragoman_spark.schemas import SPARK_TYPES, Growth, Layer, Table
from dragoman_spark.tables import TABLES

HEAD = """\
# Tables

What [`dragoman pipeline`](../howto/pipeline.md) makes from the facts of the [lake](lake.md). Silver tables are what happened, a row per
thing; gold tables are answers. Silver keeps the lake's numbers for dialects, kinds, outcomes and reasons (a number costs Spark half of
what a word does; they are [below](#numbers)), gold says the words.

Instants are microseconds, UTC. Durations are milliseconds with a fraction. What is not known, or did not happen, is null. "The lake's
end" is the latest fact that was taken: no answer depends on the clock of the machine it is made on, so it can be had again.

Tables lie under `DATA/tables` (`--out`), as Parquet or Delta; read them with
`dragoman_spark.jobs.tables.table_store.read_table(session, out, "messages")`, which sees what is committed, once, and adds counts up.

| a table is | and then |
|---|---|
| added to | each batch adds rows, which stay as they are |
| counted | each batch adds counts; rows with the same keys are summed when read |
| stated | it is made whole each time |

This page is made from the code: `make docs` rewrites it.
"""

LAYERS: Final[dict[Layer, str]] = {"silver": "Silver: what happened", "gold": "Gold: answers"}
GROWTHS: Final[dict[Growth, str]] = {"added": "added to", "counted": "counted", "stated": "stated"}


def render() -> str:
    lines = [HEAD, *_contents()]
    for layer, title in LAYERS.items():
        lines.append(f"## {title}\n")
        for table in (table for table in TABLES if table.layer == layer):
            lines.extend(_section(table))
    lines.extend(_numbers())
    return "\n".join(lines).rstrip() + "\n"


def _contents() -> Iterator[str]:
    yield "| table | one row is |\n|---|---|"
    for table in TABLES:
        yield f"| [`{table.name}`](#{table.name}) | {_cell(table.about)} |"
    yield ""


def _section(table: Table) -> Iterator[str]:
    yield f"### `{table.name}`\n"
    yield f"{table.about} The table is {GROWTHS[table.growth]}; its key: {', '.join(f'`{key}`' for key in table.keys)}.\n"
    yield "| column | type | unit | meaning |\n|---|---|---|---|"
    for column in table.columns:
        kind = SPARK_TYPES[column.type].simpleString()
        yield f"| `{column.name}` | {_cell(kind)} | {_cell(column.unit)} | {_cell(column.about)} |"
    yield ""


def _numbers() -> Iterator[str]:
    yield "## Numbers\n"
    yield "They are kept for ever; a number that is not here is of a later version, and shows in gold as `unknown_n`. [Facts](facts.md)"
    yield "says what each means.\n"
    yield "| column | numbers |\n|---|---|"
    columns = {
        "`kind`, `ended_by`": KINDS,
        "`client_dialect`, `worker_dialect`": DIALECTS,
        "`outcome`": OUTCOMES,
        "`reason`, `last_reason`": REASONS,
    }
    for name, words in columns.items():
        yield f"| {name} | {' · '.join(f'{number} {word}' for number, word in words.items())} |"


def _cell(text: str) -> str:
    """Escape `|`, which would end the cell."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
