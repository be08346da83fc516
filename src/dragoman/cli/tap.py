"""`dragoman tap`: the live traffic of a running broker's listeners."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, TextIO

import click
from click import FloatRange, IntRange, option

from dragoman.cli.admin_client import AdminClient
from dragoman.cli.options import common_options
from dragoman.cli.show import print_json_line
from dragoman.dialects.description import RISP, TEXT, ZMTP
from dragoman.dialects.registry import wire_of
from dragoman.printable import printable
from dragoman.runtime.admin.risp_text import text_of

SHOWN_SIZE_MAX: Final = 256
FRAME_SHOWN_MAX: Final = 120


@click.command()
@option("--listener", "listeners", multiple=True, metavar="NAME", help="Only this one; may be given several times.")
@option(
    "--peer", default="", metavar="ADDR", help="Only peers at this address (or its beginning), or of this identity."
)
@option("--command", default="", metavar="WORD", help="Only messages with this command, such as READY or REQUEST.")
@option(
    "--record",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write a recording: see `dragoman replay-peer`.",
)
@option("--count", type=IntRange(1), help="End after so many messages.")
@option("--seconds", type=FloatRange(0.1), help="End after so long.")
@option("--quiet", is_flag=True, help="Print nothing; with --record.")
@common_options
def tap(
    record: Path | None,
    count: int | None,
    seconds: float | None,
    quiet: bool,
    data: Path,
    as_json: bool,
    **filters: Any,
) -> None:
    """Watch what crosses the listeners of a running broker, decoded, until interrupted.

    ▶ marks messages from a peer, ◀ messages from the broker. Without a tap the broker does no work for it.
    """
    size_max = 0 if record is not None or as_json else SHOWN_SIZE_MAX
    end_s = time.monotonic() + seconds if seconds else None
    with ExitStack() as stack:
        recorder = None
        if record is not None:
            recorder = Recorder(stack.enter_context(record.open("w", encoding="utf-8")))
            recorder.note("recorded by dragoman tap")
        client = stack.enter_context(AdminClient(data))
        try:
            for event in client.stream("tap", end_s, size_max=size_max, **filters):
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
    """Format one event as one line."""
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
    wire = wire_of(event["listener"])
    shown = readable(frames[0].splitlines()) if wire == TEXT else readable(frames, wire == RISP, event["sizes"])
    return f"{about} {arrow}  {shown}"


def readable(frames: list[bytes], is_risp: bool = False, sizes: list[int] | None = None) -> str:
    """Format one message as one line: printable text unchanged, other bytes in hex, long frames cut with their size.

    `sizes` are the frames' original sizes where the broker cut them.
    """
    if is_risp:
        return text_of(frames[0])
    sizes = sizes or [len(frame) for frame in frames]
    return " · ".join(readable_frame(frame, size) for frame, size in zip(frames, sizes, strict=True))


def readable_frame(frame: bytes, size: int) -> str:
    if size == 0:
        return '""'
    cut = frame[:FRAME_SHOWN_MAX]
    try:
        text = cut.decode()
    except UnicodeDecodeError as error:
        # Text cut in the middle of a character is still text.
        text = cut[: error.start].decode() if error.start >= len(cut) - 3 and len(cut) < size else ""
    shown = text if text and text.isprintable() else f"0x{cut.hex()}"
    return shown if len(cut) == size else f"{shown}… ({size} bytes)"


class Recorder:
    """Writes a recording from the events of a tap. `dragoman_lab.recordings.captures` documents the line format and reads it."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._conns: dict[tuple[str, int], int] = {}  # connections of a listener, numbered from 0
        self._counts: dict[str, int] = {}

    def note(self, text: str) -> None:
        self._write({"note": text})

    def add(self, event: dict[str, Any]) -> None:
        """Record one event: a connection opened or ended, or a message in either direction."""
        listener = event["listener"]
        key = (listener, event["connection"])
        if key not in self._conns:
            self._conns[key] = self._counts.get(listener, 0)
            self._counts[listener] = self._conns[key] + 1
        number = self._conns[key]
        is_raw = wire_of(listener) != ZMTP
        about: dict[str, object] = {"t": event["t"]}
        about |= {"conn": f"conn{number}"} if is_raw else {"link": listener, "conn": number}
        if event["kind"] == "opened":
            for to, socket_type in zip(("broker", "peer"), event.get("socket_types", ()), strict=False):
                self._write({**about, "to": to, "socket_type": socket_type})
        elif event["kind"] == "ended":
            self._write({**about, "to": "broker", "eof": True})
        elif is_raw:
            data = bytes.fromhex(event["frames"][0])
            means = text_of(data) if wire_of(listener) == RISP else _text(data)
            self._write({**about, "to": event["to"], "bytes": data.hex(), "means": means})
        else:
            texts = [_text(bytes.fromhex(frame)) for frame in event["frames"]]
            self._write({**about, "to": event["to"], "frames": event["frames"], "text": texts})

    def _write(self, entry: dict[str, object]) -> None:
        self._file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        self._file.flush()  # recordings often end by Ctrl-C


def _text(frame: bytes) -> str | None:
    try:
        return frame.decode()
    except UnicodeDecodeError:
        return None
