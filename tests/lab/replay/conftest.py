"""Halls of a test's own: a real broker, and independent peers of every dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.independent.hall import Hall

NewHall = Callable[..., Hall]


@pytest.fixture
def new_hall(tmp_path: Path) -> Iterator[NewHall]:
    """Makes a hall with these settings."""
    made: list[Hall] = []

    def make(*settings: str) -> Hall:
        made.append(Hall(tmp_path / f"data{len(made)}", *settings))
        return made[-1]

    yield make
    for hall in made:
        for guest in hall.guests:
            guest.close()
        hall.end()
