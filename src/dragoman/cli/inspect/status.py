"""`dragoman status`: the broker's current state."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import click
from click import option

from dragoman.cli.admin_client import ask
from dragoman.cli.options import common_options
from dragoman.cli.show import print_json, print_pairs
from dragoman.model.phrases import size


@click.command()
@option("--watch", is_flag=True, help="Show it again every second, until interrupted.")
@common_options
def status(watch: bool, data: Path, as_json: bool) -> None:
    """Show the broker as a whole: listeners, journal, counters.

    Exit code 3 when no broker answers: usable as a health check.
    """
    while True:
        found = ask(data, "status")
        if watch and not as_json:
            click.clear()
        print_json(found) if as_json else print_status(found)
        if not watch:
            return
        time.sleep(1)


# The parts of the response that describe a process beside the broker, with their names for people.
BESIDE: Final = {"index": "index", "lake": "lake", "otel": "traces", "web": "web page"}


def print_status(found: dict[str, Any]) -> None:
    journal, counters, lake = found["journal"], found["counters"], found["lake"]
    last_facts = f"fact {journal['next_lsn'] - 1} written, {journal['synced_lsn']} synced"
    rows: list[tuple[str, object]] = [
        ("version", f"{found['version']} ({found['build']}), pid {found['pid']}, boot {found['boot_no']}"),
        ("data", f"{found['data']}, durability {found['durability']}"),
        ("memory", memory_line(found["memory"])),
        ("connections", found["connections"]),
        ("loop", loop_line(found["loop"])),
        ("journal", f"{size(journal['size'])} in {journal['segments']} segments, {last_facts}"),
        (
            "lake",
            f"{lake['root']}, fact {lake['sealed_lsn']} sealed, {lake['behind']} to come" if lake else "not written",
        ),
        ("traces", traces_line(found["otel"])),
        ("queues", f"{counters['queues']}: {counters['waiting']} waiting, {counters['delayed']} delayed"),
        ("workers", f"{counters['workers']}: {counters['leased']} leased, {counters['slots_free']} slots free"),
        ("settled", f"{counters['settled']} of {counters['accepted']} accepted, {counters['quarantined']} quarantined"),
        ("schedules", counters["schedules"]),
        ("published", f"{counters['published']} since the start, {counters['subscriptions']} subscriptions"),
    ]
    rows += [("listener", f"{name} {address}") for name, address in found["listeners"].items()]
    if found["memory"]["paused"]:
        rows.append(("PAUSED", paused_line(found["memory"])))
    if counters["refusing"]:
        rows.append(("REFUSING", f"new work is refused: {counters['refusing']}"))
    if journal["damaged_blocks"]:
        rows.append(("DAMAGE", f"in {journal['damaged_blocks']} places of the journal: the log has files and offsets"))
    if journal["trouble"]:
        rows.append(("TROUBLE", journal["trouble"]))
    for part, name in BESIDE.items():
        if found[part] and found[part]["trouble"]:
            rows.append(("TROUBLE", f"{name}: {found[part]['trouble']}"))
    print_pairs(rows)


# The kinds of memory that `limits.memory_max` counts, with their names for people.
MEMORY_KINDS: Final = {
    "messages": "messages",
    "uncommitted": "not committed",
    "unfinished": "unfinished messages",
    "news": "unread news",
    "answers": "buffered answers",
    "outboxes": "outboxes",
}


def memory_line(memory: dict[str, Any]) -> str:
    kinds = ", ".join(f"{name} {size(memory[kind])}" for kind, name in MEMORY_KINDS.items() if memory[kind])
    used = f"{size(memory['used'])} of {size(memory['max'])} used" + (f" ({kinds})" if kinds else "")
    return f"{size(memory['resident'])}; {used}"


def paused_line(memory: dict[str, Any]) -> str:
    more = memory["paused"] - len(memory["paused_peers"])
    names = ", ".join(memory["paused_peers"]) + (f" and {more} more" if more else "")
    return f"memory is short: {memory['paused']} senders are not read: {names}"


def loop_line(loop: dict[str, Any]) -> str:
    """How long single callbacks blocked the broker's event loop."""
    longest = f"longest {loop['longest_ns'] / 1e6:.1f} ms ({loop['longest_operation']})" if loop["longest_ns"] else ""
    bound = f"over {loop['bound_ns'] // 1_000_000} ms"
    return ", ".join(part for part in (f"blocked {loop['holds']} times {bound}", longest) if part)


def traces_line(otel: dict[str, Any] | None) -> str:
    if otel is None:
        return "not exported"
    missed = f", {otel['missed_facts']} MISSED" if otel["missed_facts"] else ""
    return f"{otel['endpoint']}, fact {otel['exported_lsn']} exported, {otel['behind']} to come{missed}"
