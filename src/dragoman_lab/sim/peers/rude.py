"""Peers that send invalid messages, on any port; peers that follow none of the protocols (web pages, port scanners, half greetings, absurd
sizes), which the broker must disconnect in the end; and the last client of all, whose one request must be served."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from dragoman.model.units import SECOND_NS
from dragoman_lab.sim.checks.facts import body_of, token
from dragoman_lab.sim.checks.ledger import Request
from dragoman_lab.sim.machine import risp
from dragoman_lab.sim.machine.loop import MS_NS
from dragoman_lab.sim.machine.net import Wire, WirePeer
from dragoman_lab.sim.peers.emqp import VERSION

if TYPE_CHECKING:
    from dragoman_lab.sim.world import World

FULL = b"JOURNAL_FULL"
SOCKETS = {"emqp.subscribe": b"SUB", "ebus.subscribe": b"SUB", "scale0.publish": b"SUB", "ebus.publish": b"PUB"}


class RudePeer(WirePeer):
    """It serves no queue of the plan, so it takes no message of others; except in pingpong, where there is only one queue."""

    is_rude = True

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.name = f"rude{number}"

    def act(self) -> None:
        world, chance = self.world, self.world.chance
        if world.act_again(5, 900, self.act) is None:
            return
        if self.wire is None or not self.wire.is_up:
            listener = chance.choice(sorted(NONSENSE))
            identity = chance.choice((b"", b"rude", b"\xff\x00"))
            self.wire = Wire(world, self, listener, identity, SOCKETS.get(listener, b"DEALER"))
            return
        dice = chance.random()
        if dice < 0.15:
            self.wire.send(chance.randbytes(chance.randint(1, 60)))
        elif dice < 0.3:
            self.wire.cut()
        else:
            self.wire.say(NONSENSE[self.wire.listener](chance))

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        """The broker owes it nothing; in pingpong, where any bytes are a result, it may have been given a job."""
        if wire.listener == "pingpong.worker":
            for frame in frames:
                self.world.ledger.given_to_rude(frame)


def emqp_nonsense(chance: Random) -> list[bytes]:
    command = chance.choice((
        b"READY", b"REPLY", b"INFORM", b"KBYE", b"kbai", b"HELLO", b"STATUS", b"ROUTER_SHOW_WORKERS", b"PUBLISH", b"UNSCHEDULE",
        b"ACK", b"", b"ready", b"HEARTBEAT",
    ))  # fmt: skip
    version = VERSION if chance.random() < 0.9 else chance.choice((b"eMQP/2.0", b"", b"eMQP/1.9"))
    if command == b"PUBLISH":
        return [b"", version, command, b"p", b"s/news", b"today"]
    rest = [chance.choice((b"", b"nobody", b"[[1,2]]", b'[[5,"rude"]]', b"\xff")) for _ in range(chance.randint(0, 4))]
    return [b""] * chance.choice((0, 1, 1, 2)) + [version, command, b"n", *rest]


def scale0_nonsense(chance: Random) -> list[bytes]:
    command = chance.choice((
        b"PING", b"PING", b"TASKREPLY", b"CONNECT", b"NEEDBROKER", b"READY", b"HEARTBEAT", b"PONG", b"TASK", b"NO", b"ping", b"",
    ))  # fmt: skip
    header = chance.choice((
        b'{"services": ["rude"], "id": "1"}', b"{}", b"{", b"[1]", b"", b"tcp://x a,b 1700000000", b"rude", b"\xff", b'{"id": 7}',
        b'{"services": "rude", "heartbeat_interval": "soon"}', b'{"config_type": "YAML", "time": "now"}',
    ))  # fmt: skip
    return [b""] * chance.choice((0, 0, 1, 2)) + [command, header, *chance.choice(([], [b"x"], [b"x", b"y"]))]


SUBSCRIPTIONS = ([b"\x01s/"], [b"\x00s/"], [b"\x01news/"], [b"\x02s/"])
# No message that would count as a result: all workers share the queue.
TO_PINGPONG = ([b"", b"READY"], [b"", b"PING"], [b'{"status":"PING"}'], [b"", b"x", b"y"], [b'{"status":7}'])


def ebus_nonsense(chance: Random) -> list[bytes]:
    word = chance.choice((
        b"READY", b"READY", b"REPLY", b"REJECT", b"HEARTBEAT", b"PING", b"DISCONNECT", b"CANCEL", b"REQ", b"SERVICES", b"WORKERS", b"?",
    ))  # fmt: skip
    signature = chance.choice((b"EBW01", b"EBW01", b"EBC01", b"EBX99"))
    rest = [chance.choice((b"null", b"rude", b"1", b"", b"\xff")) for _ in range(chance.randint(0, 5))]
    return [b""] * chance.choice((0, 0, 1)) + [signature, word, *rest]


def rq_nonsense(chance: Random) -> list[bytes]:
    pieces = [
        chance.choice((
            risp.CLEAR, risp.request_id(chance.randint(0, 3)), risp.queue(b"rude"), risp.queue_id(chance.randint(0, 3)),
            risp.payload(b"x"), risp.priority(200), risp.NOREPLY, risp.EXCLUSIVE, risp.timeout(1), b"\x1f", b"\x3f", b"\x5f\x01",
        ))
        for _ in range(chance.randint(0, 5))
    ]  # fmt: skip
    act = chance.choice((
        risp.REPLY, risp.DELIVERED, risp.UNDELIVERED, risp.CANCEL_QUEUE, risp.PING, risp.PONG, risp.BROADCAST,
    ))  # fmt: skip
    if chance.random() < 0.3:
        return [risp.CLEAR, risp.queue(b"rude"), *pieces, risp.queue(b"rude"), risp.CONSUME]
    return [*pieces, act]


NONSENSE: dict[str, Callable[[Random], list[bytes]]] = {
    "emqp.worker": emqp_nonsense,
    "emqp.admin": emqp_nonsense,
    "emqp.publish": emqp_nonsense,
    "emqp.subscribe": lambda chance: chance.choice(SUBSCRIPTIONS),
    "scale0.client": scale0_nonsense,
    "scale0.worker": scale0_nonsense,
    "scale0.publish": lambda chance: chance.choice(SUBSCRIPTIONS),
    "pingpong.worker": lambda chance: chance.choice(TO_PINGPONG),
    "ebus.client": ebus_nonsense,
    "ebus.worker": ebus_nonsense,
    "ebus.publish": lambda chance: [b"s/news", b"today", *chance.choice(([], [b"and more"]))],
    "ebus.subscribe": lambda chance: chance.choice(SUBSCRIPTIONS),
    "rq": rq_nonsense,
}


HANDSHAKE = (
    b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x01NULL"
    + bytes(48)
    + b"\x04\x29\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00\x00"
)
LISTENERS = (*sorted(NONSENSE), "emqp.client", "pingpong.client")
PATIENCE_S = 3  # beyond the deadline for greetings


def http(chance: Random) -> bytes:
    method = chance.choice((b"GET", b"POST", b"OPTIONS", b"HEAD", b"PUT", b"PRI"))
    head = b"%s / HTTP/1.1\r\nHost: broker\r\nContent-Length: 64\r\n\r\n" % method
    return head + chance.choice((b"", b"\x01\x00\x05\x00hello" * 4))  # a sequence of ZMTP 1.0 frames


# What must be disconnected in the end, on listeners of ZMTP and on RISP's; the rest may have become a peer by chance.
DOOMED_ANYWHERE: dict[str, Callable[[Random], bytes]] = {
    "http": http,
    "tls_hello": lambda chance: (
        b"\x16\x03" + bytes([chance.choice((1, 3))]) + b"\x02\x00\x01\x00\x01\xfc\x03\x03" + chance.randbytes(32)
    ),
}
DOOMED_ZMTP = DOOMED_ANYWHERE | {
    "half_greeting": lambda chance: HANDSHAKE[: chance.randint(1, len(HANDSHAKE) - 1)],
    # A frame that announces more than any message may have.
    "huge_frame": lambda chance: (
        HANDSHAKE + b"\x02" + chance.choice((1 << 31, 1 << 40, (1 << 63) - 1)).to_bytes(8, "big") + b"x" * 20
    ),
}
# A parameter of four gigabytes.
DOOMED_RISP = DOOMED_ANYWHERE | {"huge_payload": lambda chance: b"\xe0\xff\xff\xff\xff" + b"x" * 20}
OTHERS: dict[str, Callable[[Random], bytes]] = {
    "noise": lambda chance: chance.randbytes(chance.randint(1, 200)),
    # The beginning of a message.
    "endless_message": lambda chance: (
        HANDSHAKE + b"\x02" + (1 << 20).to_bytes(8, "big") + b"x" * chance.randint(0, 100)
    ),
}


class GarbagePeer(WirePeer):
    """Opens one connection after the other, on any listener, and sends nonsense from the first byte on."""

    is_rude = True

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.name = f"garbage{number}"
        self._doomed: list[tuple[int, str, Wire]] = []  # since when, what it sent

    def act(self) -> None:
        world, chance = self.world, self.world.chance
        if world.act_again(20, 1500, self.act) is None:
            return
        listener = chance.choice(LISTENERS)
        doomed = DOOMED_RISP if listener == "rq" else DOOMED_ZMTP
        kind = chance.choice((*doomed, "noise", *OTHERS))
        wire = Wire(world, self, listener, b"", end=risp.BareEnd())
        world.say(f"{self.name} ({wire.number}) sends {kind} to {listener}")
        data = (doomed | OTHERS)[kind](chance)
        wire.send(data)
        if kind in doomed:
            self._doomed.append((world.timeline.now_ns, f"{kind} to {listener}: {data[:80]!r}", wire))
        if chance.random() < 0.2:
            world.timeline.after(chance.randint(1, 3000) * MS_NS, wire.cut)

    def check_cut_off(self, within_s: float) -> None:
        """Check that the broker has disconnected everything that cannot be a peer, after the deadline for greetings."""
        now_ns = self.world.timeline.now_ns
        for since_ns, what, wire in self._doomed:
            is_over = wire.transport.is_gone or not wire.life.loop.is_alive
            assert is_over or now_ns - since_ns <= (within_s + PATIENCE_S) * SECOND_NS, f"still connected: {what}"
        self._doomed = [doomed for doomed in self._doomed if not doomed[2].transport.is_gone]


class Probe(WirePeer):
    """One last request, after all failures are over. As any client, it asks again when it is refused because the journal is full: what is
    settled at the end may take upkeep a moment to drop."""

    name = "probe"

    def __init__(self, world: World, queue: bytes) -> None:
        self.is_answered = self.is_refused = False
        self._world, self._queue = world, queue
        self._count = 0
        self.wire = Wire(world, self, "emqp.client", b"probe")
        self.ask()

    def ask(self) -> None:
        self.is_refused = False
        self._count += 1
        new = token(self.name, self._count)
        self._world.ledger.sent(Request(new, self.name))
        self.open_wire.say([b"", VERSION, b"REQUEST", new.encode(), self._queue, b"reply-requested", body_of(new, 0)])

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        if len(frames) != 6:
            return
        if FULL in frames[4]:
            self._world.ledger.refused(self.name, frames[5].decode(), frames[4])
        else:
            self._world.ledger.answered(self.name, frames[5].decode(), frames[4])

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        if len(frames) == 6:
            self.is_refused = FULL in frames[4]
            self.is_answered = not self.is_refused
