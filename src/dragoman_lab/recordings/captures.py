"""The format of recordings that `dragoman tap --record` writes: one JSON object per line, in the order of events.

    {"t": 1.475, "link": "backend", "conn": 0, "to": "broker", "socket_type": "DEALER"}
    {"t": 2.458, "link": "backend", "conn": 0, "to": "peer", "frames": ["", "504f4e47"], "text": ["", "PONG"]}
    {"t": 9.072, "link": "backend", "conn": 0, "to": "broker", "eof": true}
    {"t": 0.403, "conn": "worker", "to": "broker", "bytes": "01a004…", "means": "CLEAR QUEUE[4]=b'jobs' …"}      RQ
    {"note": "what the scenario is about"}

`t` is seconds since the recording began, `link` the port, `conn` the connection at it. `text` and `means` are for people; a reader uses
`frames` and `bytes`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import OperatorError, coded, error


@error("BAD_RECORDING", "{path}, line {line_no}: {problem}", exit_code=2)
class BadRecording(OperatorError):
    path: str
    line_no: int
    problem: str


@coded("REPLAY_FAILED")
class ReplayFailed(OperatorError):
    """A recorded peer cannot be played: a listener is missing, or cannot be connected to."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a recording. Exactly one of the last four fields is set and gives its kind."""

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
    """All lines but the notes; raises `BadRecording` for the first that cannot be parsed."""
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
        raise ValueError("it has neither socket_type, frames, bytes nor eof")
    return entry
