"""Generates docs/reference/facts.md from the record layouts and the names: `python -m dragoman.journal.tools.facts_page docs/reference/facts.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from dragoman.model.facts.layout import BOOT_SHIFT, CHECKPOINT, FACTS, NUMBER, SMALL, STORAGE, TEXT, Field, Layout
from dragoman.model.words import DIALECT_NAMES, FLAG_NAMES, FLAGS, REASON_NAMES, REASONS, REFUSAL_CODES

HEAD: Final = """\
# Facts

A fact is one thing that happened. The broker's core answers every command with facts; the [journal](journal.md) keeps them; recovery
replays them; `dragoman trace` and `dragoman explain` read them; the [lake](lake.md) is a table of them. There is one vocabulary, and it is this page. Numbers of kinds, reasons
and outcomes are kept in journals for ever: new ones are added at the end, none is ever renumbered or reused.

A fact has no instant of its own: all facts of a block share the block's, `time_ns` (nanoseconds since 1970, UTC). Its `lsn` is its
place in the row of all facts, counted from 1.

This page is made from the code: `make docs` rewrites it.

## Numbers

Messages, workers and schedules share one counter: `boot_no << {boot_shift} | count`. The boot's number is on disk before anything is numbered
by it, so no number ever repeats. People see `1.17` (boot 1, count 17), workers as `w1.17`, schedules as `s1.17`. Queues have small
numbers of their own, in the order they were first named.

## Bytes

All integers are little endian. A record is `u32 size` (of the whole record), `u8 kind`, and the rest:

```
 0        4      5
 ┌────────┬──────┬─────────────┐
 │ size   │ kind │ by kind …   │
 └────────┴──────┴─────────────┘
```
"""

OTHERS: Final = """\
### All others

One shape: `i64 number`, `i64 small`, `text` (the rest).
"""

STATES: Final = """\
### States and outcomes

`waiting`, `leased` (shown as `delivered` once a worker that confirms has done so) and `quarantined` are open; `done` (answered), `rejected` (an attempt failed and there is none left), `expired` and
`cancelled` are ends. Every message is in exactly one; an id the broker does not know is `unknown`.
"""

NEVER: Final = "Never facts: signs of life, slots, renewals of leases, single publishes, bodies of answers.\n"

# Why a command was refused.
REFUSALS: Final = {
    "DRAINING": "the broker is draining and takes no new work",
    "JOURNAL_FULL": "no room for new work; what was accepted goes on",
    "JOURNAL_FAILING": "the disk cannot be written to; nothing new is accepted until it can",
    "QUEUE_FULL": "the queue holds `limits.queue_messages_max` messages",
    "DUPLICATE": "a message with this dedupe key was accepted already",
    "BAD_HEADER": "a header could not be read",
    "BAD_SCHEDULE": "the schedule could not be read",
    "TOO_LONG": "a name, id or header is longer than its limit",
    "NOT_FOUND": "there is no such thing",
    "WRONG_STATE": "it is not in a state that allows this",
    "TOO_MANY_QUEUES": "as many queues as the limit allows",
    "TOO_MANY_SCHEDULES": "as many schedules as the limit allows",
    "INEXPRESSIBLE": "no worker of the queue can be sent this body",
    "QUEUE_CLOSED": "the queue is being drained",
    "TOO_MANY_SERVED": "a worker names more queues than one worker may serve",
    "MEMORY_FULL": "open messages take as much memory as the broker may use",
}


def render() -> str:
    parts = [HEAD.format(boot_shift=BOOT_SHIFT), *records(), "## Words\n", *words()]
    return "\n".join(parts).rstrip() + "\n"


def records() -> Iterator[str]:
    for fact in FACTS:
        if not fact.is_numbered:
            yield from drawn(fact)
    yield OTHERS
    yield from drawing([Field(NUMBER, "i64", "number"), Field(SMALL, "i64", "small")], TEXT, "text")
    yield "| kind | fact | number | small | text | |\n|---|---|---|---|---|---|"
    for fact in FACTS:
        if fact.is_numbered:
            number, small = (field.name for field in fact.fields)
            yield f"| {fact.kind} | `{fact.name}` | {number} | {small} | {fact.rest or '–'} | {fact.about} |"
    yield f"\n{NEVER}"
    yield f"### Storage, not facts\n\nThey take no lsn and reach no reader of facts. Their kinds begin at {CHECKPOINT}.\n"
    yield "| kind | record | bytes after the kind | |\n|---|---|---|---|"
    for record in STORAGE:
        fields = [f"`{field.type_name} {field.name}`" for field in record.fields]
        yield f"| {record.kind} | `{record.name}` | {', '.join([*fields, record.rest])} | {record.about} |"
    yield ""


def drawn(fact: Layout) -> Iterator[str]:
    """One fact in a section of its own, with the offset of each field."""
    yield f"### `{fact.name}` (kind {fact.kind})\n\n{fact.about}\n"
    yield from drawing(fact.fields, fact.rest_at(), fact.rest)
    if fact.notes:
        yield f"{fact.notes}\n"


def drawing(fields: list[Field], rest_at: int, rest: str) -> Iterator[str]:
    yield "```"
    for field in fields:
        yield f"{field.at:>3}  {field.type_name:<3}  {field.name:<17} {field.about}".rstrip()
    if rest:
        yield f"{rest_at:>3}       {rest}"
    yield "```\n"


def words() -> Iterator[str]:
    yield "### Dialects\n\n| number | word |\n|---|---|"
    for number, name in enumerate(DIALECT_NAMES):
        yield f"| {number} | `{name}`{': the broker itself, as for the message of a schedule' if number == 0 else ''} |"
    yield "\n### Flags of an accepted message\n\n| bit | word | meaning |\n|---|---|---|"
    yield from meanings({1 << bit: name for bit, name in enumerate(FLAG_NAMES)}, FLAGS)
    yield f"\n{STATES}"
    yield "### Reasons\n\n| number | word | meaning |\n|---|---|---|"
    yield from meanings(dict(enumerate(REASON_NAMES)), REASONS)
    yield "\n### Refusals\n\nWhy a command was not taken. A refusal is an answer, not a fact.\n"
    yield "| number | code | meaning |\n|---|---|---|"
    yield from meanings(dict(enumerate(REFUSAL_CODES[1:], 1)), REFUSALS)


def meanings(names: Mapping[int, str], about: Mapping[str, str]) -> Iterator[str]:
    for number, name in names.items():
        yield f"| {number} | `{name}` | {about[name]} |"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
