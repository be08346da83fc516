"""Large bodies from the clients of each dialect to workers that look into them before they take them."""

from __future__ import annotations

import socket

from tests.dialects.ebus.peers import Peer
from tests.dialects.rq.sockets import SocketNode
from tests.dialects.rq.spelling import risp
from tests.runtime.daemon import Daemon
from tests.runtime.loop_floods import rq
from tests.runtime.loop_floods.flooding import LARGE, LARGE_JSON, WAIT_S, Flood, settle
from tests.waiting import wait_for

QUEUE = b"pingpong"  # the one queue that all dialects share without being asked
BODIES = [
    b"["
    + b"1," * (LARGE_JSON // 4)
    + b"1]",  # half as large: as many values take 20 ms to check in 8 MiB (docs/decisions/0041)
    b'["run",{"x":"' + b"y" * LARGE_JSON + b'"}]',
    b"[" * 1000 + b"[0]," * (LARGE_JSON // 5) + b"0" + b"]" * 1000,
    b"x" * LARGE,
    b"\xff" * LARGE,
]


def ask_all(broker: Daemon, body: bytes) -> None:
    """One message from a client of each dialect."""
    with (
        Flood(broker, "emqp.client") as emqp,
        Flood(broker, "ebus.client") as ebus,
        Flood(broker, "scale0.client") as scale0,
        Flood(broker, "pingpong.client") as pingpong,
        SocketNode(broker) as node,
    ):
        before = broker.ask("counters")["accepted"]
        emqp.pour(b"", b"eMQP/1.0", b"REQUEST", b"1", QUEUE, b"", body)
        ebus.pour(b"", b"EBC01", b"REQ", QUEUE, b"rid", body, b"600000")
        scale0.pour(b"TASK", b'{"id":"1","service":"%s"}' % QUEUE, body)
        pingpong.pour(b"", body)
        node.socket.settimeout(WAIT_S)
        node.give(rq.request(1, QUEUE.decode(), body))
        settle(broker, before + 5)


def serve(broker: Daemon, listener: str, opening: list[list[bytes]], ready: list[bytes], answer: list[bytes]) -> None:
    """Bodies of each kind for a worker that says it is ready until nothing more fits it."""
    for body in BODIES:
        ask_all(broker, body)
    with Flood(broker, listener) as worker:
        worker.pour_all(opening)
        worker.socket.settimeout(1.0)
        for _ in range(5 * len(BODIES) + 5):
            worker.pour(*ready)
            if not heard_much(worker):
                break
            if answer:
                worker.pour(*answer)
        wait_for("the broker", lambda: broker.ask("counters")["accepted"] >= 5 * len(BODIES), WAIT_S)


def heard_much(worker: Flood) -> bool:
    """Whether a large message came; it is read to its end."""
    size = 0
    try:
        while size < LARGE // 2:
            data = worker.socket.recv(1 << 20)
            if not data:
                return False
            size += len(data)
    except TimeoutError:
        return False
    return True


def to_the_original_emqp_worker(broker: Daemon) -> None:
    inform = [b"", b"eMQP/1.0", b"INFORM", b"i", b'[[10,"%s"]]' % QUEUE, b"worker"]
    serve(broker, "emqp.worker", [inform], [b"", b"eMQP/1.0", b"READY", b"r"], [])


def to_a_json_pingpong_worker(broker: Daemon) -> None:
    serve(
        broker,
        "pingpong.worker",
        [[b'{"status":"READY"}']],
        [b'{"status":"PING"}'],
        [b'{"status":"SUCCESS","result":"%s"}' % (b"y" * LARGE_JSON)],
    )


def to_a_plain_pingpong_worker(broker: Daemon) -> None:
    serve(broker, "pingpong.worker", [[b"", b"READY"]], [b"", b"PING"], [b"", b"y" * LARGE])


def to_an_ebus_worker(broker: Daemon) -> None:
    for body in BODIES:
        ask_all(broker, body)
    with Peer(broker, "ebus.worker") as worker:
        worker.send(b"EBW01", b"READY", b"null", QUEUE, b"1")
        for _ in range(4 * len(BODIES)):
            rid = worker.hear_word(b"REQ", wait_s=WAIT_S)[2]
            worker.send(b"EBW01", b"REPLY", rid, b"y" * LARGE)


def to_a_scale0_worker(broker: Daemon) -> None:
    ping = [b"PING", b'{"services":["%s"]}' % QUEUE]
    serve(broker, "scale0.worker", [ping], ping, [])


def to_an_rq_consumer(broker: Daemon) -> None:
    for body in BODIES:
        ask_all(broker, body)
    with SocketNode(broker) as node:
        node.socket.settimeout(WAIT_S)
        node.say(f"CLEAR QUEUE={QUEUE.decode()} MAX=1 CONSUME")
        for _ in range(4 * len(BODIES)):
            take(node)
            node.give(b"\x01\x80\0\0\0\0" + rq.payload(b"y" * LARGE) + risp("REPLY"))


def take(node: SocketNode) -> None:
    """Read one request: its head, its body, and what is behind it."""
    heard = b""
    while b"\xe0" not in heard:
        heard += node.socket.recv(1)
    missing = int.from_bytes(node.socket.recv(4, socket.MSG_WAITALL), "big")
    while missing:
        missing -= len(node.socket.recv(min(missing, 1 << 20)))
    while node.socket.recv(1) != risp("REQUEST"):
        pass


FLOODS = [
    to_the_original_emqp_worker,
    to_a_json_pingpong_worker,
    to_a_plain_pingpong_worker,
    to_an_ebus_worker,
    to_a_scale0_worker,
    to_an_rq_consumer,
]
