from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman import App
from dragoman.client.address import CLIENT, PUBLISH, SUBSCRIBE, WORKER, parse
from dragoman.errors import BadAddress

ROLES = (CLIENT, WORKER, PUBLISH, SUBSCRIBE)


@pytest.mark.parametrize("text", ["emqp://127.0.0.1", "emqp://127.0.0.1:47291", "emqp://127.0.0.1/"])
def test_each_role_has_its_default_port(text: str) -> None:
    assert [parse(text).places(role) for role in ROLES] == [
        [("127.0.0.1", port)] for port in (47291, 47290, 47298, 47299)
    ]


def test_alternates_keep_their_order() -> None:
    assert parse("emqp://a:47291,b:5,[::1]:6").places(CLIENT) == [("a", 47291), ("b", 5), ("::1", 6)]


def test_one_port_serves_all_roles_but_subscribing() -> None:
    address = parse("emqp://h:6000")
    assert [address.places(role) for role in ROLES[:3]] == [[("h", 6000)]] * 3
    with pytest.raises(BadAddress, match=r"subscribe=PORT"):
        address.places(SUBSCRIBE)


def test_roles_may_be_named_one_by_one() -> None:
    address = parse("emqp://h:6000?worker=6001&publish=6002&subscribe=6003")
    assert [address.places(role)[0][1] for role in ROLES] == [6000, 6001, 6002, 6003]


@pytest.mark.parametrize(
    "text",
    ["", "127.0.0.1", "emqp:", "emqp://", "emqp://h:0", "emqp://h:x", "emqp://h:70000", "emqp://h?admin=1", "http://h"],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadAddress):
        parse(text)


def test_another_dialect_is_named_with_the_nearest_one_that_is_spoken() -> None:
    with pytest.raises(BadAddress, match=r"does not speak ebus.*emqp"):
        App("ebus://127.0.0.1")


def test_a_file_is_read_each_time_it_is_needed(tmp_path: Path) -> None:
    address = parse(f"file:{tmp_path}")
    with pytest.raises(ConnectionError, match="does not run"):
        address.places(CLIENT)
    for port in (1111, 2222):
        told = {"listeners": {"emqp.client": f"tcp://127.0.0.1:{port}", "emqp.worker": f"tcp://[::1]:{port}"}}
        (tmp_path / "broker.json").write_text(json.dumps(told))
        assert address.places(CLIENT) == [("127.0.0.1", port)]
        assert address.places(WORKER) == [("::1", port)]
    with pytest.raises(BadAddress, match=r"no listener emqp\.publish"):
        address.places(PUBLISH)
    assert App.from_broker_json(tmp_path / "broker.json").address.places(CLIENT) == [("127.0.0.1", 2222)]
