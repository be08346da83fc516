"""A real broker process and the command line in this process: quick to call, and the socket between them is the real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.broker import BrokerProcess, Commands


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker of the test's own; `os` is as durable as a test needs."""
    process = BrokerProcess(tmp_path / "data")
    yield process
    process.end()


@pytest.fixture
def dragoman(broker: BrokerProcess, capfd: pytest.CaptureFixture[str]) -> Commands:
    """`dragoman("status", "--json")` against that broker."""
    return Commands(broker.data, capfd)


@pytest.fixture(scope="module")
def common_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("common") / "data")
    yield process
    process.end()


@pytest.fixture
def common(common_broker: BrokerProcess, capfd: pytest.CaptureFixture[str]) -> Commands:
    """Against a broker that other tests use too: queues have names of their own here."""
    return Commands(common_broker.data, capfd)


@pytest.fixture
def alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Commands:
    """The command line without any broker."""
    return Commands(tmp_path / "nobody", capfd)
