"""How far the collector has been told, in one small file of the data directory: `otel.json`, replaced whole.

    lsn        every span of the facts up to it has been accepted
    open_lsn   the oldest fact whose message is not settled and remembered: what a new process reads again before it goes on
    missed     facts that left the journal before they were told
    refused    spans that the collector will never take

It is written after the collector has accepted, never before: a crash between makes spans come twice, with the same ids.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

CURSOR_NAME: Final = "otel.json"


class Cursor(msgspec.Struct, frozen=True):
    """What the file says."""

    broker: str  # whose facts are counted, in hex
    lsn: int
    open_lsn: int = 0
    missed: int = 0
    refused: int = 0


def read_cursor(directory: Path) -> Cursor | None:
    """None where there is none, or none that can be read: then nobody knows what was told."""
    try:
        return msgspec.json.decode((directory / CURSOR_NAME).read_bytes(), type=Cursor)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def write_cursor(directory: Path, cursor: Cursor) -> None:
    fresh = directory / (CURSOR_NAME + ".new")
    with fresh.open("wb") as file:
        file.write(msgspec.json.encode(cursor) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(directory / CURSOR_NAME)
