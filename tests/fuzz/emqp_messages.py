"""eMQP messages for the fuzz driver: mostly sensible, often odd, sometimes mutated."""

from __future__ import annotations

import random

QUEUES = [*[b"mail"] * 6, *[b"low"] * 3, b"", b"default", b"\xff\xfe", b"tab\there", b"q" * 255, b"q" * 256]
ITEMS = [
    b"reply-requested",
    b"guarantee",
    b"retry-count:0",
    b"retry-count:2",
    b"retry-count:x",
    b"timeout:1",
    b"timeout:2.5",
    b"timeout:0",
    b"timeout:-1",
    b"x-timeout:a",
    b"nohaste",
    b"run_count:0",
    b"run_count:2",
    b"priority:5",
    b"priority:9",
    b"priority:10",
    b"delay:1",
    b"delay:0.05",
    b"expires:0.5",
    b"expires:3",
    b"dedupe:a",
    b"dedupe:b",
    b"dedupe:timeout:x",
    b"ack-requested",
    b"traceparent:00-aa-bb-01",
    b"x:\xff",
    b" , ",
    b"x" * 2000,
]
JOB = b'["run",{"path":"m","callable":"f","args":[],"kwargs":{},"class_args":[],"class_kwargs":{}}]'
BODIES = [JOB, JOB, JOB, b"[1,2]", b"[1,NaN]", b"{}", b"", b"text", b"\xff\x00", b"[" * 3000, b"y" * 20_000]
VALUES = [
    b'{"value": 1}',
    b'{"value": 1}',
    b'{"value": "TimeoutError"}',
    b'{"error": {"type": "E", "message": ""}}',
    b"",
    b"\xff",
    b"v" * 20_000,
]
QUEUE_LISTS = [
    b'[[30, "low"], [10, "mail"]]',
    b'[[10,"mail"]]',
    b'[[10,"mail"],[10,"low"],[5,"default"]]',
    b"mail",
    b"",
    b"[]",
    b"\xff\xfe",
    b'["low", "tab\\there", ""]',
    b'[[1e9,"mail"],[-5,"low"]]',
    b'[[%s,"mail"]]' % (b"9" * 400),
    b"[" * 3000,
    b"q" * 256,
]
INTERVALS = [b"1", b"0.5", b"2", b"-1", b"0", b"nan", b"1e300", b"soon", b"0.0001", b""]
CRONS = [b"", b"* * * * *", b"*/2 * * * * *", b"61 * * * *", b"9" * 5000, b"\xff", b"0 0 30 2 *"]
TOPICS = [b"", b"a", b"ab", b"abc", b"\xff", b"t" * 255, b"t" * 256]
RARE = [b"HELLO", b"", b"\xff", b"ACK", b"STATUS", b"ROUTER_SHOW_WORKERS", b"ROUTER_SHOW_SCHEDULERS", b"KBYE", b"KBAI"]
VERSIONS = [b"eMQP/1.1", b"eMQP/2.0", b"", b"\xff", b"eMQP/1"]
OWN_ID = b"00000000-0000-0000-0000-0100000000%02x"


def an_arrival(chance: random.Random) -> list[list[bytes]]:
    """How most workers begin."""
    inform = [b"", b"eMQP/1.0", b"INFORM", b"id", QUEUE_LISTS[int(chance.random() * 4)], *chance.choice(ROLES[:5])]
    return [inform] + [[b"", b"eMQP/1.0", b"READY", b"id"]] * 3


def a_message(chance: random.Random, listener: str, ids: list[bytes], jobs: list[bytes]) -> list[bytes]:
    """The frames of one message; `jobs` are the ids of what the peer was given."""
    if listener == "emqp.subscribe":
        frames = [chance.choice([b"\x01", b"\x01", b"\x00", b"\x02", b""]) + chance.choice(TOPICS)]
    else:
        frames = [b"", b"eMQP/1.0", *a_command(chance, listener == "emqp.worker", ids, jobs)]
    return mutated(chance, frames) if chance.random() < 0.12 else frames


def a_command(chance: random.Random, is_worker: bool, ids: list[bytes], jobs: list[bytes]) -> list[bytes]:
    kind = chance.random()
    own = chance.choice(ids)
    if is_worker:
        if kind < 0.4:
            return [b"READY", own]
        if kind < 0.75:
            answered = chance.choice(jobs) if jobs and kind < 0.7 else chance.choice(ids)
            return [b"REPLY", own, chance.choice(VALUES), answered]
        if kind < 0.85:
            return [b"HEARTBEAT", own, b"1.0"]
        if kind < 0.88:
            return [b"INFORM", own, chance.choice(QUEUE_LISTS), *chance.choice(ROLES)]
        if kind < 0.97:
            return [b"REQUEST", own, chance.choice(QUEUES), headers(chance), chance.choice(BODIES)]
    elif kind < 0.92:
        if kind < 0.68:
            return [b"REQUEST", own, chance.choice(QUEUES), headers(chance), chance.choice(BODIES)]
        if kind < 0.76:
            return [chance.choice([b"STATE", b"CANCEL"]), own, chance.choice(ids)]
        if kind < 0.82:
            word = chance.choice([b"SCHEDULE", b"SCHEDULE", b"UNSCHEDULE"])
            queue, body = chance.choice(QUEUES), chance.choice(BODIES)
            return [word, own, queue, headers(chance), chance.choice(INTERVALS), body, chance.choice(CRONS)]
        if kind < 0.87:
            return [b"PUBLISH", own, chance.choice(TOPICS), b"news"]
        if kind < 0.88:
            return [b"INFORM", own, chance.choice(QUEUE_LISTS), *chance.choice(ROLES)]
    return [chance.choice(RARE), own] if kind < 0.99 else [b"DISCONNECT", own]


ROLES = [[], [b"worker"], [b"worker"], [b"worker", b"bytes"], [b"worker", b"bytes"], [b"scheduler"], [b"\xff"]]


def headers(chance: random.Random) -> bytes:
    draw = chance.random()
    if draw < 0.3:
        return b""
    if draw < 0.6:
        return b"reply-requested"
    return b",".join(chance.choices(ITEMS, k=1 + int(chance.random() * 3)))


def mutated(chance: random.Random, frames: list[bytes]) -> list[bytes]:
    """A few changes to the frames of a message."""
    for _ in range(chance.randint(1, 2)):
        at = chance.randrange(len(frames))
        way = chance.randint(0, 9)
        if way == 0 and len(frames) > 1:
            del frames[at]
        elif way == 1:
            frames.insert(at, frames[at])
        elif way == 2:
            frames.insert(at, b"")
        elif way == 3:
            frames[at] = frames[at][: len(frames[at]) // 2]
        elif way == 4:
            frames[at] = chance.randbytes(chance.choice([1, 8, 300]))
        elif way == 5:
            other = chance.randrange(len(frames))
            frames[at], frames[other] = frames[other], frames[at]
        elif way == 6:
            frames[at] = frames[at].swapcase()
        elif way == 7 and len(frames) > 1:
            frames[1] = chance.choice(VERSIONS)
        elif way == 8:
            frames[at] = OWN_ID % chance.randrange(60)  # an id of the broker's own, or a client's that looks like one
        else:
            frames.extend([b"more"] * chance.choice([1, 5, 70]) if chance.random() < 0.1 else [b"more"])
    return frames


def spoilt_bytes(chance: random.Random, data: bytes) -> bytes:
    spoiling = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(spoiling))
        if chance.random() < 0.5:
            spoiling[at] ^= 1 << chance.randint(0, 7)
        else:
            del spoiling[at : at + chance.randint(1, 3)]
            spoiling += b"\0"
    return bytes(spoiling)
