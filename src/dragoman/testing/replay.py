"""`replay` under the name by which older exported tests import it. `dragoman_lab` provides it, by an entry point."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, Final

ENTRY_POINTS: Final = "dragoman.testing"


def replay(**tables: Any) -> Any:
    """Replay a story and return the histories of its messages: see `dragoman_lab.replay`."""
    (provided,) = entry_points(group=ENTRY_POINTS, name="replay")
    return provided.load()(**tables)
