"""What holds for every test: examples of the state machines, tests that need a browser, and runs in the background."""

from __future__ import annotations

import shutil
import signal

import pytest
from hypothesis import HealthCheck, settings

from tests.examples import EXAMPLES

# `settings.get_profile("machine")` is the one of every Hypothesis state machine; `make soak` asks for more examples.
settings.register_profile(
    "machine",
    max_examples=EXAMPLES,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
# `make quick` looks at fewer examples of everything.
settings.register_profile("quick", max_examples=20)


def pytest_configure() -> None:
    """Children get SIGINT's default, also in a run that was started with SIGINT ignored (in a script's background).

    A child inherits an ignored signal, but not a handler. This process goes on ignoring it.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, frame: None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one of these kinds run one after the other, in one process of `--dist loadgroup`."""
    for item in items:
        for kind in ("browser", "eventmq"):
            if item.get_closest_marker(kind):
                item.add_marker(pytest.mark.xdist_group(kind))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("browser"):
        missing = [program for program in ("chromium", "chromedriver") if shutil.which(program) is None]
        if missing:
            pytest.skip(f"browser tests: {' and '.join(missing)} not found (apt-get install chromium chromium-driver)")
