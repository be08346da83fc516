from __future__ import annotations

from collections.abc import Iterator

import pytest

from dragoman import App
from dragoman.testing.broker import RunningBroker
from dragoman.testing.plugin import broker as broker  # the pure run has no installed plugin
from tests.client import jobs
from tests.runtime.daemon import Daemon


@pytest.fixture
def served_app(broker: RunningBroker) -> Iterator[App]:
    """The App of `jobs` at a broker of its own, with a worker."""
    app = jobs.app
    broker.attach(app)
    with broker.worker(app):
        yield app
        jobs.release.set()
    jobs.release.clear()
    app.close_sync()


@pytest.fixture(scope="session")
def five(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A broker process with all five dialects, for every test that leaves it as it was."""
    daemon = Daemon(tmp_path_factory.mktemp("five") / "broker")
    yield daemon.start()
    daemon.kill()
