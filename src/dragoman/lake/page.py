"""Writes the schema into docs/reference/lake.md: `python -m dragoman.lake.page docs/reference/lake.md`."""

from __future__ import annotations

import sys
from pathlib import Path

from dragoman.journal.tools.facts_page import with_generated
from dragoman.lake import schema


def render(page: str) -> str:
    return with_generated(page, {"columns": columns(), "numbers": numbers()})


def columns() -> str:
    rows = ["| column | type | meaning |\n|---|---|---|"]
    for column in schema.COLUMNS:
        kind = f"{column.type}, never null" if column.is_required else column.type
        rows.append(f"| `{column.name}` | {kind} | {column.about} |")
    return "\n".join(rows)


def numbers() -> str:
    named = {"`kind`": schema.KINDS, "`client_dialect`, `worker_dialect`": schema.DIALECTS}
    rows = [
        f"| {column} | {', '.join(f'{number} {name}' for number, name in names.items())} |"
        for column, names in (named | {"`outcome`": schema.OUTCOMES, "`reason`": schema.REASONS}).items()
    ]
    return "\n".join(["| column | numbers |\n|---|---|", *rows])


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(render(file.read_text(encoding="utf-8")), encoding="utf-8")
