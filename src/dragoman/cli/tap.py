"""`dragoman tap`: what crosses the listeners of a running broker, as it happens."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import click

from dragoman.cli.admin_client import AdminClient
from dragoman.cli.lab.captures import Recorder
from dragoman.cli.lab.readable import readable
from dragoman.cli.options import data_option, json_option
from dragoman.cli.show import print_json_line
from dragoman.printable import printable

SHOWN_SIZE_MAX: Final = 256


@click.command()
@click.option(
    "--listener", "listeners", multiple=True, metavar="NAME", help="Only this one; may be said several times."
)
@click.option(
    "--peer", default="", metavar="ADDR", help="Only peers at this address (or its beginning), or of this identity."
)
@click.option("--command", default="", metavar="WORD", help="Only messages that say this word, as READY or REQUEST.")
@click.option(
    "--record",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write a recording: see `dragoman replay-peer`.",
)
@click.option("--count", type=click.IntRange(1), help="End after so many messages.")
@click.option("--seconds", type=click.FloatRange(0.1), help="End after so long.")
@click.option("--quiet", is_flag=True, help="Print nothing; with --record.")
@data_option
@json_option
def tap(
    listeners: tuple[str, ...],
    peer: str,
    command: str,
    record: Path | None,
    count: int | None,
    seconds: float | None,
    quiet: bool,
    data: Path,
    as_json: bool,
) -> None:
    """Watch what crosses the listeners of a running broker, decoded, until interrupted.

    ▶ is what a peer says, ◀ what the broker says. A broker that nobody watches does nothing for it.
    """
    args = {"listeners": list(listeners), "peer": peer, "command": command}
    size_max = 0 if record is not None or as_json else SHOWN_SIZE_MAX
    end_s = time.monotonic() + seconds if seconds else None
    with ExitStack() as stack:
        recorder = None
        if record is not None:
            recorder = Recorder(stack.enter_context(record.open("w", encoding="utf-8")))
            recorder.note("recorded by dragoman tap")
        client = stack.enter_context(AdminClient(data))
        try:
            for event in client.stream("tap", end_s, size_max=size_max, **args):
                if recorder is not None and event["kind"] in ("opened", "said", "ended"):
                    recorder.add(event)
                if not quiet:
                    print_json_line(event) if as_json else print(printable(line_of(event)), flush=True)
                if event["kind"] == "said" and count is not None:
                    count -= 1
                    if count == 0:
                        return
        except KeyboardInterrupt:
            return


def line_of(event: dict[str, Any]) -> str:
    """One event as one line."""
    kind = event["kind"]
    if kind == "watching":
        return "watching; interrupt to end"
    if kind == "lost":
        return f"… {event['count']} messages came faster than they could be shown"
    about = f"{event['t']:10.4f}  {event['listener']:<16} {event['peer']:<21}"
    if kind == "opened":
        types = event.get("socket_types")
        return f"{about} ●  " + (f"a {types[0]} is here" if types else "is here")
    if kind == "ended":
        return f"{about} ○  is gone"
    frames = [bytes.fromhex(frame) for frame in event["frames"]]
    arrow = "▶" if event["to"] == "broker" else "◀"
    return f"{about} {arrow}  {readable(frames, event['listener'] == 'rq', event['sizes'])}"
