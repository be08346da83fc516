"""The floods: each a loop of its own, run in a process of its own, from an address of its own on loopback.

None uses dragoman's code. Every loop ends by itself at its deadline, and its pauses bound what it sends.
"""

from __future__ import annotations

import random
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

STALLED_SUBSCRIBERS = 200
HALF_SENT = 200
SILENT = 300
MB: Final = 1 << 20
WAITING_SIZE_MAX: Final = 400 * MB  # bytes of bodies that wait without a worker, in one siege
NAMES_MAX = 20_000
VERSION = b"eMQP/1.0"
PORTS_OF_PEERS = (
    "emqp.client", "emqp.worker", "emqp.admin", "emqp.publish", "ebus.client", "ebus.worker", "ebus.publish",
    "scale0.client", "scale0.worker", "pingpong.client", "pingpong.worker", "rq",
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """Where the listeners are, where an attack comes from, and when it ends (`time.monotonic`)."""

    ports: dict[str, int]
    source: str
    ends_s: float

    def is_over(self) -> bool:
        return time.monotonic() >= self.ends_s

    def connect(self, listener: str) -> socket.socket:
        peer = socket.socket()
        peer.settimeout(2.0)
        peer.bind((self.source, 0))
        peer.connect(("127.0.0.1", self.ports[listener]))
        return peer

    def rounds(self, pause_s: float) -> Iterator[int]:
        """Count rounds until the end; what a round meets of refused and broken connections is its own affair."""
        number = 0
        while not self.is_over():
            yield number
            number += 1
            time.sleep(pause_s)


# -- ZMTP by hand --------------------------------------------------------------------------------------------------------


def greeting(socket_type: bytes, identity: bytes = b"") -> bytes:
    """A ZMTP 3.0 greeting and READY, sent without waiting for the other side's."""
    properties = _property(b"Socket-Type", socket_type) + _property(b"Identity", identity)
    ready = b"\x05READY" + properties
    signature = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL".ljust(54, b"\0") + b"\0"
    return signature[:64].ljust(64, b"\0") + bytes([4, len(ready)]) + ready


def _property(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + struct.pack(">I", len(value)) + value


def message(*frames: bytes) -> bytes:
    out = []
    for at, frame in enumerate(frames):
        more = at + 1 < len(frames)
        long = len(frame) > 255
        out.append(bytes([more | long << 1]) + (struct.pack(">Q", len(frame)) if long else bytes([len(frame)])) + frame)
    return b"".join(out)


def emqp(command: bytes, *arguments: bytes) -> bytes:
    return message(b"", VERSION, command, b"id-%d" % random.randrange(1 << 40), *arguments)


# -- the attacks ---------------------------------------------------------------------------------------------------------


def web_pages(target: Target) -> None:
    """Browsers' requests with a sled of ZMTP 1.0 frames, TLS hellos and noise on every listener."""
    sled = b"\x01\x00" * 200 + message(b"", VERSION, b"REQUEST", b"x", b"victim", b"", b'["run",{}]')
    prefixes = (
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n\r\n" + sled,
        b"GET /jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
        random.randbytes(300),
        b"\x01\x00" + message(b"DISCONNECT"),
    )
    for number in target.rounds(0.003):
        with suppress(OSError), target.connect(PORTS_OF_PEERS[number % len(PORTS_OF_PEERS)]) as peer:
            peer.sendall(random.choice(prefixes))
            peer.recv(100)


def silence(target: Target) -> None:
    """Hundreds of connections that never say a word, on the page and on every listener."""
    listeners = ("http", "rq", "emqp.client", "ebus.client")
    held: list[socket.socket] = []
    for number in target.rounds(0.002):
        with suppress(OSError):
            held.append(target.connect(listeners[number % len(listeners)]))
        if len(held) > SILENT:
            held.pop(0).close()


def half_messages(target: Target) -> None:
    """Messages of 5 MiB of which the last byte never comes."""
    held: list[socket.socket] = []
    start = b"\x03" + struct.pack(">Q", 5 * MB)
    for _ in target.rounds(0.1):
        with suppress(OSError):
            peer = target.connect("emqp.client")
            peer.sendall(greeting(b"DEALER") + start + bytes(5 * MB - 1))
            held.append(peer)
        if len(held) > HALF_SENT:
            held.pop(0).close()


def stalled_subscribers(target: Target) -> None:
    """Subscribers to everything that never read."""
    held: list[socket.socket] = []
    for _ in target.rounds(0.05):
        if len(held) >= STALLED_SUBSCRIBERS:
            continue
        with suppress(OSError):
            peer = target.connect("emqp.subscribe")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            peer.sendall(greeting(b"SUB") + b"\x00\x01\x01")
            held.append(peer)


def news(target: Target) -> None:
    """A publisher of large news, for those."""
    with target.connect("emqp.publish") as peer:
        peer.settimeout(max(target.ends_s - time.monotonic(), 1.0))
        peer.sendall(greeting(b"DEALER"))
        for _ in target.rounds(0.05):
            with suppress(OSError):
                peer.sendall(emqp(b"PUBLISH", b"flood", b"", bytes(200_000)))


def waiting_bodies(target: Target) -> None:
    """Bodies of 1 MB for a queue without a worker."""
    sent = 0
    while not target.is_over() and sent < WAITING_SIZE_MAX:
        with suppress(OSError), target.connect("emqp.client") as peer:
            peer.sendall(greeting(b"DEALER", b"hoarder"))
            for _ in target.rounds(0.05):
                if sent >= WAITING_SIZE_MAX:
                    break
                peer.sendall(emqp(b"REQUEST", b"hoard", b"", b'["run",{}]' + bytes(MB)))
                sent += MB
        time.sleep(0.2)


def many_names(target: Target) -> None:
    """A new queue with every message."""
    for number in target.rounds(0.5):
        first = number * 200
        if first >= NAMES_MAX:
            return
        with suppress(OSError), target.connect("emqp.client") as peer:
            requests = [emqp(b"REQUEST", b"name-%d" % n, b"", b'["run",{}]') for n in range(first, first + 200)]
            peer.sendall(greeting(b"DEALER") + b"".join(requests))
            peer.recv(100)


def large_informs(target: Target) -> None:
    """Workers that claim 40 000 queues, again and again."""
    claims = b"[" + b",".join(b'[1,"claim-%d"]' % n for n in range(40_000)) + b"]"
    for _ in target.rounds(1.0):
        with suppress(OSError), target.connect("emqp.worker") as peer:
            inform = message(b"", VERSION, b"INFORM", b"greedy", claims, b"worker")
            peer.sendall(greeting(b"DEALER", b"greedy") + inform + inform)
            peer.recv(100)


def forged_answers(target: Target) -> None:
    """A worker that answers what it never got, and asks for more than it can do."""
    for number in target.rounds(0.05):
        with suppress(OSError), target.connect("emqp.worker") as peer:
            peer.sendall(greeting(b"DEALER", b"forger-%d" % number))
            peer.sendall(message(b"", VERSION, b"INFORM", b"i", b'[[1,"nothing"]]', b"worker"))
            answers = [
                message(b"", VERSION, b"REPLY", b"r", b'{"value": 0}', b"%d" % random.randrange(1 << 45))
                for _ in range(200)
            ]
            peer.sendall(b"".join(answers) + emqp(b"READY") * 200)
            peer.recv(100)


ATTACKS: Final[tuple[Callable[[Target], None], ...]] = (
    web_pages,
    silence,
    half_messages,
    stalled_subscribers,
    news,
    waiting_bodies,
    many_names,
    large_informs,
    forged_answers,
)
