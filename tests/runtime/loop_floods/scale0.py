"""Scale0 at its limits: headers, services, configurations of the largest size in all notations, tasks and signs of life in masses."""

from __future__ import annotations

import json
import time

from dragoman.limits import (
    FRAMES_MAX,
    HEADERS_SIZE_MAX,
    NAME_SIZE_MAX,
    SERVED_MAX,
    SUBSCRIPTIONS_MAX,
    TREE_DEPTH_MAX,
    TREE_SIZE_MAX,
)
from tests.runtime.daemon import Daemon
from tests.runtime.loop_floods.flooding import LARGE, WAIT_S, Flood, settle, wait_count, wait_open
from tests.waiting import wait_for

COUNT = 20_000


def names(count: int, prefix: str = "s") -> bytes:
    return json.dumps([f"{prefix}{number}" for number in range(count)]).encode()


def filled(member: bytes) -> bytes:
    """A header of the largest size."""
    head = b"{" + member + b',"more":"'
    return head + b"x" * (HEADERS_SIZE_MAX - len(head) - 2) + b'"}'


def signs_of_life(broker: Daemon) -> None:
    with Flood(broker, "scale0.worker") as worker, Flood(broker, "scale0.client") as client:
        worker.pour(b"PING", b'{"services":["s"]}', times=COUNT)
        worker.pour(b"PING", b'{"services":["s"],"busy":true,"time":%.3f}' % time.time(), times=COUNT)
        worker.pour(b"TASKREPLY", b'{"id":"0123456789abcdef.x.1"}', b"late", times=COUNT)
        worker.pour(b"PING", b"tcp://h:1 s,t 5", times=COUNT)
        client.pour(b"PING", b"{}", times=COUNT)
        client.pour(b"TASK", b'{"id":"last","service":"s"}', b"")
        settle(broker, 1)


def tasks(broker: Daemon) -> None:
    with Flood(broker, "scale0.client") as client:
        client.pour_all([[b"TASK", b'{"id":"t%d","service":"s"}' % number, b"x"] for number in range(COUNT)])
        client.pour_all([[b"TASK", b'{"id":%d.50,"service":"t%d"}' % (no, no % 1000), b"x"] for no in range(COUNT)])
        settle(broker, 2 * COUNT)
        with Flood(broker, "scale0.worker") as worker:
            worker.pour(b"PING", b'{"services":["s"]}')
            worker.drain(b"TASK")
    wait_count(broker, "workers", 0)


def long_headers(broker: Daemon) -> None:
    with Flood(broker, "scale0.client") as client:
        client.pour(b"TASK", filled(b'"id":"1","service":"s"'), b"", times=20)
        client.pour(b"TASK", b'{"id":"%s","service":"%s"}' % (b"i" * 255, b"s" * NAME_SIZE_MAX), b"", times=100)
        members = b",".join([b'"%d":1' % number for number in range(6000)])
        client.pour(b"TASK", b'{"id":"1","service":"s",%s}' % members, b"", times=20)
        nested = b'{"id":"1","service":"s","x":%s%s}' % (b"[" * 30_000, b"]" * 30_000)
        client.pour(b"TASK", nested, b"", times=2)
        settle(broker, 140)
        for text in (
            b'{"id":' + b"1" * LARGE + b"}",
            b"{" + b'"k":1,' * (LARGE // 6) + b'"k":1}',
            b"a " * (LARGE // 2),
        ):
            client.pour(b"TASK", text, b"")
            client.pour(b"PING", text)
        client.pour(b"c" * LARGE, b"{}")
        client.pour(*[b"PING"] + [b"{}"] * (FRAMES_MAX - 1))
        client.pour(b"TASK", b'{"id":"last","service":"s"}', b"")
        settle(broker, 141)


def services(broker: Daemon) -> None:
    """As many as a worker may serve, changed with every PING; and far more than that."""
    with Flood(broker, "scale0.worker") as worker:
        for _ in range(10):
            for prefix in ("a", "b"):
                worker.pour(b"PING", b'{"services":%s}' % names(SERVED_MAX, prefix))
        wait_count(broker, "workers", 1)
        worker.pour(b"PING", b'{"services":%s}' % names(5000, "c"), times=2)
        worker.pour(b"PING", b"{}", times=COUNT)  # it is held for hostile by then
    with Flood(broker, "scale0.client") as client:
        client.pour(b"TASK", b'{"id":"last","service":"s"}', b"")
        settle(broker, 1)
    wait_count(broker, "workers", 0)


def connects(broker: Daemon) -> None:
    """Peers that offer thousands of services, and ask for their configuration and for a broker again and again."""
    for listener in ("scale0.worker", "scale0.client"):
        with Flood(broker, listener) as peer:
            for kind in (b"JSON", b"XML", b"ZFL"):
                offer = b'{"config_type":"%s","identity":"%s","services":%s}' % (kind, b"i" * 5000, names(SERVED_MAX))
                peer.pour(b"CONNECT", offer, times=2)
                peer.pour(b"CONNECT", b'{"config_type":"%s"}' % kind, times=20)
            peer.pour(b"CONNECT", b'{"services":%s}' % names(5000))
            peer.pour(b"NEEDBROKER", b"{}", times=1000)
            peer.pour(b"PING", b'{"services":["s"],"identity":"w"}')
            peer.drain(b"PONG")


def configuration(broker: Daemon, ending: str, text: str, shorter: str) -> None:
    """A file of the largest size, nested and wide: every worker is sent the part that is meant for it, asks for it again and again, and is
    sent another when the file has changed. (To read a file of that size takes longer than the bound; an operator does it.)"""
    assert (1 << 19) < len(text) <= TREE_SIZE_MAX
    path = broker.data.parent / f"shop.{ending}"
    path.write_text(text)
    broker.stop()
    broker.flags = (*broker.flags, f"--set=scale0.config_file={path}")
    broker.start()
    workers = [Flood(broker, "scale0.worker", b"w%d" % number) for number in range(30)]
    for worker in workers:
        for kind in (b"JSON", b"XML", b"ZFL"):
            worker.pour(b"CONNECT", b'{"config_type":"%s"}' % kind, times=3)
        worker.pour(b"PING", b"{}")
        worker.drain(b"PONG")
    path.write_text(shorter)
    broker.ask("reload")
    for worker in workers:
        worker.drain(b"value %d" % (SHORTER - 1))
        worker.close()


def configuration_in_json(broker: Daemon) -> None:
    configuration(broker, "json", wide_json(ENTRIES), wide_json(SHORTER))


def configuration_in_xml(broker: Daemon) -> None:
    configuration(broker, "xml", wide_xml(ENTRIES), wide_xml(SHORTER))


def configuration_in_zpl(broker: Daemon) -> None:
    configuration(broker, "zpl", wide_zpl(ENTRIES), wide_zpl(SHORTER))


ENTRIES = 12_000
SHORTER = 300


def wide_json(count: int) -> str:
    deep = '{"x":' * (TREE_DEPTH_MAX - 3) + '"y"' + "}" * (TREE_DEPTH_MAX - 3)
    family = ",".join(f'"name{number}":"value {number}"' for number in range(count))
    entries = ",".join(
        f'{{"identity":"w{number}","services":["s{number}"],"family_config":"f"}}' for number in range(count // 2)
    )
    return f'{{"broker":{{"identity":"main"}},"worker":[{entries}],"family":{{"=":"f",{family}}},"deep":{deep}}}'


def wide_xml(count: int) -> str:
    attributes = " ".join(f'name{number}="value {number}"' for number in range(count))
    entries = "".join(f'<worker identity="w{no}" services="t{no}" family_config="f"/>' for no in range(count // 2))
    return f"<config><broker/>{entries}<family {attributes}>f</family></config>"


def wide_zpl(count: int) -> str:
    family = "".join(f"    name{number} = value {number}\n" for number in range(count))
    entries = "".join(
        f"worker\n    identity = w{no}\n    services = u{no}\n    family_config = f\n" for no in range(count // 2)
    )
    return f"broker\n    identity = main\n{entries}family = f\n{family}"


def broadcasts(broker: Daemon) -> None:
    """What a worker of the newest original sends is published to all subscribers."""
    listeners = [Flood(broker, "scale0.publish") for _ in range(100)]
    for listener in listeners:
        listener.pour_all([[b"\x01%d" % number] for number in range(SUBSCRIPTIONS_MAX // 50)] + [[b"\x01w"]])
    with Flood(broker, "scale0.publish") as listener, Flood(broker, "scale0.worker", b"w" * 255) as worker:
        listener.pour_all([[b"\x01topic%d" % number] for number in range(SUBSCRIPTIONS_MAX + 100)])
        wait_for("all to listen", lambda: broker.ask("status")["connections"] == 102, WAIT_S)
        worker.pour(b"READY", b"a,b", times=2000)
        worker.pour(b"HEARTBEAT", b"1.0", times=2000)
        worker.pour(b"TASK", b'{"id":"last","service":"s"}', b"")
        settle(broker, 1)
    for listener in listeners:
        listener.close()


def large_bodies(broker: Daemon) -> None:
    with Flood(broker, "scale0.client") as client, Flood(broker, "scale0.worker") as worker:
        for number in range(3):
            client.pour(b"TASK", b'{"id":"t%d","service":"large"}' % number, b"x" * LARGE)
        settle(broker, 3)
        for _ in range(3):
            worker.pour(b"PING", b'{"services":["large"]}')
            heard = b""
            while b'"id":"' not in heard or len(heard) < LARGE:
                heard += worker.socket.recv(1 << 20)
            at = heard.index(b'"id":"') + 6
            task_id = heard[at : heard.index(b'"', at)]
            worker.pour(b"TASKREPLY", b'{"id":"%s"}' % task_id, b"y" * LARGE)
            client.drain(b"y" * 1000)
        wait_open(broker, 0)


FLOODS = [
    signs_of_life,
    tasks,
    long_headers,
    services,
    connects,
    configuration_in_json,
    configuration_in_xml,
    configuration_in_zpl,
    broadcasts,
    large_bodies,
]
