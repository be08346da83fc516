"""Writes the record layouts into docs/reference/facts.md: `python -m dragoman.journal.tools.facts_page docs/reference/facts.md`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from dragoman.model.facts.layout import FACTS, STORAGE, Layout


def with_generated(page: str, parts: Mapping[str, str]) -> str:
    """The page with each part between its comments `<!-- generated: NAME -->` and `<!-- end -->`."""
    for name, text in parts.items():
        begin, end = f"<!-- generated: {name} -->\n", "\n<!-- end -->"
        before, _, after = page.partition(begin)
        page = before + begin + text + end + after.partition(end)[2]
    return page


def render(page: str) -> str:
    layouts = "\n\n".join(section(fact) for fact in FACTS if not fact.is_numbered)
    return with_generated(page, {"layouts": layouts, "numbered": numbered(), "storage": storage()})


def section(fact: Layout) -> str:
    """A fact with fields of its own, drawn with the offset of each field."""
    fields = [f"{field.at:>3}  {field.type_name:<3}  {field.name:<17} {field.about}".rstrip() for field in fact.fields]
    rest = [f"{fact.rest_at():>3}       {fact.rest}"] if fact.rest else []
    drawing = "\n".join(["```", *fields, *rest, "```"])
    return "\n\n".join([f"### `{fact.name}` (kind {fact.kind})", fact.about, drawing, *filter(None, [fact.notes])])


def numbered() -> str:
    rows = ["| kind | fact | number | small | text | |\n|---|---|---|---|---|---|"]
    for fact in FACTS:
        if fact.is_numbered:
            number, small = (field.name for field in fact.fields)
            rows.append(f"| {fact.kind} | `{fact.name}` | {number} | {small} | {fact.rest or '–'} | {fact.about} |")
    return "\n".join(rows)


def storage() -> str:
    rows = ["| kind | record | bytes after the kind | |\n|---|---|---|---|"]
    for record in STORAGE:
        fields = [f"`{field.type_name} {field.name}`" for field in record.fields]
        rows.append(f"| {record.kind} | `{record.name}` | {', '.join([*fields, record.rest])} | {record.about} |")
    return "\n".join(rows)


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(render(file.read_text(encoding="utf-8")), encoding="utf-8")
