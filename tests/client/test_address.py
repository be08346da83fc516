from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman import App
from dragoman.client.address import parse
from dragoman.dialects.description import CLIENT, PUBLISH, SUBSCRIBE, WORKER
from dragoman.errors import BadAddress

ROLES = (CLIENT, WORKER, PUBLISH, SUBSCRIBE)


@pytest.mark.parametrize("text", ["emqp://127.0.0.1", "emqp://127.0.0.1:47291", "emqp://127.0.0.1/"])
def test_each_role_has_its_default_port(text: str) -> None:
    assert [parse(text).host_ports(role) for role in ROLES] == [
        [("127.0.0.1", port)] for port in (47291, 47290, 47298, 47299)
    ]


def test_alternates_keep_their_order() -> None:
    assert parse("emqp://a:47291,b:5,[::1]:6").host_ports(CLIENT) == [("a", 47291), ("b", 5), ("::1", 6)]


def test_one_port_serves_all_roles_but_subscribing() -> None:
    address = parse("emqp://h:6000")
    assert [address.host_ports(role) for role in ROLES[:3]] == [[("h", 6000)]] * 3
    with pytest.raises(BadAddress, match=r"subscribe=PORT"):
        address.host_ports(SUBSCRIBE)


def test_roles_may_be_named_one_by_one() -> None:
    address = parse("emqp://h:6000?worker=6001&publish=6002&subscribe=6003")
    assert [address.host_ports(role)[0][1] for role in ROLES] == [6000, 6001, 6002, 6003]


@pytest.mark.parametrize(
    "text",
    ["", "127.0.0.1", "emqp:", "emqp://", "emqp://h:0", "emqp://h:x", "emqp://h:70000", "emqp://h?admin=1", "http://h"],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadAddress):
        parse(text)


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ("rq://h", [13700, 13700, 13700, 13700]),
        ("rq://h:9", [9, 9, 9, 9]),
        ("ebus://h", [5000, 5001, 5002, 5003]),
        ("ebus://h:9?publish=8&subscribe=7", [9, 9, 8, 7]),
        ("scale0://h", [8080, 8081]),
        ("scale0://h:9?worker=8", [9, 8]),
        ("pingpong://h", [6001, 6002]),
        ("pingpong://h:6002", None),
    ],
)
def test_each_dialect_has_ports_of_its_own(text: str, ports: list[int] | None) -> None:
    address = parse(text)
    if ports is None:
        assert address.host_ports(WORKER) == [("h", 6002)]
        return
    assert [address.host_ports(role)[0][1] for role in ROLES[: len(ports)]] == ports
    for role in ROLES[len(ports) :]:
        with pytest.raises(BadAddress, match=f"no port to {role}"):
            address.host_ports(role)


@pytest.mark.parametrize("text", ["scale0://h:9", "pingpong://h:9", "ebus://h:9"])
def test_a_port_that_cannot_serve_a_role_asks_for_that_role_s_own(text: str) -> None:
    address = parse(text)
    role = SUBSCRIBE if text.startswith("ebus") else WORKER
    with pytest.raises(BadAddress, match=rf"add \?{role}=PORT"):
        address.host_ports(role)


def test_alternates_may_have_a_port_each() -> None:
    assert parse("scale0://a:1,b:2?worker=3,4").host_ports(WORKER) == [("a", 3), ("b", 4)]
    assert parse("scale0://a:1,b:2?worker=3").host_ports(WORKER) == [("a", 3), ("b", 3)]
    with pytest.raises(BadAddress, match="3 ports for 2 hosts"):
        parse("scale0://a,b?worker=3,4,5")


def test_pingpong_has_one_queue_and_the_address_may_name_it() -> None:
    assert parse("pingpong://h").queue == "pingpong"
    assert parse("pingpong://h?queue=orders").queue == "orders"
    assert parse("rq://h").queue == ""
    with pytest.raises(BadAddress, match="not a role of rq"):
        parse("rq://h?queue=orders")


def test_a_file_may_be_read_for_another_dialect(tmp_path: Path) -> None:
    told = {"listeners": {"rq": "tcp://127.0.0.1:1111", "ebus.worker": "tcp://127.0.0.1:2222"}}
    (tmp_path / "broker.json").write_text(json.dumps(told))
    assert parse(f"file:{tmp_path}?dialect=rq").host_ports(SUBSCRIBE) == [("127.0.0.1", 1111)]
    assert parse(f"file:{tmp_path}?dialect=ebus").host_ports(WORKER) == [("127.0.0.1", 2222)]
    for wrong in ("?dialect=amqp", "?port=1"):
        with pytest.raises(BadAddress):
            parse(f"file:{tmp_path}{wrong}")


def test_a_file_is_read_each_time_it_is_needed(tmp_path: Path) -> None:
    address = parse(f"file:{tmp_path}")
    with pytest.raises(ConnectionError, match="does not run"):
        address.host_ports(CLIENT)
    for port in (1111, 2222):
        told = {"listeners": {"emqp.client": f"tcp://127.0.0.1:{port}", "emqp.worker": f"tcp://[::1]:{port}"}}
        (tmp_path / "broker.json").write_text(json.dumps(told))
        assert address.host_ports(CLIENT) == [("127.0.0.1", port)]
        assert address.host_ports(WORKER) == [("::1", port)]
    with pytest.raises(BadAddress, match=r"no listener emqp\.publish"):
        address.host_ports(PUBLISH)
    assert App.from_broker_json(tmp_path / "broker.json").address.host_ports(CLIENT) == [("127.0.0.1", 2222)]
