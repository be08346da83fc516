"""One broker for all tests of a file; every test leaves it empty."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.independent.broker_with_peers import BrokerWithPeers


@pytest.fixture(scope="module")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerWithPeers]:
    broker = BrokerWithPeers(tmp_path_factory.mktemp("broker") / "data")
    yield broker
    broker.end()


@pytest.fixture
def broker(shared_broker: BrokerWithPeers) -> Iterator[BrokerWithPeers]:
    yield shared_broker
    shared_broker.clear()
