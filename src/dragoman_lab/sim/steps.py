"""Explicit steps: the actions of peers, operators, disks and clocks on a simulated broker, as a list.

A seed means another run whenever the simulator changes; a list of steps always means the same. A step is a tuple that begins with a
name:

    ("connect", peer, listener, identity, socket_type, version)   with the ZMTP handshake; the last three may be left out
    ("open", peer, listener)                             a bare connection: no greeting, nothing is decoded
    ("send", peer, frame, …)                             one message (rq: pieces of RISP, see `risp`)
    ("bytes", peer, data)                                bytes unchanged
    ("close", peer) · ("cut", peer)                      after sent data has arrived, or without it
    ("stall", peer) · ("read", peer)                     it reads nothing; it reads again
    ("wait", seconds) · ("clock", seconds)               time passes; the wall clock is set forward or back
    ("pause", queue) · ("resume", queue)                 the operator's changes
    ("requeue", body) · ("cancel", body)                 the message whose body contains these bytes
    ("kill",) · ("power",) · ("stop",) · ("start",)      the process dies, the machine dies, an orderly stop, a start
    ("damage", body)                                     a bit of that message's record flips on disk
    ("slow", ms)                                         every sync takes this much longer
    ("full", bytes) · ("fail_syncs", n) · ("clear",)     the disk has this much space left, fails, works again

Each step happens in an instant of its own, and after each the simulator checks the core and its facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.core import operator
from dragoman.core.core import Core
from dragoman.core.lifecycle import QUARANTINED
from dragoman.journal.format import segment_name, split_position
from dragoman.journal.settings import JournalSettings
from dragoman.model.enums import BY_OPERATOR
from dragoman.model.facts.decode import decode_block
from dragoman.model.message import Message
from dragoman.model.units import SECOND_NS
from dragoman.runtime.config import Flags, load
from dragoman_lab.sim.machine.failures import waiting_records
from dragoman_lab.sim.machine.net import StillWire, Wire, WirePeer
from dragoman_lab.sim.machine.risp import BareEnd
from dragoman_lab.sim.plan import DIRECTORY, Plan
from dragoman_lab.sim.world import World, quiet_logs

Step = tuple[Any, ...]
SEGMENT_SIZE = 1 << 16


# Steps that are actions of a peer's connection, and their methods of `Wire`.
WIRE_STEPS = {"bytes": "send", "close": "close", "cut": "cut", "stall": "stall", "read": "read_again"}


class StepPeer(WirePeer):
    """The peer's side of one connection: it stores what the broker has sent to it, and the steps decide what it does next."""

    def __init__(self, name: str, is_rude: bool) -> None:
        self.name, self.is_rude = name, is_rude
        self.received: list[list[bytes]] = []
        self.is_lost = False

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        self.received.append(frames)

    def on_lost(self, wire: Wire) -> None:
        self.is_lost = True


class Scene(World):
    """A world without peers of its own: nothing happens but the steps."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(0, plan=plan_of(settings))
        self.peers: dict[str, StepPeer] = {}
        self.start()

    def play(self, steps: Sequence[Step]) -> None:
        for name, *details in steps:
            if name in WIRE_STEPS:
                getattr(self.peers[details[0]].open_wire, WIRE_STEPS[name])(*details[1:])
            elif name in WORLD_STEPS:
                WORLD_STEPS[name](self, *details)
            else:
                getattr(self, f"on_{name}")(*details)
            self.on_wait(0)
            if self.life is not None:
                self.check()

    def received(self, peer: str) -> list[list[bytes]]:
        """Every message that the broker has sent to a peer, over all its connections of this name."""
        return self.peers[peer].received

    def facts(self, *names: str) -> list[dict[str, Any]]:
        facts = (fact for block in self.chronicle.blocks for fact in decode_block(block.records))
        return [fact for fact in facts if not names or fact["fact"] in names]

    def on_connect(
        self, peer: str, listener: str, identity: bytes = b"", socket_type: bytes = b"DEALER", version: int = 3
    ) -> None:
        self._connect(peer, False, listener, identity, socket_type, version=version)

    def on_open(self, peer: str, listener: str) -> None:
        self._connect(peer, True, listener, b"", end=BareEnd())

    def _connect(self, peer: str, is_rude: bool, *wire: Any, **options: Any) -> None:
        known = self.peers.setdefault(peer, StepPeer(peer, is_rude))
        known.is_lost = False
        known.wire = StillWire(self, known, *wire, **options)

    def on_send(self, peer: str, *frames: bytes) -> None:
        self.peers[peer].open_wire.say(list(frames))

    def on_wait(self, seconds: float) -> None:
        self.advance(self.timeline.now_ns + round(seconds * SECOND_NS))

    def message(self, core: Core, body: bytes) -> Message:
        """The open message with these bytes in its body."""
        for number in self.chronicle.open:
            message = core.state.take(number)
            if message is not None and body in core.state.stored.load(message.position, number):
                return message
        raise AssertionError(f"no open message has {body!r} in its body")

    def is_quarantined(self, body: bytes) -> bool:
        return self.message(self.running.core, body).state == QUARANTINED

    def on_stop(self) -> None:
        self.running.broker.drain()
        self.on_wait(1)
        self.shut_down(self.running)
        self.end()

    def on_start(self) -> None:
        self.start()
        assert self.life is not None, "the broker does not start"

    def on_damage(self, body: bytes) -> None:
        """Flip a bit of the body's first byte, for a waiting message in any segment."""
        for number, ref in waiting_records(self.running.core):
            record = self.running.journal.read_record(ref, number)
            if body in record:
                segment_no, offset = split_position(self.running.journal.position_now(ref))
                path = f"{DIRECTORY}/{segment_name(segment_no)}"
                self.disk.flip(path, offset + record.index(body), 1)
                self.corruption.numbers.add(number)
                return
        raise AssertionError(f"no waiting message has {body!r} in its body")


# Steps that are one action of the world, its operator or its disk.
WORLD_STEPS: dict[str, Callable[..., object]] = {
    "clock": lambda scene, seconds: scene.set_clock(round(seconds * SECOND_NS)),
    "pause": lambda scene, queue: scene.act(lambda core: operator.set_paused(core, queue, True)),
    "resume": lambda scene, queue: scene.act(lambda core: operator.set_paused(core, queue, False)),
    "requeue": lambda scene, body: scene.act(lambda core: operator.requeue(core, scene.message(core, body))),
    "cancel": lambda scene, body: scene.act(lambda core: core.cancel(scene.message(core, body), BY_OPERATOR)),
    "kill": lambda scene: scene.end(),
    "power": lambda scene: scene.end(is_power=True),
    "full": lambda scene, left: setattr(scene.disk, "capacity", scene.disk.used() + left),
    "slow": lambda scene, pause_ms: setattr(scene.disk, "pause_ms", pause_ms),
    "fail_syncs": lambda scene, count: scene.disk.fail_syncs(count),
    "clear": lambda scene: scene.clear_disk(),
}


def plan_of(settings: Mapping[str, Any]) -> Plan:
    """A plan without peers and failures: the steps have their own. `settings` as `dragoman up --set` takes them."""
    config = load(None, {}, Flags(settings=tuple(f"{key}={value}" for key, value in settings.items())))
    journal = JournalSettings(
        DIRECTORY, config.journal.durability, SEGMENT_SIZE, size_max=config.journal.size_max, zero_fill=False
    )
    return Plan(config, journal)


def play(steps: Sequence[Step], settings: Mapping[str, Any] | None = None) -> Scene:
    """Apply the steps to a new broker with these settings; return the scene with the results."""
    with quiet_logs():
        scene = Scene({"journal.durability": "os", **(settings or {})})
        scene.play(steps)
    return scene
