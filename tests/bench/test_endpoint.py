"""The endpoint's dialogue against the two yardsticks: every trip comes back once, in C++ and in Python."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from bench import contenders, endpoint
from bench.endpoint import Endpoint, EndpointFailed, Point

PYTHON = Endpoint((sys.executable, str(endpoint.HERE / "peer.py")), "python")


@pytest.fixture(scope="module", params=["c++", "python"])
def peer(request: pytest.FixtureRequest) -> Endpoint:
    if request.param == "python":
        return PYTHON
    if endpoint.compiler() is None:
        pytest.skip("no C++ compiler here")
    return endpoint.build()


@pytest.fixture(scope="module", params=["bench.proxy", "bench.pyzmq_loop"])
def yardstick(request: pytest.FixtureRequest) -> Iterator[contenders.Running]:
    mode = "proxy" if request.param == "bench.proxy" else "emqp"
    running = contenders.start_module(request.param, request.param, mode)
    yield running
    running.stop()


def run(peer: Endpoint, yardstick: contenders.Running, point: Point, trips: int) -> endpoint.Sample:
    return peer.run(
        30,
        mode=yardstick.mode,
        clients=point.connections,
        workers=point.connections,
        in_flight=point.in_flight,
        slots=point.slots_per_worker,
        trips=trips,
        client_addr=yardstick.client_address,
        worker_addr=yardstick.worker_address,
        watch=yardstick.pid,
    )


@pytest.mark.parametrize("point", [Point(1, 1), Point(40, 1), Point(1, 5), Point(40, 5)], ids=lambda point: point.name)
def test_every_trip_comes_back_once(peer: Endpoint, yardstick: contenders.Running, point: Point) -> None:
    sample = run(peer, yardstick, point, trips=200)
    assert sample.trips >= 200
    assert sample.duplicates == 0
    assert 0 < sample.p50_us <= sample.p99_us


def test_the_workers_may_live_in_a_process_of_their_own(yardstick: contenders.Running) -> None:
    if endpoint.compiler() is None:
        pytest.skip("no C++ compiler here")
    sample = endpoint.build().run(
        30,
        mode=yardstick.mode,
        in_flight=10,
        slots=10,
        trips=200,
        processes=2,
        client_addr=yardstick.client_address,
        worker_addr=yardstick.worker_address,
    )
    assert (sample.trips >= 200, sample.duplicates) == (True, 0)


def test_a_missing_broker_is_reported(peer: Endpoint) -> None:
    with pytest.raises(EndpointFailed, match="refused"):
        peer.run(30, trips=1, client_addr="tcp://127.0.0.1:1", worker_addr="tcp://127.0.0.1:1")
