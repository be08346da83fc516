"""Generates docs/reference/crossings.md from the dialects' declarations: `python -m dragoman.cli.crossings_page FILE`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from dragoman.dialects import crossing
from dragoman.dialects.crossing import DIALECTS
from dragoman.dialects.features import BETWEEN, CROSSING, FEATURES
from dragoman.model.words import DIALECT_NAMES

HEAD = """\
# Crossings

A client of any dialect reaches a worker of any other: a queue is one line, whatever dialect its clients and workers speak.
Only the body is carried to the worker and only its answer back, byte for byte; all else crosses when both dialects have a word
for it, or when the broker can do it by itself. This page is made from the declarations in the dialects' descriptions, which the SDK's
refusals and the tests in `tests/crossings` use as well: `make docs` rewrites it.

**Names.** A queue is a `service` in Scale0 and EBUS. The ping-pong dialogue has one queue, `pingpong.queue`: its workers are reached by
that name, and its clients reach every worker that serves it. A topic is a `channel` in EBUS and a queue in RQ.

**Bodies.** The broker never looks into one. A program that expects JSON, or EventMQ's job form, must be sent that, whatever the
client speaks. Where a worker's dialect cannot carry a body (a ping-pong job that reads `PONG`, say), the message waits for another worker, or is
refused if the queue has only such workers.
"""
PUBLISHING = """\
## Publishing

News crosses by name: an eMQP PUBLISH to a topic, an EBUS message on a channel and an RQ BROADCAST to a queue are the same thing. What is
published in any of these reaches, at once and at most once,

- eMQP and EBUS subscribers whose subscription is a prefix of the name;
- RQ consumers of the queue of exactly that name, whatever their priority (with priority 0 they receive nothing else).

Nothing is kept for later subscribers, and the publisher does not learn how many received it.
"""


def render() -> str:
    return "\n".join([HEAD, *overview(), *vocabulary(), *cells(), PUBLISHING, *alone()]).rstrip() + "\n"


def names(features: list[int]) -> str:
    return ", ".join(FEATURES[feature].name for feature in features) or "nothing"


def table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    yield from (lines[0], "|" + "---|" * len(head), *lines[1:], "")


def overview() -> Iterator[str]:
    """The 5 × 5 table."""
    yield "## What survives\n\nRows are clients, columns are workers.\n"
    rows = [
        [f"**{DIALECT_NAMES[client]}**", *(overview_cell(client, worker) for worker in DIALECTS)] for client in DIALECTS
    ]
    yield from table(["client ↓ worker →", *(f"**{DIALECT_NAMES[worker]}**" for worker in DIALECTS)], rows)


def overview_cell(client: int, worker: int) -> str:
    lost = crossing.dropped(client, worker)
    surviving = names(crossing.surviving(client, worker))
    return f"{surviving}<br>*dropped: {names(lost)}*" if lost else surviving


def vocabulary() -> Iterator[str]:
    """Each feature, and how each dialect expresses it."""
    yield "## The words\n"
    for number in CROSSING:
        feature = FEATURES[number]
        yield f"### {feature.name}\n"
        yield f"{feature.about[0].upper()}{feature.about[1:]}.\n"
        rows = []
        for dialect in DIALECTS:
            client = crossing.client_text(dialect, number) or "–"
            worker = crossing.worker_text(dialect, number) or feature.otherwise or "–"
            rows.append([DIALECT_NAMES[dialect], client, worker])
        yield from table(["dialect", "client", "worker"], rows)


def cells() -> Iterator[str]:
    """All 25 cells, one line for each feature that survives."""
    yield "## Cell by cell\n"
    for client in DIALECTS:
        for worker in DIALECTS:
            yield f"### {DIALECT_NAMES[client]} → {DIALECT_NAMES[worker]}\n"
            for feature in crossing.surviving(client, worker):
                yield f"- **{FEATURES[feature].name}**: {crossing.wording(client, worker, feature)}"
            lost = crossing.dropped(client, worker)
            if lost:
                yield f"- dropped: {names(lost)}"
            yield ""


def alone() -> Iterator[str]:
    """Features that concern only a client and the broker."""
    yield "## Between client and broker\n\nThese never reach a worker. The SDK refuses what its dialect lacks and names one that has it.\n"
    rows = []
    for feature in BETWEEN:
        clients = [crossing.client_text(dialect, feature) or "–" for dialect in DIALECTS]
        rows.append([FEATURES[feature].name, FEATURES[feature].about, *clients])
    yield from table(["", "", *(DIALECT_NAMES[dialect] for dialect in DIALECTS)], rows)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
