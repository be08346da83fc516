"""ebus messages for the fuzz driver: mostly sensible, often odd, sometimes mutated."""

from __future__ import annotations

import random

from tests.fuzz.emqp_messages import mutated

SERVICES = [*[b"hello"] * 6, *[b"mail"] * 3, b"", b"null", b"\xff\xfe", b"s" * 255, b"s" * 256]
DATA = [b"", b"null", b"a", b"b", b"\xff\x00", b"D" * 300, b"D" * 20_000]
STALES = [b"2500", b"2500", b"500", b"9000", b"", b"null", b"-1", b"0", b"soon", b"9" * 30, b"60000"]
CHANNELS = [b"", b"a", b"ab", b"abc", b"\xff", b"ebus/shutdown", b"ebus/other", b"c" * 255, b"c" * 256]
CLIENT_WORDS = [b"PING", b"HEARTBEAT", b"SERVICES", b"WORKERS"]
SENDERS = [b"EBC01", b"EBW01", b"EBX01", b"", b"EBC02"]
NEWS_KINDS = [b"\x01", b"\x01", b"\x00", b"\x02", b""]


def an_arrival(chance: random.Random) -> list[bytes]:
    """How most workers begin."""
    service = SERVICES[int(chance.random() * 9)]
    more = chance.choice([[], [], [], [b"2"], [b"1", b"mail"], [b"0"], [b"x"], [b"9" * 30]])
    return [b"EBW01", b"READY", b"null", service, *more]


def a_message(chance: random.Random, listener: str, rids: list[bytes], jobs: list[tuple[bytes, bytes]]) -> list[bytes]:
    """The frames of one message; `jobs` is what the peer was given, rid and data, and an honest worker answers it honestly."""
    if listener == "ebus.subscribe":
        frames = [chance.choice(NEWS_KINDS) + chance.choice(CHANNELS)]
    elif listener == "ebus.publish":
        frames = [chance.choice(CHANNELS), b"news"]
    elif listener == "ebus.worker" and chance.random() < 0.9:
        frames = [b"EBW01", *from_worker(chance, rids, jobs)]
    else:
        frames = [b"", b"EBC01", *from_client(chance, rids)]
    if chance.random() < 0.06:
        if frames[-1].startswith(b"for "):
            frames[-1] = b"spoilt"
        return mutated(chance, frames)
    return frames


def from_client(chance: random.Random, rids: list[bytes]) -> list[bytes]:
    kind = chance.random()
    rid = chance.choice(rids)
    if kind < 0.75:
        word = b"REQUEST" if kind < 0.1 else b"REQ"
        frames = [word, chance.choice(SERVICES), rid, chance.choice(DATA), chance.choice(STALES)]
        return frames if kind < 0.7 else frames[: 2 + int(chance.random() * 3)]
    if kind < 0.83:
        return [b"CANCEL", chance.choice(SERVICES), rid]
    if kind < 0.88:
        return [b"REJECT", rid, b"no request with that rid"]
    if kind < 0.985:
        return [chance.choice(CLIENT_WORDS)]
    return [b"DISCONNECT"] if kind < 0.992 else [chance.choice([b"READY", b"HELLO", b"", b"\xff"]), rid]


def from_worker(chance: random.Random, rids: list[bytes], jobs: list[tuple[bytes, bytes]]) -> list[bytes]:
    kind = chance.random()
    if kind < 0.7 and jobs:
        rid, data = chance.choice(jobs)
        return [b"REPLY" if kind < 0.55 else b"REJECT", rid, b"for " + data]
    if kind < 0.8:
        return [b"REPLY", chance.choice(rids), b"forged"]
    if kind < 0.97:
        return [chance.choice([b"HEARTBEAT", b"PING"])]
    if kind < 0.98:
        return [b"DISCONNECT", b"hello", b"undefined"]
    if kind < 0.99:
        return an_arrival(chance)[1:]
    return [chance.choice([b"REPLY", b"READY", b"CANCEL", b"", b"\xff"])]
