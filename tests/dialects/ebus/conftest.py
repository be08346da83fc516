"""Brokers of a test's own, ended with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.runtime.daemon import Daemon

NewBroker = Callable[..., Daemon]


@pytest.fixture
def new_broker(tmp_path: Path) -> Iterator[NewBroker]:
    """Makes a broker that is not yet started."""
    made: list[Daemon] = []

    def make(*settings: str) -> Daemon:
        made.append(Daemon(tmp_path / f"data{len(made)}", *settings))
        return made[-1]

    yield make
    for broker in made:
        if broker.program is not None:
            broker.kill()


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One that the tests of a file share: services have names of their own there."""
    broker = Daemon(tmp_path_factory.mktemp("common") / "data").start()
    yield broker
    broker.kill()
