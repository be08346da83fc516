"""Export progress, in one small file of the data directory: `otel.json`, replaced atomically.

    lsn        the collector has accepted every span of the facts up to it
    open_lsn   the oldest fact of an unsettled message that is remembered: a new process reads again from here before it continues
    missed     facts that left the journal before they were exported
    refused    spans that the collector will never accept

It is written after the collector has accepted, never before: after a crash in between, spans are sent twice, with the same ids.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

CURSOR_NAME: Final = "otel.json"


class Cursor(msgspec.Struct, frozen=True):
    """The file's contents."""

    broker: str  # the broker's id, in hex
    lsn: int
    open_lsn: int = 0
    missed: int = 0
    refused: int = 0


def read_cursor(directory: Path) -> Cursor | None:
    """The cursor; None if there is none or it cannot be read: then what was exported is unknown."""
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
