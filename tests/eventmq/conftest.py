"""Fixtures of the real EventMQ suite.

`DRAGOMAN_TEST_ORIGINAL_ROUTER=1` runs the same tests against EventMQ's own router, to prove the harness rather than the
broker; what that router cannot do is left out then.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests.eventmq.brokers import ORIGINAL, Dragoman, Original
from tests.eventmq.environment import make_environment
from tests.eventmq.programs import Client
from tests.eventmq.system import EventMqSystem

NewSystem = Callable[..., EventMqSystem]


def system_in(environment: Path, directory: Path, settings: tuple[str, ...]) -> EventMqSystem:
    return EventMqSystem(
        environment,
        directory,
        Original(environment, directory / "data") if ORIGINAL else Dragoman(directory / "data", *settings),
    )


@pytest.fixture(scope="session")
def environment() -> Path:
    return make_environment()


@pytest.fixture(scope="session")
def system(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EventMqSystem]:
    """The system that most tests share: one broker and one job manager of four slots on `low` and `default`."""
    system = system_in(environment, tmp_path_factory.mktemp("system"), ())
    system.job_manager([(30, "low"), (10, "default")], slots=4)
    yield system
    system.close()


@pytest.fixture(scope="session")
def client(system: EventMqSystem) -> Client:
    return system.client()


@pytest.fixture
def new_system(environment: Path, tmp_path: Path) -> Iterator[NewSystem]:
    """Start a system of the test's own, for tests that stop or restart the broker or set it up differently."""
    systems: list[EventMqSystem] = []

    def open_one(*settings: str) -> EventMqSystem:
        systems.append(system_in(environment, tmp_path, settings))
        return systems[-1]

    yield open_one
    for system in systems:
        system.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failing test shows what its programs printed."""
    report = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, EventMqSystem):
                report.sections.append((f"programs of {name}", value.logs()))
    return report
