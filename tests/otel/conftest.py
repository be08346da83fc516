"""A collector for each test, and brokers that tell it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.otel.receiver import Receiver, receiver
from tests.runtime.conftest import NewBroker, new_broker
from tests.runtime.daemon import Daemon

__all__ = ["collector", "new_broker", "traced_broker"]

TracedBroker = Callable[..., Daemon]


@pytest.fixture
def collector() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


@pytest.fixture
def traced_broker(new_broker: NewBroker, collector: Receiver) -> TracedBroker:
    """Makes and starts a broker whose traces go to the collector."""

    def make(*settings: str) -> Daemon:
        endpoint = f"otel.endpoint={collector.endpoint}"
        return new_broker(endpoint, "otel.interval_s=0.1", *settings).start()

    return make
