"""rq at its limits: most queues of one node, most requests in one write, largest payloads, whole and in pieces."""

from __future__ import annotations

import socket

from dragoman.limits import RQ_QUEUES_MAX
from tests.dialects.rq.sockets import SocketNode
from tests.dialects.rq.spelling import risp
from tests.runtime.daemon import Daemon
from tests.runtime.loop_floods.flooding import LARGE, WAIT_S, settle, wait_count, wait_open
from tests.waiting import wait_for

COUNT = 30_000


def payload(body: bytes) -> bytes:
    return b"\xe0" + len(body).to_bytes(4, "big") + body


def request(number: int, queue: str, body: bytes) -> bytes:
    return b"\x01\x80" + number.to_bytes(4, "big") + risp(f"QUEUE={queue}") + payload(body) + risp("REQUEST")


def requests(broker: Daemon) -> None:
    with SocketNode(broker) as source:
        source.socket.settimeout(WAIT_S)
        source.give(b"".join([request(number, "q", b"x") for number in range(COUNT)]))
        source.give(risp("PING") * COUNT + risp("NOP") * COUNT + bytes([40]) * COUNT + bytes([1, 31]) * COUNT)
        source.give(risp("CLEAR ID=1 DELIVERED") * COUNT + risp("CLEAR ID=1 UNDELIVERED") * COUNT)
        source.give(request(COUNT, "q", b"x") + risp("REQUEST") * 3000)
        settle(broker, COUNT + 3001)
        source.give(risp("CLEAR QUEUE=news PAYLOAD=x BROADCAST") * COUNT)
        source.give(request(COUNT + 1, "last", b"x"))
        settle(broker, COUNT + 3002)


def queues(broker: Daemon) -> None:
    """As many as one node may consume, by several nodes, each with requests; and their ends, by a word and by the connection."""
    nodes: list[SocketNode] = []
    for number in range(3):
        node = SocketNode(broker)  # not before it has something to say: one that says nothing in time is cut off
        nodes.append(node)
        node.socket.settimeout(WAIT_S)
        node.give(b"".join([risp(f"CLEAR QUEUE=q{at} MAX=5 CONSUME") for at in range(RQ_QUEUES_MAX)]))
        wait_for("its consumers", lambda n=number: broker.ask("counters")["workers"] >= (n + 1) * RQ_QUEUES_MAX, WAIT_S)
    with SocketNode(broker) as source:
        source.socket.settimeout(WAIT_S)
        source.give(b"".join([request(number, f"q{number % RQ_QUEUES_MAX}", b"x") for number in range(COUNT)]))
        settle(broker, COUNT)
        wait_for("leases", lambda: broker.ask("counters")["leased"] == COUNT, WAIT_S)
        nodes[0].give(b"".join([risp(f"CLEAR QUEUE=q{at} CANCEL_QUEUE") for at in range(RQ_QUEUES_MAX)]))
        nodes[1].give(risp("CLOSING") + risp("PING") * 1000)
        nodes[0].close()
        nodes[1].close()
        wait_count(broker, "workers", RQ_QUEUES_MAX)
        nodes[2].close()
        wait_count(broker, "workers", 0)


def payloads(broker: Daemon) -> None:
    """In one write, byte by byte at its seams, and kept for a REQUEST that comes later."""
    with SocketNode(broker) as source:
        source.socket.settimeout(WAIT_S)
        data = request(1, "large", b"x" * LARGE)
        source.give(data)
        settle(broker, 1)
        source.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = request(2, "large", b"x" * LARGE)
        for piece in (
            *[data[at : at + 1] for at in range(30)],
            data[30:-30],
            *[data[at : at + 1] for at in range(-30, -1)],
            data[-1:],
        ):
            source.give(piece)
        settle(broker, 2)
        source.give(b"".join([risp("CLEAR") + payload(b"x" * LARGE), risp("QUEUE=large ID=3"), risp("REQUEST")]))
        settle(broker, 3)
        # Unknown parameters of every kind, as long as they may be.
        source.give(
            (bytes([193]) + b"\xff\xff" + b"x" * 65_535) * 200 + bytes([225]) + LARGE.to_bytes(4, "big") + b"x" * LARGE
        )
        source.give(bytes([161, 0]) * COUNT)
        source.give(request(4, "large", b"x"))
        settle(broker, 4)
        take_payloads(broker)


def take_payloads(broker: Daemon) -> None:
    with SocketNode(broker) as consumer:
        consumer.say("CLEAR QUEUE=large MAX=10 CONSUME")
        consumer.hear_consuming("large")
        consumer.socket.settimeout(WAIT_S)
        unread = 3 * LARGE - len(consumer.unheard)  # some of it may have come with the answer to CONSUME
        while unread > 0:  # a consumer is given the next large body when it reads
            unread -= len(consumer.socket.recv(1 << 20))
        wait_for("leases", lambda: broker.ask("counters")["leased"] == 4, WAIT_S)
        for number in range(4):
            consumer.give(b"\x01\x80" + number.to_bytes(4, "big") + payload(b"y" * LARGE) + risp("REPLY"))
        wait_open(broker, 0)


def pieces(broker: Daemon) -> None:
    """Many short writes of a stream that is cut anywhere."""
    data = b"".join([request(number, "q" * 200, b"x" * 50) for number in range(3000)])
    with SocketNode(broker) as source:
        source.socket.settimeout(WAIT_S)
        for at in range(0, len(data), 37):
            source.give(data[at : at + 37])
        settle(broker, 3000)


FLOODS = [requests, queues, payloads, pieces]
