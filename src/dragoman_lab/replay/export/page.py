"""Renders a script as a pytest file: tables of plain literals, and one test."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from dragoman.model.phrases import count_of
from dragoman.runtime.search.instants import written
from dragoman_lab.replay.export.script import Script

LEFT_OUT_SHOWN_MAX: Final = 20
PLAYED: Final = "start=START, settings=SETTINGS, clients=CLIENTS, workers=WORKERS, messages=MESSAGES, story=STORY"


def write_page(script: Script, what: str, notes: list[str]) -> str:
    """`what`: the slice, in words. `notes`: what else a reader should know."""
    cast = script.cast
    parts = [
        '"""' + "\n".join(preface(script, what, notes)) + '\n"""',
        "from dragoman_lab.replay import replay",
        f"START = {literal(written(script.start_ns))}  # second 0 of the story, by the wall clock",
        f"SETTINGS = {table(script.settings.items())}",
        f"CLIENTS = {table(cast.clients.items())}",
        f"WORKERS = {table(cast.workers.items())}",
        f"MESSAGES = {table(cast.messages.items())}",
        f"STORY = {rows(script.story)}",
        f"LIVES = {table(script.lives.items())}",
    ]
    test = [
        "",
        "def test_the_same_lives_come_out() -> None:",
        f"    told = replay({PLAYED})",
        "    told.check_lives(LIVES)",
    ]
    if script.is_ordered:
        test.append("    told.check_order(STORY, LIVES)")
    return "\n\n".join([*parts, "\n".join(test)]) + "\n"


def preface(script: Script, what: str, notes: list[str]) -> list[str]:
    lines = [
        f"{what}: {count_of(len(script.lives), 'message')}.",
        "",
        "Written by `dragoman export-test`. STORY says what clients, workers and operators did, LIVES what the broker made of it.",
        *notes,
    ]
    if not script.is_ordered:
        lines.append(
            "The order in which messages were given out does not come out of the simulator, and is not checked."
        )
    if script.by_hand:
        lines.append(
            f"{count_of(script.by_hand, 'lease')} put there by hand (`is given`): whose turn it was, no fact tells."
        )
    for message, why in list(script.left_out.items())[:LEFT_OUT_SHOWN_MAX]:
        lines.append(f"Played, but not checked: {message}: {why}.")
    if len(script.left_out) > LEFT_OUT_SHOWN_MAX:
        lines.append(f"And {len(script.left_out) - LEFT_OUT_SHOWN_MAX} more that are not checked.")
    return [line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') for line in lines]


def table(entries: Iterable[tuple[str, Any]]) -> str:
    lines = [f"    {literal(name)}: {literal(entry)},\n" for name, entry in entries]
    return "{\n" + "".join(lines) + "}" if lines else "{}"


def rows(story: list[tuple[Any, ...]]) -> str:
    return "[\n" + "".join(f"    {literal(row)},\n" for row in story) + "]"


def literal(value: Any) -> str:
    """A Python literal with double quotes."""
    if isinstance(value, str):
        return json.dumps(value) if value.isprintable() and value.isascii() else repr(value)
    if isinstance(value, bool) or not isinstance(value, (Mapping, list, tuple)):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{literal(name)}: {literal(entry)}" for name, entry in value.items()) + "}"
    items = ", ".join(literal(item) for item in value)
    if isinstance(value, list):
        return f"[{items}]"
    return f"({items},)" if len(value) == 1 else f"({items})"
