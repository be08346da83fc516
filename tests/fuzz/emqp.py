"""Random and mutated eMQP messages through sessions and core, from one seed.

An input is one message on one of a few connections to a broker that lives for some dozens of them. The law: only documented
errors come out, what leaves the broker is whole ZMTP, and afterwards every counter of the core is right and its facts,
replayed, give its state byte for byte.

    python -m tests.fuzz.emqp --inputs 1000000 --seed 1
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter

from dragoman import errors
from dragoman.core.settings import CoreSettings
from dragoman.testing.sim.recount import check_bounds, recount
from dragoman.wire.zmtp.frames import encode_message
from tests.core.harness import End, House
from tests.core.replaying import check_replay
from tests.fuzz.zmtp import DOCUMENTED

INPUTS_PER_CASE = 50
LISTENERS = (
    "emqp.client",
    "emqp.client",
    "emqp.worker",
    "emqp.worker",
    "emqp.worker",
    "emqp.admin",
    "emqp.publish",
    "emqp.subscribe",
)
COMMANDS = (b"REQUEST", b"REQUEST", b"REPLY", b"READY") * 8 + (
    b"INFORM", b"INFORM", b"HEARTBEAT", b"HEARTBEAT", b"KBYE",
    b"KBAI", b"DISCONNECT", b"SCHEDULE", b"UNSCHEDULE", b"PUBLISH", b"STATUS", b"ROUTER_SHOW_WORKERS", b"STATE", b"CANCEL",
    b"ROUTER_SHOW_SCHEDULERS", b"ACK", b"HELLO", b"request", b"Reply", b"",
)  # fmt: skip
QUEUES = (b"mail",) * 12 + (b"default", b"default", b"", b"\xff\xfe", b"q" * 255, b"q" * 256, b"a,b", b"a\tb", b"[1")
HEADERS = (
    b"reply-requested", b"ack-requested", b"guarantee", b"retry-count:1", b"retry-count:-1", b"retry-count:99999999999999",
    b"timeout:1", b"timeout:1e400", b"timeout:nan", b"timeout:-0.0", b"x-timeout:a", b"priority:9", b"priority:10", b"priority:",
    b"delay:0.3", b"delay:1e-9", b"expires:0.2", b"expires:0", b"expires:315360000", b"dedupe:k", b"dedupe:", b"dedupe:" + b"k" * 300,
    b"nohaste", b"run_count:2", b"run_count:0", b":", b"::::", b"\xff\x00", b" , ,", b"traceparent:00-1-2-01", b"REPLY-REQUESTED",
)  # fmt: skip
GOOD_HEADERS = (
    b"reply-requested", b"ack-requested", b"guarantee", b"retry-count:0", b"retry-count:1", b"retry-count:2", b"timeout:0.2",
    b"priority:9", b"delay:0.3", b"expires:0.4", b"dedupe:k", b"nohaste", b"x-y:z",
)  # fmt: skip
INFORMS = (b'[[10,"mail"]]', b'[[30,"default"],[10,"mail"]]') * 8 + (
    b"", b"default", b'[[10,"mail"]]', b'[[30,"low"],[10,"default"]]', b"[]", b"[[]]", b'[[1e999,"x"]]', b'[[-5,"mail"]]', b'["mail"]',
    b'[[1,""]]', b'[["a","b"]]', b"[" * 3000, b'[[10,"\\ud800"]]', b"[null]", b'[[99999999999999999999,"mail"]]', b'[[1.5,"mail"]]',
    b'{"a":1}', b"[[10,\"mail\"],[20,\"mail\"]]",
)  # fmt: skip
BODIES = (
    b"", b"{}", b'["run", {"path": "a", "callable": "b"}]', b"\xff\xfe", b"[" * 3000, b"null", b'["a"]', b"x" * 300, b"y" * 20_000,
)  # fmt: skip
VALUES = (
    b'{"value": 1}',
    b'{"value": "TimeoutError"}',
    b'{"error": {"type": "E"}}',
    b"",
    b"\xff",
    b'{"error"',
    b"z" * 300,
)
INTERVALS = (b"1", b"0.5", b"-1", b"0", b"nan", b"inf", b"-inf", b"1e-9", b"1e300", b"", b"\xff", b"1_0")
CRONS = (b"", b"* * * * *", b"*/5 * * * *", b"0 0 30 2 *", b"@hourly", b"nonsense", b"\xff", b"* * * * * *")


def run(inputs: int, seed: int) -> Counter[str]:
    """Feed that many inputs; the count of each outcome. A failure names its case."""
    outcomes: Counter[str] = Counter()
    for number in range(0, inputs, INPUTS_PER_CASE):
        try:
            one(seed, number, outcomes)
        except Exception as failure:
            raise AssertionError(f"seed {seed}, case {number}: {failure!r}") from failure
    return outcomes


def one(seed: int, number: int, outcomes: Counter[str]) -> None:
    """One broker's short life, the same in every run."""
    chance = random.Random(f"{seed}/{number}")
    settings = CoreSettings()
    settings.head_max = chance.choice((1, 3, 100_000))
    settings.queue_messages_max = chance.choice((0, 0, 5))
    settings.quarantine_after = chance.choice((0, 1, 3))
    settings.backoff_initial_ns = chance.choice((0, 50_000_000))
    house = House(settings)
    ends = [connected(chance, house) for _ in range(4)]
    for _ in range(INPUTS_PER_CASE):
        at = chance.randrange(len(ends))
        outcomes[give(chance, house, ends[at])] += 1
        if not ends[at].session.is_connected:
            ends[at] = connected(chance, house)
        if chance.random() < 0.06:
            house.pass_time(chance.choice((0.1, 0.1, 0.1, 0.4, 5.2)))
    for end in ends:
        end.hear()
    recount(house.core)
    check_bounds(house.core)
    check_replay(house)


def connected(chance: random.Random, house: House) -> End:
    listener = chance.choice(LISTENERS)
    if listener == "emqp.subscribe":
        return house.connect(listener, b"", b"SUB")
    identity = chance.choice((b"", b"one", b"one", b"two", b"\xff\x00", b"i" * 255))
    end = house.connect(listener, identity, chance.choice((b"DEALER", b"DEALER", b"REQ", b"ROUTER")))
    if listener == "emqp.worker" and chance.random() < 0.8:
        end.say(b"INFORM", b"in", b'[[10,"mail"]]', *chance.choice(([b"worker"], [b"worker", b"bytes"])))
        for _ in range(chance.randint(0, 4)):
            end.say(b"READY", b"rd")
    return end


def give(chance: random.Random, house: House, end: End) -> str:
    """One input to one connection; what came of it."""
    if chance.random() < 0.03:
        end.leave()
        return "left"
    data = encode_message(a_message(chance, house, end))
    if chance.random() < 0.02:
        at = chance.randrange(len(data))
        data = data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
    try:
        end.session.receive(data)
        if chance.random() < 0.5:
            end.hear()
    except errors.PeerError as fault:
        if type(fault) not in DOCUMENTED:
            raise
        end.leave()
        return fault.code
    return "taken"


def a_message(chance: random.Random, house: House, end: End) -> list[bytes]:
    if end.session.listener == "emqp.subscribe":
        return [chance.choice((b"\x01", b"\x00", b"\x02", b"")) + chance.choice((b"", b"news", b"n" * 300))]
    command = chance.choice(COMMANDS)
    version = (
        b"eMQP/1.0" if chance.random() < 0.97 else chance.choice((b"eMQP/1.7", b"eMQP/2.0", b"", b"eMQP/1.", b"\xff"))
    )
    frames = [b""] * chance.choice((1,) * 12 + (0, 2, 3)) + [
        version,
        command,
        an_id(chance, house),
        *operands(chance, house, command),
    ]
    return spoilt(chance, frames) if chance.random() < 0.2 else frames


def operands(chance: random.Random, house: House, command: bytes) -> list[bytes]:
    word = command.upper()
    headers = b",".join(
        chance.choices(HEADERS if chance.random() < 0.3 else GOOD_HEADERS, k=chance.choice((0, 1, 2, 3)))
    )
    if word == b"REQUEST":
        return [chance.choice(QUEUES), headers, chance.choice(BODIES)]
    if word == b"REPLY":
        open_ids = list(house.core.state.by_wire_id)
        asked = chance.choice(open_ids) if open_ids and chance.random() < 0.8 else an_id(chance, house)
        return [chance.choice(VALUES), asked]
    if word == b"INFORM":
        tail = chance.choice(([], [b"worker"], [b"worker", b"bytes"], [b"scheduler"], [b"\xff"]))
        return [chance.choice(INFORMS), *tail]
    if word in (b"SCHEDULE", b"UNSCHEDULE"):
        return [chance.choice(QUEUES), headers, chance.choice(INTERVALS), chance.choice(BODIES), chance.choice(CRONS)]
    if word == b"PUBLISH":
        return [chance.choice((b"news", b"", b"n" * 300)), chance.choice(BODIES)]
    if word in (b"STATE", b"CANCEL"):
        return [an_id(chance, house)]
    return [chance.choice((b"", b"1.0", b"x"))] * chance.choice((0, 1))


def an_id(chance: random.Random, house: House) -> bytes:
    """An id in use, when there is one, so that answers and questions meet something."""
    if chance.random() < 0.5 and house.core.state.by_wire_id:
        return chance.choice(list(house.core.state.by_wire_id))
    return chance.choice((b"", b"a", b"\xff", b"i" * 255, b"i" * 256, b"%d" % chance.randrange(30)))


def spoilt(chance: random.Random, frames: list[bytes]) -> list[bytes]:
    """Frames lost, doubled, swapped or replaced."""
    frames = list(frames)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(frames))
        way = chance.randrange(4)
        if way == 0 and len(frames) > 1:
            del frames[at]
        elif way == 1:
            frames.insert(at, frames[at])
        elif way == 2:
            other = chance.randrange(len(frames))
            frames[at], frames[other] = frames[other], frames[at]
        else:
            frames[at] = chance.randbytes(chance.choice((0, 1, 8, 300)))
    return frames


def main() -> None:
    parser = argparse.ArgumentParser(description="Fuzz the eMQP sessions and the core behind them.")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began = time.monotonic()
    outcomes = run(asked.inputs, asked.seed)
    took_s = time.monotonic() - began
    print(f"emqp: {asked.inputs} inputs of seed {asked.seed} in {took_s:.1f} s, only documented errors")
    for code, count in outcomes.most_common():
        print(f"  {count:>9}  {code}")


if __name__ == "__main__":
    main()
