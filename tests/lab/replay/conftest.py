"""Brokers of a test's own: a real process, and independent peers of every dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.independent.broker_with_peers import BrokerWithPeers

NewBroker = Callable[..., BrokerWithPeers]


@pytest.fixture
def new_broker(tmp_path: Path) -> Iterator[NewBroker]:
    """Makes a broker with these settings."""
    made: list[BrokerWithPeers] = []

    def make(*settings: str) -> BrokerWithPeers:
        made.append(BrokerWithPeers(tmp_path / f"data{len(made)}", *settings))
        return made[-1]

    yield make
    for broker in made:
        for peer in broker.peers:
            peer.close()
        broker.end()
