"""Peers that follow none of the protocols: web pages, port scanners, half greetings, absurd sizes.

The broker must disconnect what cannot become a peer in the end, whatever it sends and however slowly; no other peer may be affected.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from dragoman.model.units import SECOND_NS
from dragoman_lab.sim.machine.loop import MS_NS
from dragoman_lab.sim.machine.net import Wire
from dragoman_lab.sim.machine.risp import BareEnd
from dragoman_lab.sim.peers.rude import NONSENSE

if TYPE_CHECKING:
    from dragoman_lab.sim.world import World

GREETING = b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x01NULL" + bytes(48)
READY = b"\x04\x29\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00"
LISTENERS = (*sorted(NONSENSE), "emqp.client", "pingpong.client")
PATIENCE_S = 3  # beyond the deadline for greetings


def http(chance: Random) -> bytes:
    method = chance.choice((b"GET", b"POST", b"OPTIONS", b"HEAD", b"PUT", b"PRI"))
    head = b"%s / HTTP/1.1\r\nHost: broker\r\nContent-Length: 64\r\n\r\n" % method
    return head + chance.choice((b"", b"\x01\x00\x05\x00hello" * 4))  # a sequence of ZMTP 1.0 frames


def tls_hello(chance: Random) -> bytes:
    return b"\x16\x03" + bytes([chance.choice((1, 3))]) + b"\x02\x00\x01\x00\x01\xfc\x03\x03" + chance.randbytes(32)


def half_greeting(chance: Random) -> bytes:
    whole = GREETING + READY
    return whole[: chance.randint(1, len(whole) - 1)]


def huge_frame(chance: Random) -> bytes:
    """A complete handshake, then a frame that announces more than any message may have."""
    size = chance.choice((1 << 31, 1 << 40, (1 << 63) - 1))
    return GREETING + READY + b"\x02" + size.to_bytes(8, "big") + b"x" * 20


def huge_payload(chance: Random) -> bytes:
    """RISP: a parameter of four gigabytes."""
    return b"\xe0\xff\xff\xff\xff" + b"x" * 20


def noise(chance: Random) -> bytes:
    return chance.randbytes(chance.randint(1, 200))


def endless_message(chance: Random) -> bytes:
    """A complete handshake, then the beginning of a message."""
    return GREETING + READY + b"\x02" + (1 << 20).to_bytes(8, "big") + b"x" * chance.randint(0, 100)


# What must be disconnected in the end, for ZMTP listeners and for RISP's; the rest may have become a peer by chance.
DOOMED: dict[bool, tuple[Callable[[Random], bytes], ...]] = {
    False: (http, tls_hello, half_greeting, huge_frame),
    True: (http, tls_hello, huge_payload),
}
OTHERS = (noise, noise, endless_message)


class GarbagePeer:
    """Opens one connection after the other, on any listener, and sends nonsense from the first byte on."""

    is_rude = True

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.name = f"garbage{number}"
        self._doomed: list[tuple[int, str, Wire]] = []  # since when, what it sent

    def act(self) -> None:
        world, chance = self.world, self.world.chance
        if world.is_healing:
            return
        world.timeline.after(chance.randint(20, 1500) * MS_NS, self.act)
        if world.life is None:
            return
        listener = chance.choice(LISTENERS)
        doomed = DOOMED[listener == "rq"]
        kind = chance.choice((*doomed, *OTHERS))
        wire = Wire(world, self, listener, b"", end=BareEnd())
        world.say(f"{self.name} ({wire.number}) sends {kind.__name__} to {listener}")
        data = kind(chance)
        wire.send(data)
        if kind in doomed:
            self._doomed.append((world.timeline.now_ns, f"{kind.__name__} to {listener}: {data[:80]!r}", wire))
        if chance.random() < 0.2:
            world.timeline.after(chance.randint(1, 3000) * MS_NS, wire.cut)

    def check_cut_off(self, within_s: float) -> None:
        """Check that the broker has disconnected everything that cannot be a peer, after the deadline for greetings."""
        now_ns = self.world.timeline.now_ns
        for since_ns, what, wire in self._doomed:
            is_over = wire.transport.is_gone or not wire.life.loop.is_alive
            assert is_over or now_ns - since_ns <= (within_s + PATIENCE_S) * SECOND_NS, f"still connected: {what}"
        self._doomed = [doomed for doomed in self._doomed if not doomed[2].transport.is_gone]

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        """Ignored: the broker owes it nothing."""

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        pass

    def on_lost(self, wire: Wire) -> None:
        pass
