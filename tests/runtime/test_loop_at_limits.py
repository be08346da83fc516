"""No callback holds the loop: every dialect's commands at their limits, sent to a real broker, and what its watchdog saw.

The bound is in CPU time and goes by how fast this machine runs Python at the moment: a loop of known length is timed beside the test.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import zmq

from dragoman.limits import FRAMES_MAX, HEADERS_SIZE_MAX, LOOP_HOLD_NS, SERVED_MAX, SUBSCRIPTIONS_MAX
from dragoman.version import build_flavour
from dragoman.wire.zmtp.frames import encode_message
from tests.dialects.rq.sockets import SocketNode
from tests.runtime.conftest import NewBroker
from tests.runtime.daemon import Daemon
from tests.runtime.loop_floods import crossings, ebus, pingpong, rq, scale0
from tests.runtime.loop_floods.flooding import LARGE, WAIT_S, settle
from tests.runtime.peers import Client, Peer, RawPeer, Worker, new_id
from tests.waiting import wait_for

# The loop below takes this long on the machine on which 20 ms was measured; plain Python is slower than compiled by so much.
CALIBRATION_NS = 5_000_000
PURE_FACTOR = 6.0
# Beside the work of a step: what the system charges a thread for on a machine that others use, too (page faults, caches gone cold).
MARGIN = 2.0


def bound_ns() -> float:
    began_ns = time.thread_time_ns()
    total = 0
    for number in range(100_000):
        total += number & 7
    scale = max((time.thread_time_ns() - began_ns) / CALIBRATION_NS, 1.0)
    return LOOP_HOLD_NS * scale * MARGIN * (PURE_FACTOR if build_flavour() == "pure" else 1.0)


def names(count: int, prefix: bytes = b"q") -> bytes:
    return b"[" + b",".join(b'[10,"%s%d"]' % (prefix, no) for no in range(count)) + b"]"


def informs(broker: Daemon) -> None:
    with RawPeer(broker, "emqp.worker") as worker:
        worker.greet(identity=b"many")
        for _ in range(3):
            worker.say(b"INFORM", new_id(), names(SERVED_MAX), b"worker", b"bytes")
            worker.say(b"INFORM", new_id(), names(SERVED_MAX, b"r"), b"worker", b"bytes")
        worker.say(b"INFORM", new_id(), names(40_000), b"worker", b"bytes")
        worker.socket.sendall(encode_message([b"", b"eMQP/1.0", b"READY", b"r"]) * 20_000)
        wait_for("the slots", lambda: broker.ask("counters")["slots_free"] >= 20_000, WAIT_S)
    wait_for("the end", lambda: broker.ask("counters")["workers"] == 0, WAIT_S)


def small_requests(broker: Daemon) -> None:
    with RawPeer(broker, "emqp.client") as client:
        client.greet(identity=b"flood")
        client.socket.sendall(encode_message([b"", b"eMQP/1.0", b"REQUEST", b"1", b"q", b"", b""]) * 30_000)
        settle(broker, 30_000)


def long_headers(broker: Daemon) -> None:
    with Client(broker, identity=b"long") as client:
        headers = b"reply-requested," + b"x:y," * (HEADERS_SIZE_MAX // 4 - 8)
        for _ in range(20):
            client.request(b"q", headers)
        client.request(b"q", b"a:b," * 2_000_000)
        client.say(b"REQUEST", new_id(), *[b"f"] * (FRAMES_MAX - 5))
        client.keep(b"q")


def large_bodies(broker: Daemon) -> None:
    """In, waiting, out of the disk, answered as large, and to the original program, which takes JSON only."""
    body = b'["run",{"x":"' + b"y" * LARGE + b'"}]'
    with Client(broker, identity=b"large") as client:
        client.request(b"large", b"ack-requested", body)
        client.hear_word(b"ACK", wait_s=WAIT_S)
        request_id = client.request(b"large", b"reply-requested", body)
        with Worker(broker, b"large", slots=2) as worker:
            for _ in range(2):
                taken, got = worker.take(WAIT_S)
                assert len(got) == len(body)
                worker.answer(taken, b'{"value":"' + b"z" * LARGE + b'"}')
            assert len(client.result(request_id, WAIT_S)) > LARGE
        client.request(b"original", b"", body)
        with Peer(broker, "emqp.worker", identity=b"original") as original:
            original.say(b"INFORM", new_id(), b'[[10,"original"]]', b"worker")
            original.hear_word(b"ACK")
            original.say(b"READY", new_id())
            assert original.hear_word(b"REQUEST", wait_s=WAIT_S)


def publishes(broker: Daemon) -> None:
    with Peer(broker, "emqp.subscribe", zmq.SUB) as subscriber, Peer(broker, "emqp.publish") as publisher:
        for number in range(SUBSCRIPTIONS_MAX):
            subscriber.socket.subscribe(b"topic%d" % number)
        wait_for("subscriptions", lambda: broker.ask("counters")["subscriptions"] >= SUBSCRIPTIONS_MAX, WAIT_S)
        for number in range(3):
            publisher.say(b"PUBLISH", new_id(), b"topic%d" % number, b"x" * LARGE)
        wait_for("news", lambda: broker.ask("counters")["published"] >= 3, WAIT_S)
    wait_for("the end", lambda: broker.ask("counters")["subscriptions"] == 0, WAIT_S)


def schedules(broker: Daemon) -> None:
    count = 2000
    with Client(broker, identity=b"scheduler") as client:
        for number in range(count):
            client.say(b"SCHEDULE", new_id(), b"q", b"run_count:1", b"1", b'["run",{"n":%d}]' % number, b"")
        settle(broker, count)


def many_slots(broker: Daemon) -> None:
    """As many leases as one rq consumer may have, given out at once, and taken back from it at once."""
    count = 20_000
    small_requests(broker)
    with SocketNode(broker) as node:
        node.say("CLEAR QUEUE=q MAX=30000 CONSUME")
        wait_for("leases", lambda: broker.ask("counters")["leased"] >= count, WAIT_S)
    wait_for("the end", lambda: broker.ask("counters")["leased"] == 0, WAIT_S)


def questions(broker: Daemon) -> None:
    """Of 20 000 queues, by every dialect and over the admin socket."""
    with Client(broker, identity=b"namer") as client, Peer(broker, "emqp.admin") as admin:
        for number in range(20_000):
            client.request(b"queue%d" % number)
        settle(broker, 20_000)
        for word in (b"STATUS", b"ROUTER_SHOW_WORKERS", b"ROUTER_SHOW_SCHEDULERS"):
            admin.say(word, new_id())
            admin.hear_word(b"REPLY", wait_s=WAIT_S)
        with RawPeer(broker, "emqp.admin") as asker:
            asker.greet(identity=b"asker")
            asker.socket.sendall(encode_message([b"", b"eMQP/1.0", b"STATUS", b"1"]) * 50)
            asker.socket.sendall(encode_message([b"", b"eMQP/1.0", b"STATE", b"1", b"none"]) * 50)
            asker.say(b"REQUEST", new_id(), b"last", b"", b"")
            settle(broker, 20_001)
        for operation in ("status", "tallies", "stuck"):
            broker.ask(operation)
        for operation in ("queues", "queue_tallies", "messages", "workers"):
            broker.ask(operation, limit=1000)
        broker.ask("queue_tallies", limit=1000, order="depth")


EMQP = [informs, small_requests, long_headers, large_bodies, publishes, schedules, many_slots, questions]
FLOODS = [
    pytest.param(flood, id=f"{dialect}-{flood.__name__}")
    for dialect, floods in [
        ("emqp", EMQP),
        ("ebus", ebus.FLOODS),
        ("scale0", scale0.FLOODS),
        ("pingpong", pingpong.FLOODS),
        ("rq", rq.FLOODS),
        ("crossing", crossings.FLOODS),
    ]
    for flood in floods
]


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(600)
@pytest.mark.parametrize("flood", FLOODS)
def test_no_command_at_its_limits_holds_the_loop(new_broker: NewBroker, flood: Callable[[Daemon], None]) -> None:
    # The nodes of these floods answer no PING, however long they are silent on a machine that others use, too.
    settings = ("limits.memory_max=2000000000", "rq.consumer_messages_max=30000", "rq.ping_s=600")
    broker = new_broker(*settings).start()
    flood(broker)
    bound = bound_ns()
    loop = broker.ask("status")["loop"]
    assert loop["longest_ns"] <= bound, f"{loop}, bound {bound / 1e6:.0f} ms"
