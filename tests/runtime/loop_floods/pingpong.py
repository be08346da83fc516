"""pingpong at its limits: every form at its largest, most orders of one client, and many signs of life."""

from __future__ import annotations

import json

from dragoman.limits import FRAMES_MAX
from tests.dialects.pingpong.zmq_peers import ZmqClient, ZmqWorker
from tests.runtime.daemon import Daemon
from tests.runtime.loop_floods.flooding import LARGE_JSON, WAIT_S, Flood, settle, wait_open
from tests.waiting import wait_for

COUNT = 30_000


def signs_of_life(broker: Daemon) -> None:
    with Flood(broker, "pingpong.worker") as worker:
        for words in (
            [b"", b"PING"],
            [b"", b"READY"],
            [b"", b"late result"],
            [b'{"status":"PING"}'],
            [b'{"status":"?"}'],
        ):
            worker.pour(*words, times=20_000)
        worker.pour(b"", b"JOB COMPLETE", b"mark", b"", b"late", times=20_000)
        worker.pour(*[b"f"] * FRAMES_MAX, times=2000)
        wait_for("a worker", lambda: broker.ask("counters")["workers"] == 1, WAIT_S)
        with Flood(broker, "pingpong.client") as client:
            client.pour(b"", b"last")
            settle(broker, 1)


def orders(broker: Daemon) -> None:
    """By a client that leaves and comes back for its results, all of which wait for the first."""
    with Flood(broker, "pingpong.client", b"asker") as client:
        client.pour(b"", b"order", times=COUNT)
        client.pour(b'{"order":1}', times=COUNT)
        client.pour(b"{}", times=COUNT)
        settle(broker, 2 * COUNT)
    wait_for("its end", lambda: broker.ask("status")["connections"] == 0, WAIT_S)
    with Flood(broker, "pingpong.client", b"asker") as client, ZmqWorkers(broker, 2) as workers:
        slow, quick = workers.all
        slow.job()
        quick.serve(2 * COUNT - 1)
        wait_open(broker, 1)
        slow.send(b"", b"the last")
        client.drain(b"the last")


class ZmqWorkers:
    def __init__(self, broker: Daemon, count: int) -> None:
        self.all = [ZmqWorker(broker) for _ in range(count)]

    def __enter__(self) -> ZmqWorkers:
        return self

    def __exit__(self, *exc: object) -> None:
        for worker in self.all:
            worker.close()


def large_orders(broker: Daemon) -> None:
    """Plain text, JSON of many small values, text that JSON must escape, what is no text; each to a plain and to a json worker."""
    many = json.dumps({"order": list(range(LARGE_JSON // 9))}).encode()
    escaped = b"\x01" * (LARGE_JSON // 2)
    bodies = [b"x" * LARGE_JSON, escaped, "é".encode() * (LARGE_JSON // 2), b"\xff" * LARGE_JSON]
    with Flood(broker, "pingpong.client", b"plain") as client:
        for body in bodies:
            client.pour(b"", body)
        client.pour(many)
        client.pour(b'{"order":"%s"}' % (b"x" * LARGE_JSON))
        client.pour(b"{" + b'"k":' * (LARGE_JSON // 4))
        client.pour(b"[" * LARGE_JSON)
        settle(broker, len(bodies) + 4)
        with Flood(broker, "pingpong.worker") as worker:
            for _ in range(5):  # the others it cannot be told
                worker.pour(b'{"status":"PING"}')
                worker.drain(b"WORK")
                worker.pour(b'{"status":"SUCCESS","result":"%s"}' % (b"y" * LARGE_JSON))


def large_results(broker: Daemon) -> None:
    """To a client of the json form, and to one of the plain form."""
    results = [
        b"x" * LARGE_JSON,
        b"\x01" * (LARGE_JSON // 2),
        b"[" + b"1," * (LARGE_JSON // 2) + b"1]",
        b"\xff" * LARGE_JSON,
    ]
    with LargeClient(broker) as client, ZmqWorkers(broker, 1) as workers:
        worker = workers.all[0]
        for result in results:
            for words in ([b'{"order":1}'], [b"", b"order"]):
                client.send(*words)
                worker.job()
                worker.send(b"", result)
                assert client.hear(WAIT_S)


class LargeClient(ZmqClient):
    def __enter__(self) -> LargeClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


FLOODS = [signs_of_life, orders, large_orders, large_results]
