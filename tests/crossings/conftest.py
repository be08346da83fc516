"""One broker for all tests of a file; every test leaves it empty."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.independent.broker_with_peers import BrokerWithPeers


@pytest.fixture(scope="module")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerWithPeers]:
    # What is tried again is so at once: the pause between tries is not these tests' business.
    broker = BrokerWithPeers(tmp_path_factory.mktemp("broker") / "data", "queues.backoff_initial_s=0.01")
    yield broker
    broker.end()


@pytest.fixture
def broker(shared_broker: BrokerWithPeers) -> Iterator[BrokerWithPeers]:
    yield shared_broker
    shared_broker.clear()
