"""The pytest plugin: a `broker` fixture. docs/howto/worker.md shows a test with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dragoman.testing.broker import RunningBroker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    """A real broker of this test's own, keeping nothing (durability `memory`), on free ports of 127.0.0.1."""
    # Imported here: pytest loads this plugin into every run, also those that need no broker.
    from dragoman.testing.broker import RunningBroker

    with RunningBroker(tmp_path / "broker") as running:
        yield running
