"""Scale0 messages for the fuzz driver: mostly sensible, often odd, sometimes mutated."""

from __future__ import annotations

import json
import random
from typing import Any

IDS: list[Any] = ["job", "job", 'quo"te', "ünï", "", 17, 17, -2.5, 10**30, None, "i" * 255, "i" * 256, "\n", [1], {}]
SERVICES = [*["mail"] * 6, *["low"] * 3, "", "s" * 255, "s" * 256, 'a"b', "é", 7]
OFFERS: list[Any] = [
    ["mail"], ["mail"], ["mail", "low"], ["low"], "mail, low", [], [1, "mail"], ["s" * 300], ['a"b', "é", "mail"], "mail", 5,
    [["mail"]],
]  # fmt: skip
BODIES = [b"work", b"work", b"", b"\xff\x00", b"\x01" * 20_000, b"{}"]
TYPES: list[Any] = ["JSON", "XML", "ZFL", "zfl", "YAML", "", None, 3]
INTERVALS: list[Any] = [0.5, 1, 2, 30, 0, -1, "2", "often", 1e12]
HEADERS = [
    b"",
    b"{}",
    b"{",
    b"[]",
    b'{"id":',
    b"\xff",
    b'{"a":"\xff"}',
    b"{" * 3000,
    b'{"x":[[[[1]]]]}',
    b" {}",
    b"null",
]
TEXTS = [
    b"tcp://h:1 a,b 1700000000",
    b"tcp://h:1 mail",
    b"mail",
    b"1700000000.25",
    b"a b c d",
    b" ",
    b"x" * 300,
    b"\xff \xfe",
]
COMMANDS = [
    b"CONNECT",
    b"PING",
    b"TASK",
    b"TASKREPLY",
    b"NEEDBROKER",
    b"PONG",
    b"CONFIG",
    b"ERROR",
    b"READY",
    b"task",
    b"",
    b"\xff",
]


def a_message(
    chance: random.Random, is_worker: bool, now_s: float, versions: list[str], jobs: list[Any]
) -> list[bytes]:
    draw = chance.random()
    if draw < 0.04:
        return [chance.choice(COMMANDS), chance.choice(HEADERS), chance.choice(BODIES)][: chance.randint(1, 3)]
    if draw < 0.07:
        return [chance.choice([b"PING", b"READY", b"HEARTBEAT", b"PONG", b"TASK"]), chance.choice(TEXTS)]
    header: dict[str, Any] = {}
    if chance.random() < 0.3:
        header["time"] = now_s + chance.choice([0, 0, 0, 0, 1, -25, -31, 1e9])
    if chance.random() < 0.3:
        header[chance.choice(["config_version", "config_version", "configversion"])] = chance.choice(versions)
    if draw < 0.12:
        header |= {
            "config_type": chance.choice(TYPES),
            "services": chance.choice(OFFERS),
            "identity": chance.choice(["w1", "x"]),
        }
        return said("CONNECT", header)
    if draw < 0.15:
        header |= {"services": chance.choice(OFFERS)}
        return said("NEEDBROKER", header)
    if not is_worker:
        if draw < 0.2:
            return said("PING", header)
        header |= {"id": chance.choice(IDS), "service": chance.choice(SERVICES)}
        return [*said("TASK", header), chance.choice(BODIES)]
    if draw < 0.6:
        if chance.random() < 0.4:
            header["services"] = chance.choice(OFFERS)
        if chance.random() < 0.2:
            header["heartbeat_interval"] = chance.choice(INTERVALS)
        if chance.random() < 0.1:
            header["busy"] = chance.choice([True, False, 1])
        return said("PING", header)
    header["id"] = (
        chance.choice(jobs) if jobs and chance.random() < 0.9 else chance.choice([*IDS, "0" * 16, "f" * 18, "0" * 17])
    )
    return [*said("TASKREPLY", header), chance.choice(BODIES)]


def said(command: str, header: dict[str, Any]) -> list[bytes]:
    return [command.encode(), json.dumps(header, ensure_ascii=len(header) % 2 == 0).encode()]
