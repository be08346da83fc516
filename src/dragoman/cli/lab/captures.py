"""Recordings of conversations: one JSON object per line, in the order in which things happened.

    {"t": 1.475, "link": "backend", "conn": 0, "to": "broker", "socket_type": "DEALER"}
    {"t": 2.458, "link": "backend", "conn": 0, "to": "peer", "frames": ["", "504f4e47"], "text": ["", "PONG"]}
    {"t": 9.072, "link": "backend", "conn": 0, "to": "broker", "eof": true}
    {"t": 0.403, "conn": "worker", "to": "broker", "bytes": "01a004…", "means": "CLEAR QUEUE[4]=b'jobs' …"}      RQ
    {"note": "what the scenario is about"}

`t` is seconds since the recording began, `link` the port, `conn` the connection at it. `text` and `means` are for people; a reader goes
by `frames` and `bytes`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from dragoman.cli.lab.errors import BadRecording
from dragoman.runtime.risp_text import text_of


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a recording. Exactly one of the four last says what it is about."""

    line_no: int
    t_s: float
    link: str
    conn: str
    to_broker: bool
    socket_type: str = ""
    frames: list[bytes] | None = None
    data: bytes | None = None
    is_eof: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.link, self.conn


def read(path: Path) -> list[Entry]:
    """All lines but the notes; `BadRecording` names the first that cannot be read."""
    entries: list[Entry] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
            if "note" not in found:
                entries.append(_entry(number, found))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadRecording(str(path), number, f"{type(error).__name__}: {error}") from error
    return entries


def _entry(number: int, found: dict[str, Any]) -> Entry:
    if found["to"] not in ("broker", "peer"):
        raise ValueError(f"`to` is {found['to']!r}")
    frames = [bytes.fromhex(frame) for frame in found["frames"]] if "frames" in found else None
    data = bytes.fromhex(found["bytes"]) if "bytes" in found else None
    entry = Entry(
        number,
        float(found["t"]),
        str(found.get("link", "")),
        str(found["conn"]),
        found["to"] == "broker",
        str(found.get("socket_type", "")),
        frames,
        data,
        bool(found.get("eof", False)),
    )
    if not (entry.socket_type or frames is not None or data is not None or entry.is_eof):
        raise ValueError("nothing is said")
    return entry


class Recorder:
    """Writes a recording from the events of a tap."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._conns: dict[tuple[str, int], int] = {}  # connections of a listener, numbered from 0
        self._counts: dict[str, int] = {}

    def note(self, text: str) -> None:
        self._write({"note": text})

    def add(self, event: dict[str, Any]) -> None:
        """One event: a connection opened or ended, or something was said."""
        listener = event["listener"]
        key = (listener, event["connection"])
        if key not in self._conns:
            self._conns[key] = self._counts.get(listener, 0)
            self._counts[listener] = self._conns[key] + 1
        number = self._conns[key]
        about: dict[str, object] = {"t": event["t"]}
        about |= {"conn": f"conn{number}"} if listener == "rq" else {"link": listener, "conn": number}
        if event["kind"] == "opened":
            for to, socket_type in zip(("broker", "peer"), event.get("socket_types", ()), strict=False):
                self._write({**about, "to": to, "socket_type": socket_type})
        elif event["kind"] == "ended":
            self._write({**about, "to": "broker", "eof": True})
        elif listener == "rq":
            data = bytes.fromhex(event["frames"][0])
            self._write({**about, "to": event["to"], "bytes": data.hex(), "means": text_of(data)})
        else:
            texts = [_text(bytes.fromhex(frame)) for frame in event["frames"]]
            self._write({**about, "to": event["to"], "frames": event["frames"], "text": texts})

    def _write(self, entry: dict[str, object]) -> None:
        self._file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        self._file.flush()  # a recording ends when somebody presses Ctrl-C


def _text(frame: bytes) -> str | None:
    try:
        return frame.decode()
    except UnicodeDecodeError:
        return None


def links_of(entries: Iterable[Entry]) -> list[str]:
    """The ports of a recording, in the order they appear."""
    return list(dict.fromkeys(entry.link for entry in entries))
