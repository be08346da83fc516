"""Brokers with their page, and a visitor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.client.app import App
from dragoman.runtime.config.listeners import ALL_LISTENERS
from tests.runtime.daemon import FREE, Daemon
from tests.web.visitor import Visitor

NewBroker = Callable[..., Daemon]


def daemon_with_page(data: Path, *settings: str, **options: Any) -> Daemon:
    return Daemon(data, *settings, **({"listen": dict.fromkeys(ALL_LISTENERS, FREE)} | options))


@pytest.fixture
def new_broker(tmp_path: Path) -> Iterator[NewBroker]:
    """Makes a broker that is not yet started."""
    made: list[Daemon] = []

    def make(*settings: str, **options: Any) -> Daemon:
        made.append(daemon_with_page(tmp_path / f"data{len(made)}", *settings, **options))
        return made[-1]

    yield make
    for broker in made:
        if broker.program is not None:
            broker.kill()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One that the tests of a file share: queues have names of their own there."""
    broker = daemon_with_page(tmp_path_factory.mktemp("broker") / "data", "queues.quarantine_after=1").start()
    yield broker
    broker.kill()


@pytest.fixture
def visitor(broker: Daemon) -> Visitor:
    return Visitor(broker)


@pytest.fixture(scope="module")
def app(broker: Daemon) -> Iterator[App]:
    with App(f"file:{broker.data}") as made:
        yield made
