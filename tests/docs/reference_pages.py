"""Rewrites the generated files: `python -m tests.docs.reference_pages docs/reference contrib/dragoman.toml`.

The prose of a page is in the page. What the code declares (commands, settings, crossings, layouts of facts, columns of the lake) stands
between comments, `<!-- generated: NAME -->` and `<!-- end -->`, and is replaced.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click

from dragoman.cli.root import dragoman
from dragoman.dialects import crossing
from dragoman.dialects.crossing import DIALECTS
from dragoman.dialects.features import BETWEEN, CROSSING, FEATURES
from dragoman.lake import schema
from dragoman.model.enums import DIALECT_NAMES
from dragoman.model.facts.layout import FACTS, STORAGE, Layout
from dragoman.runtime.config import Config, render_toml
from dragoman.runtime.config.kinds import write_text
from dragoman.runtime.config.listeners import ALL_LISTENERS, EXPECTED_ADDRESS
from dragoman.runtime.config.loading import value_of
from dragoman.runtime.config.page import LISTEN_ABOUT
from dragoman.runtime.config.sections import SECTIONS, all_settings, settings_of
from dragoman.runtime.config.sources import environment_name


def render(name: str, page: str) -> str:
    """The page of this name with its generated parts as they are now."""
    for part, lines in PAGES[name].items():
        begin, end = f"<!-- generated: {part} -->\n", "\n<!-- end -->"
        before, _, after = page.partition(begin)
        page = before + begin + "\n".join(lines()).rstrip() + end + after.partition(end)[2]
    return page


def table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    yield from (lines[0], "|" + "---|" * len(head), *lines[1:], "")


def commands() -> Iterator[str]:
    yield from command_sections(dragoman, click.Context(dragoman, info_name="dragoman"), 2)


def command_sections(group: click.Group, context: click.Context, depth: int) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from command_section(command, context, name, depth)


def command_section(command: click.Command, parent: click.Context, name: str, depth: int) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent, **command.context_settings)
    yield f"{'#' * depth} `{context.command_path}`\n"
    yield inspect.cleandoc(command.help or "").replace("\b\n", "") + "\n"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```\n{context.command_path} {usage}\n```\n"
    options = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
    if options:
        records = [option.get_help_record(context) or ("", "") for option in options]
        # A `|` would end the table's cell.
        cells = [(names.replace("|", "\\|"), about.replace("|", "\\|")) for names, about in records]
        yield from table(["option", "meaning"], [[f"`{names}`", about] for names, about in cells])
    if isinstance(command, click.Group):
        yield from command_sections(command, context, depth + 1)


def settings() -> Iterator[str]:
    config, data = Config(), all_settings()["data"]
    yield f"## `data`\n\nDefault `{data.kind.write(config.data)}`, variable `{environment_name('data')}`. {data.about}\n"
    yield f"## `[listen]`\n\n{LISTEN_ABOUT}\n\nExpected: {EXPECTED_ADDRESS}.\n"
    listeners = [
        [f"`{write_text(name)}`", f"`{address}`", about, f"`{environment_name('listen.' + name)}`"]
        for name, (address, about) in ALL_LISTENERS.items()
    ]
    yield from table(["key", "default", "who connects", "variable"], listeners)
    for section, section_type in SECTIONS.items():
        yield f"## `[{section}]`\n\n{section_type.__doc__}\n"
        rows = []
        for name, one in settings_of(section_type).items():
            default = one.kind.write(value_of(config, f"{section}.{name}"))
            meaning = one.about + (" *reload*" if one.reloadable else "")
            rows.append([f"`{name}`", f"`{default}`", one.kind.expected, meaning])
        yield from table(["key", "default", "expected", "meaning"], rows)


def names(features: list[int]) -> str:
    return ", ".join(FEATURES[feature].name for feature in features) or "nothing"


def overview() -> Iterator[str]:
    """What survives each crossing: a row for each client, a column for each worker."""
    rows = []
    for client in DIALECTS:
        row = [f"**{DIALECT_NAMES[client]}**"]
        for worker in DIALECTS:
            lost, surviving = crossing.dropped(client, worker), names(crossing.surviving(client, worker))
            row.append(f"{surviving}<br>*dropped: {names(lost)}*" if lost else surviving)
        rows.append(row)
    yield from table(["client ↓ worker →", *(f"**{DIALECT_NAMES[worker]}**" for worker in DIALECTS)], rows)


def vocabulary() -> Iterator[str]:
    """Each feature, and how each dialect expresses it."""
    for number in CROSSING:
        feature = FEATURES[number]
        yield f"### {feature.name}\n\n{feature.about[0].upper()}{feature.about[1:]}.\n"
        rows = []
        for dialect in DIALECTS:
            client = crossing.client_text(dialect, number) or "–"
            worker = crossing.worker_text(dialect, number) or feature.otherwise or "–"
            rows.append([DIALECT_NAMES[dialect], client, worker])
        yield from table(["dialect", "client", "worker"], rows)


def cells() -> Iterator[str]:
    """All 25 cells, one line for each feature that survives."""
    for client in DIALECTS:
        for worker in DIALECTS:
            yield f"### {DIALECT_NAMES[client]} → {DIALECT_NAMES[worker]}\n"
            for feature in crossing.surviving(client, worker):
                yield f"- **{FEATURES[feature].name}**: {crossing.wording(client, worker, feature)}"
            lost = crossing.dropped(client, worker)
            if lost:
                yield f"- dropped: {names(lost)}"
            yield ""


def between() -> Iterator[str]:
    """Features that concern only a client and the broker."""
    rows = []
    for feature in BETWEEN:
        clients = [crossing.client_text(dialect, feature) or "–" for dialect in DIALECTS]
        rows.append([FEATURES[feature].name, FEATURES[feature].about, *clients])
    yield from table(["", "", *(DIALECT_NAMES[dialect] for dialect in DIALECTS)], rows)


def layouts() -> Iterator[str]:
    """Each fact with fields of its own, drawn with the offset of each field."""
    for fact in FACTS:
        if not fact.is_numbered:
            yield f"### `{fact.name}` (kind {fact.kind})\n\n{fact.about}\n\n{drawing(fact)}\n"
            if fact.notes:
                yield f"{fact.notes}\n"


def drawing(fact: Layout) -> str:
    fields = [f"{field.at:>3}  {field.type_name:<3}  {field.name:<17} {field.about}".rstrip() for field in fact.fields]
    rest = [f"{fact.rest_at():>3}       {fact.rest}"] if fact.rest else []
    return "\n".join(["```", *fields, *rest, "```"])


def numbered() -> Iterator[str]:
    rows = []
    for fact in FACTS:
        if fact.is_numbered:
            number, small = (field.name for field in fact.fields)
            rows.append([str(fact.kind), f"`{fact.name}`", number, small, fact.rest or "–", fact.about])
    yield from table(["kind", "fact", "number", "small", "text", ""], rows)


def storage() -> Iterator[str]:
    rows = []
    for record in STORAGE:
        fields = [f"`{field.type_name} {field.name}`" for field in record.fields]
        rows.append([str(record.kind), f"`{record.name}`", ", ".join([*fields, record.rest]), record.about])
    yield from table(["kind", "record", "bytes after the kind", ""], rows)


def columns() -> Iterator[str]:
    rows = []
    for column in schema.COLUMNS:
        kind = f"{column.type}, never null" if column.is_required else column.type
        rows.append([f"`{column.name}`", kind, column.about])
    yield from table(["column", "type", "meaning"], rows)


def numbers() -> Iterator[str]:
    named = {"`kind`": schema.KINDS, "`client_dialect`, `worker_dialect`": schema.DIALECTS}
    named |= {"`outcome`": schema.OUTCOMES, "`reason`": schema.REASONS}
    rows = [
        [column, ", ".join(f"{number} {name}" for number, name in names.items())] for column, names in named.items()
    ]
    yield from table(["column", "numbers"], rows)


PAGES: Final[dict[str, dict[str, Callable[[], Iterator[str]]]]] = {
    "cli.md": {"commands": commands},
    "config.md": {"settings": settings},
    "crossings.md": {"overview": overview, "vocabulary": vocabulary, "cells": cells, "between": between},
    "facts.md": {"layouts": layouts, "numbered": numbered, "storage": storage},
    "lake.md": {"columns": columns, "numbers": numbers},
}

if __name__ == "__main__":
    for name in PAGES:
        file = Path(sys.argv[1]) / name
        file.write_text(render(name, file.read_text(encoding="utf-8")), encoding="utf-8")
    Path(sys.argv[2]).write_text(render_toml(Config()), encoding="utf-8")
