"""Random and mutated bytes through the ZMTP decoder, from one seed.

Each input meets a fresh connection of a random role twice: whole, and cut at random. Invariant: only documented errors come
out, both ways give the same messages, the same answer and the same error, and no message breaks its limits.

    python -m tests.fuzz.zmtp --inputs 1000000 --seed 1
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter

from dragoman import errors
from dragoman.limits import FRAMES_MAX
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_command, encode_message
from dragoman.wire.zmtp.greeting import PEERS, TYPES

DOCUMENTED: frozenset[type[errors.PeerError]] = frozenset(
    {
        errors.BadCommand,
        errors.BadFrameFlags,
        errors.BadFrameSize,
        errors.BadGreeting,
        errors.CommandTooLarge,
        errors.HandshakeFailed,
        errors.IdentityTooLong,
        errors.MechanismMismatch,
        errors.MessageTooLarge,
        errors.PeerRefused,
        errors.SocketTypeMismatch,
        errors.TooManyFrames,
    }
)

# Random bytes begin like another protocol once in a million.
RARE: frozenset[type[errors.PeerError]] = frozenset({errors.HttpNotSpoken, errors.TlsNotSpoken})

SIGNATURE = b"\xff\0\0\0\0\0\0\0\x01\x7f"
SPICE = [b"\0", b"\xff", b"\x7f", b"\x80", b"\x04", b"\x02", b"\x01", b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\0" * 8]
COMMAND_NAMES = [b"READY", b"ERROR", b"PING", b"PONG", b"SUBSCRIBE", b"CANCEL", b"JOIN", b"", b"MESSAGE"]

Outcome = tuple[list[list[bytes]], bytes, str]


def run(inputs: int, seed: int) -> Counter[str]:
    """Feed that many inputs; the count of each outcome (an error's code, or "quiet"). A failure names its one input."""
    outcomes: Counter[str] = Counter()
    for number in range(inputs):
        outcomes[one(seed, number)] += 1
    return outcomes


def one(seed: int, number: int) -> str:
    """The outcome of one input, the same in every run."""
    chance = random.Random(f"{seed}/{number}")
    socket_type = chance.choice(TYPES)
    size_max = chance.choice([0, 100, 1000, 64 << 20])
    stream = a_stream(chance, socket_type)
    whole = outcome(ZmtpConnection(socket_type, b"us", size_max), [stream], size_max)
    pieces = outcome(ZmtpConnection(socket_type, b"us", size_max), in_pieces(chance, stream), size_max)
    assert whole == pieces, f"seed {seed}, input {number}: {stream!r} means {whole!r} whole and {pieces!r} in pieces"
    return whole[2]


def outcome(connection: ZmtpConnection, parts: list[bytes], size_max: int) -> Outcome:
    """What a connection makes of these parts, with every invariant that holds for it checked."""
    messages: list[list[bytes]] = []
    outgoing = b""
    for part in parts:
        try:
            messages += connection.receive(part)
        except errors.PeerError:
            assert connection.fault is not None
        outgoing += connection.take_outgoing()
        if connection.fault is not None:
            break
    assert len(outgoing) <= sum(map(len, parts)) + 1024
    for frames in messages:
        assert 1 <= len(frames) <= FRAMES_MAX
        # A SUBSCRIBE command becomes a message whose size the command's own limit has bounded.
        assert sum(map(len, frames)) <= size_max or len(frames) == 1
    if connection.fault is None:
        return messages, outgoing, "quiet"
    assert type(connection.fault) in DOCUMENTED | RARE
    return messages, outgoing, connection.fault.code


def in_pieces(chance: random.Random, stream: bytes) -> list[bytes]:
    """The stream cut at a few points; a short one sometimes byte by byte."""
    if len(stream) < 150 and chance.random() < 0.1:
        return [stream[at : at + 1] for at in range(len(stream))]
    cuts = sorted(chance.choices(range(len(stream) + 1), k=chance.randint(1, 6)))
    starts = [0, *cuts]
    ends = [*cuts, len(stream)]
    return [stream[start:end] for start, end in zip(starts, ends, strict=True)]


def a_stream(chance: random.Random, socket_type: bytes) -> bytes:
    """Rubbish, rubbish behind a good handshake, or a good conversation spoilt in a few places."""
    kind = chance.random()
    if kind < 0.1:
        return chance.randbytes(chance.randint(0, 200))
    if kind < 0.2:
        return SIGNATURE + chance.randbytes(chance.randint(0, 120))
    version = chance.choice([1, 2, 30, 31, 31])
    opening = an_opening(chance, version, socket_type)
    if kind < 0.4:
        return opening + chance.randbytes(chance.randint(0, 200))
    stream = opening + b"".join(an_item(chance, version) for _ in range(chance.randint(0, 8)))
    return spoilt(chance, stream) if kind < 0.95 else stream


def an_opening(chance: random.Random, version: int, socket_type: bytes) -> bytes:
    theirs = chance.choice(PEERS[socket_type]) if chance.random() < 0.95 else chance.choice(TYPES)
    identity = chance.randbytes(chance.choice([0, 0, 4, 255]))
    if version == 1:
        return encode_message([identity], is_v1=True)
    if version == 2:
        return SIGNATURE + b"\x01" + bytes([TYPES.index(theirs)]) + encode_message([identity])
    ready = b"\x05READY\x0bSocket-Type" + len(theirs).to_bytes(4, "big") + theirs
    ready += b"\x08Identity" + len(identity).to_bytes(4, "big") + identity
    return SIGNATURE + bytes([3, version - 30]) + b"NULL".ljust(20, b"\0") + bytes(32) + encode_command(ready)


def an_item(chance: random.Random, version: int) -> bytes:
    """A message or a command."""
    if version >= 30 and chance.random() < 0.4:
        name = chance.choice(COMMAND_NAMES)
        return encode_command(bytes([len(name)]) + name + chance.randbytes(chance.choice([0, 1, 2, 10, 300])))
    count = chance.choice([1, 2, 7, FRAMES_MAX, FRAMES_MAX + 1]) if chance.random() < 0.1 else chance.randint(1, 7)
    frames = [bytes(chance.choice([0, 1, 36, 253, 254, 255, 256])) for _ in range(count)]
    return encode_message(frames, version == 1)


def spoilt(chance: random.Random, stream: bytes) -> bytes:
    spoiling = bytearray(stream)
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(spoiling))
        way = chance.randint(0, 4)
        if way == 0 and at < len(spoiling):
            spoiling[at] ^= 1 << chance.randint(0, 7)
        elif way == 1:
            spoiling[at : at + chance.randint(1, 12)] = b""
        elif way == 2:
            spoiling[at:at] = chance.choice(SPICE)
        elif way == 3:
            spoiling[at:at] = spoiling[at : at + chance.randint(1, 80)]
        else:
            del spoiling[at:]
    return bytes(spoiling)


def main() -> None:
    parser = argparse.ArgumentParser(description="Fuzz the ZMTP decoder.")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began = time.monotonic()
    outcomes = run(asked.inputs, asked.seed)
    took_s = time.monotonic() - began
    print(f"zmtp: {asked.inputs} inputs of seed {asked.seed} in {took_s:.1f} s, only documented errors")
    for code, count in outcomes.most_common():
        print(f"  {count:>9}  {code}")


if __name__ == "__main__":
    main()
