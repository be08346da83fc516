"""One broker for all tests of a file; every test leaves it empty."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.independent.hall import Hall


@pytest.fixture(scope="module")
def shared_hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    hall = Hall(tmp_path_factory.mktemp("hall") / "data")
    yield hall
    hall.end()


@pytest.fixture
def hall(shared_hall: Hall) -> Iterator[Hall]:
    yield shared_hall
    shared_hall.clear()
