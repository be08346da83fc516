"""The endpoint's dialogue in each dialect: against a stand-in that knows only the protocol, through the proxy, and with the broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import contenders, endpoint
from bench.dialogues import DIALOGUES, EMQP, PINGPONG, PROXY, Dialogue
from bench.endpoint import Endpoint, Point, Sample
from tests.bench.stand_ins import STAND_INS

pytestmark = pytest.mark.skipif(endpoint.compiler() is None, reason="no C++ compiler here")
OTHERS = [dialogue for dialogue in DIALOGUES.values() if dialogue is not EMQP]
POINTS = [Point(1, 1), Point(40, 1), Point(40, 5), Point(20, 1, 20)]


@pytest.fixture(scope="module")
def peer() -> Endpoint:
    return endpoint.build()


@pytest.fixture(scope="module")
def proxy() -> Iterator[contenders.Running]:
    running = contenders.start_module(PROXY, "bench.proxy", "")
    yield running
    running.stop()


def run(peer: Endpoint, mode: str, point: Point, client_addr: str, worker_addr: str) -> Sample:
    return peer.run(
        30,
        mode=mode,
        clients=point.connections,
        workers=point.workers,
        in_flight=point.in_flight,
        slots=point.slots_per_worker,
        trips=300,
        client_addr=client_addr,
        worker_addr=worker_addr,
    )


@pytest.mark.parametrize("dialogue", OTHERS, ids=lambda dialogue: dialogue.name)
@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_it_speaks_as_the_protocol_says(peer: Endpoint, dialogue: Dialogue, point: Point) -> None:
    with STAND_INS[dialogue.name]() as broker:
        try:
            sample = run(peer, dialogue.mode, point, broker.client_address, broker.worker_address)
        finally:
            assert broker.faults == []
    assert (sample.trips >= 300, sample.duplicates) == (True, 0)


@pytest.mark.parametrize("dialogue", OTHERS, ids=lambda dialogue: dialogue.name)
@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_the_same_load_goes_through_the_proxy(
    peer: Endpoint, proxy: contenders.Running, dialogue: Dialogue, point: Point
) -> None:
    sample = run(peer, dialogue.proxy_mode, point, proxy.client_address, proxy.worker_address)
    assert (sample.trips >= 300, sample.duplicates) == (True, 0)


@pytest.mark.parametrize("dialogue", OTHERS, ids=lambda dialogue: dialogue.name)
def test_the_broker_serves_it(peer: Endpoint, dialogue: Dialogue, tmp_path: Path) -> None:
    broker = contenders.start_broker("memory", tmp_path, dialogue=dialogue)
    try:
        for point in POINTS:
            sample = run(peer, dialogue.mode, point, broker.client_address, broker.worker_address)
            assert (sample.trips >= 300, sample.duplicates) == (True, 0)
    finally:
        broker.stop()


@pytest.mark.parametrize("dialogue", [d for d in OTHERS if d is not PINGPONG], ids=lambda dialogue: dialogue.name)
def test_the_broker_and_the_proxy_move_as_many_messages_per_job(
    peer: Endpoint, proxy: contenders.Running, dialogue: Dialogue, tmp_path: Path
) -> None:
    point = Point(40, 1)
    through_proxy = run(peer, dialogue.proxy_mode, point, proxy.client_address, proxy.worker_address)
    broker = contenders.start_broker("memory", tmp_path, dialogue=dialogue)
    try:
        through_broker = run(peer, dialogue.mode, point, broker.client_address, broker.worker_address)
    finally:
        broker.stop()
    # What is still under way when the window closes, and a beat, make a small difference.
    assert through_broker.messages_per_trip == pytest.approx(through_proxy.messages_per_trip, rel=0.15)
