"""ebus at its limits: most services, longest names, most requests of one client, largest data."""

from __future__ import annotations

from dragoman.limits import FRAMES_MAX, NAME_SIZE_MAX, SUBSCRIPTIONS_MAX
from tests.dialects.ebus.peers import Client, Worker
from tests.runtime.daemon import Daemon
from tests.runtime.loop_floods.flooding import LARGE, WAIT_S, Flood, settle, wait_count, wait_open
from tests.runtime.peers import RawPeer
from tests.waiting import wait_for

COUNT = 30_000
MANY = 100_000
# A request that outlives its test.
LONG_MS = b"600000"


def requests(broker: Daemon) -> None:
    """As many as fit into few reads, by a client that leaves and comes back under its name, and then sends them all again."""
    asks = [[b"", b"EBC01", b"REQ", b"service", b"rid%d" % number, b"x", LONG_MS] for number in range(MANY)]
    with Flood(broker, "ebus.client", b"asker") as client:
        client.pour_all(asks)
        settle(broker, MANY)
    wait_for("its end", lambda: broker.ask("status")["connections"] == 0, WAIT_S)
    with Flood(broker, "ebus.client", b"asker") as client:
        client.pour_all(asks)
        client.pour(b"", b"EBC01", b"PING")
        client.drain(b"HEARTBEAT")
    with Flood(broker, "ebus.client", b"another") as client:
        client.pour_all(asks)
        client.pour(b"", b"EBC01", b"PING")
        client.drain(b"HEARTBEAT")
        assert broker.ask("counters")["accepted"] == MANY


def cancels(broker: Daemon) -> None:
    asks = [[b"", b"EBC01", b"REQ", b"service", b"rid%d" % number, b"x", LONG_MS] for number in range(COUNT)]
    with Flood(broker, "ebus.client") as client:
        client.pour_all(asks)
        client.pour_all([[b"", b"EBC01", b"CANCEL", b"service", b"rid%d" % number] for number in range(COUNT)])
        settle(broker, COUNT)
        client.pour(b"", b"EBC01", b"CANCEL", b"service", b"none", times=COUNT)
        client.pour(b"", b"EBC01", b"PING")
        client.drain(b"HEARTBEAT")


def answers(broker: Daemon) -> None:
    """Outcomes of a client that is away, told when it comes back, and remembered."""
    asks = [[b"", b"EBC01", b"REQ", b"service", b"rid%d" % number, b"x" * 600, LONG_MS] for number in range(COUNT)]
    with Flood(broker, "ebus.client", b"asker") as client:
        client.pour_all(asks)
        settle(broker, COUNT)
    with Worker(broker, b"service") as worker:
        for _ in range(COUNT):
            rid, _ = worker.take()
            worker.answer(rid, b"y" * 600)
        wait_open(broker, 0)
        with Client(broker, b"asker") as client:
            for number in range(COUNT):
                assert client.outcome()[1] == b"rid%d" % number
            for number in range(0, COUNT, 100):
                client.ask(b"service", b"rid%d" % number, b"x" * 600)
                assert client.outcome()[1] == b"rid%d" % number


def signs_of_life(broker: Daemon) -> None:
    with Flood(broker, "ebus.client") as client, Flood(broker, "ebus.worker") as worker:
        client.pour(b"", b"EBC01", b"PING", times=20_000)
        worker.pour(b"EBW01", b"READY", b"null", b"service")
        worker.pour(b"EBW01", b"PING", times=20_000)
        worker.pour(b"EBW01", b"REPLY", b"0123456789abcdef", b"late", times=20_000)
        worker.pour(b"EBW01", b"REJECT", b"r" * 255, b"late", times=5000)
        client.pour(b"", b"EBC01", b"REQ", b"service", b"last", b"", LONG_MS)
        settle(broker, 1)


def services(broker: Daemon) -> None:
    """Workers of as many services as a READY can name, clients that ask who they are, and subscribers who are told."""
    workers = [Flood(broker, "ebus.worker") for _ in range(150)]
    for number, worker in enumerate(workers):
        names = [b"%d-%d" % (number, at) for at in range(FRAMES_MAX - 5)]
        worker.pour(
            b"EBW01", b"READY", b"null", names[0], b"5", *[name.ljust(NAME_SIZE_MAX, b"n") for name in names[1:]]
        )
    wait_count(broker, "workers", len(workers))
    with Flood(broker, "ebus.client") as client:
        for word in (b"SERVICES", b"WORKERS"):
            client.pour(b"", b"EBC01", word, times=10)
            client.pour(b"", b"EBC01", b"PING")
            client.drain(b"HEARTBEAT")
    for worker in workers:
        worker.close()
    wait_count(broker, "workers", 0)


def long_names(broker: Daemon) -> None:
    long = b"n" * LARGE
    with Flood(broker, "ebus.client") as client:
        client.swallow()
        client.pour(b"", b"EBC01", b"REQ", long, b"rid", b"")
        client.pour(b"", b"EBC01", b"REQ", b"s" * NAME_SIZE_MAX, long, b"")
        client.pour(b"", b"EBC01", b"REQ", b"service", b"long", b"", b"9" * LARGE)
        client.pour(b"", b"EBC01", b"REJECT", long, long)
        client.pour(b"", b"EBC01", b"CANCEL", long, long)
        client.pour(b"", b"EBC01", b"REQ", b"service", b"last", *[b"f"] * (FRAMES_MAX - 5))
        settle(broker, 2)
    for word in (b"READY", b"REPLY", long):
        with Flood(broker, "ebus.worker") as worker:
            worker.pour(b"EBW01", word, long, long, long, long)
            assert worker.is_ended()
    with RawPeer(broker, "ebus.worker") as stranger:
        stranger.greet()
        stranger.socket.sendall(b"\x01\x00" * (FRAMES_MAX + 1))
        assert stranger.is_ended()


def large_data(broker: Daemon) -> None:
    with Client(broker, b"large") as client:
        for number in range(3):
            client.ask(b"large", b"rid%d" % number, b"x" * LARGE, 600_000)
        settle(broker, 3)
        with Worker(broker, b"large") as worker:
            for _ in range(3):
                rid, data = worker.take()
                assert len(data) == LARGE
                worker.answer(rid, b"y" * LARGE)
            for _ in range(3):
                assert len(client.outcome(WAIT_S)[-1]) == LARGE
        client.ask(b"large", b"rid1", b"x" * LARGE, 600_000)
        assert len(client.outcome(WAIT_S)[-1]) == LARGE, "said again"


def orphans(broker: Daemon) -> None:
    """Many clients that are gone asked for the same with data that differs at its end only; who sends it again is compared with them all."""
    count = 20
    for number in range(count):
        with Flood(broker, "ebus.client") as client:
            client.pour(b"", b"EBC01", b"REQ", b"service", b"rid", b"x" * LARGE + b"%02d" % number, LONG_MS)
            settle(broker, number + 1)
    wait_for("their end", lambda: broker.ask("status")["connections"] == 0, WAIT_S)
    with Flood(broker, "ebus.client") as client:
        client.pour(b"", b"EBC01", b"REQ", b"service", b"rid", b"x" * LARGE + b"no", LONG_MS)
        settle(broker, count + 1)


def publishes(broker: Daemon) -> None:
    with Flood(broker, "ebus.subscribe") as subscriber, Flood(broker, "ebus.publish") as publisher:
        for number in range(SUBSCRIPTIONS_MAX + 100):
            subscriber.pour(b"\x01channel%d" % number)
        wait_for("subscriptions", lambda: broker.ask("counters")["subscriptions"] >= SUBSCRIPTIONS_MAX, WAIT_S)
        publisher.pour(b"c" * NAME_SIZE_MAX, b"x", times=20_000)
        publisher.pour(b"c" * LARGE, b"x")
        for number in range(3):
            publisher.pour(b"channel%d" % number, b"x" * LARGE)
        publisher.pour(*[b"f"] * FRAMES_MAX)
        wait_for("news", lambda: broker.ask("counters")["published"] >= 20_003, WAIT_S)
    wait_for("the end", lambda: broker.ask("counters")["subscriptions"] == 0, WAIT_S)


FLOODS = [requests, cancels, answers, signs_of_life, services, long_names, large_data, orphans, publishes]
