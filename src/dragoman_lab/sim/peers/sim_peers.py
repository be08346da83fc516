"""What clients and workers of every dialect have in common.

Clients send, resend, stop reading, disconnect and reconnect, again and again. Workers connect, work, and end each job in one of many ways,
most of them bad: no other worker or client may be affected. A worker checks that it never gets more than it requested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_lab.sim.checks.facts import body_of, token
from dragoman_lab.sim.checks.ledger import Request
from dragoman_lab.sim.machine.loop import MS_NS
from dragoman_lab.sim.machine.net import Wire, WirePeer

if TYPE_CHECKING:
    from dragoman_lab.sim.world import World

REPEATABLE_MAX = 20
# How a job ends, by temper. A way that a dialect does not have is "ok" there.
ENDS = ("ok", "fail", "out_of_time", "never", "twice", "stranger", "die", "leave", "late")
TEMPERS = {
    "good": (100, 2, 0, 0, 1, 0, 0, 0, 0),
    "moody": (60, 15, 5, 4, 5, 5, 3, 2, 8),
    "dying": (30, 5, 0, 5, 0, 10, 45, 5, 3),
}
AWAY_MS = 300  # between two checks for a connection over which a reply can be sent


class SimPeer(WirePeer):
    """A client or a worker. `kind` and `shape` are specific to the dialect: socket type, message shape, identity."""

    world: World
    listener = ""
    is_req = False

    def prepare(self) -> None:
        """Set up its own state."""

    def identity(self) -> bytes:
        """The ZMTP identity of a new connection; empty: anonymous."""
        return b""

    def connect(self) -> Wire:
        return Wire(self.world, self, self.listener, self.identity(), b"REQ" if self.is_req else b"DEALER")


class SimClient(SimPeer):
    """Sends requests until the world is healing."""

    rewrites_bodies = False  # whether a worker gets other bytes than those of the request

    def __init__(self, world: World, number: int, kind: str) -> None:
        self.world, self.kind, self.is_req = world, kind, kind == "req"
        self.name = f"c{number}"
        self.count = 0
        self.is_waiting = False  # a REQ peer sends nothing before it has its reply
        self._repeatable: list[tuple[Request, list[bytes]]] = []  # what it might send again
        self.prepare()

    def ask(self, token: str, queue: bytes, body: bytes) -> None:
        """Send one new request: `send_request`."""
        raise NotImplementedError

    def do_own(self) -> None:
        """An action that only this dialect has: a schedule, a cancel, a heartbeat."""

    def show_life(self) -> None:
        """Send a message that requests nothing."""

    def act(self) -> None:
        world, chance = self.world, self.world.chance
        if world.is_healing or len(world.ledger.requests) >= world.plan.requests_max:
            return
        world.timeline.after(chance.choice((1, 5, 60, chance.randint(1, 800))) * MS_NS, self.act)
        if self.wire is None or not self.wire.is_up:
            if world.life is not None:
                self.is_waiting = False
                self.wire = self.connect()
                self.connected()
        elif not self.is_req:
            self._do_something(chance.random())
        elif not self.is_waiting:
            self.request()
        elif chance.random() < 0.03:
            self.leave(in_order=False)  # it gives up waiting for the reply

    def connected(self) -> None:
        """Send the first messages on a new connection."""

    def _do_something(self, dice: float) -> None:
        chance = self.world.chance
        if dice < 0.85:
            for _ in range(chance.choice(self.world.plan.bursts)):
                self.request()
        elif dice < 0.89 and self._repeatable:
            self.send_request(*chance.choice(self._repeatable))
        elif dice < 0.93:
            self.do_own()
        elif dice < 0.95:
            self.open_wire.stall()
            self.world.timeline.after(chance.randint(50, 3000) * MS_NS, self.open_wire.read_again)
        elif dice < 0.98:
            self.leave(in_order=chance.random() < 0.5)
        else:
            self.show_life()

    def request(self) -> None:
        chance, plan = self.world.chance, self.world.plan
        self.count += 1
        new = token(self.name, self.count)
        body = body_of(new, chance.choice(plan.fills))
        if chance.random() < plan.unfit_share:
            body = b"\xff\xfe " + body  # bytes that some kinds of workers must never get
        if not self.rewrites_bodies:
            self.world.ledger.bodies[new] = body
        self.ask(new, chance.choice(plan.queues), body)
        self.is_waiting = True

    def send_request(self, request: Request, frames: list[bytes], *, is_repeatable: bool = False) -> None:
        self.world.ledger.sent(request)
        self.open_wire.say(frames)
        if is_repeatable and len(self._repeatable) < REPEATABLE_MAX:
            self._repeatable.append((request, frames))

    def leave(self, *, in_order: bool) -> None:
        self.world.ledger.disturbed(self.name)
        if in_order:
            self.open_wire.close()
        else:
            self.open_wire.cut()
        self.wire = None

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        self.is_waiting = False

    def on_lost(self, wire: Wire) -> None:
        self.world.ledger.disturbed(self.name)
        super().on_lost(wire)


class SimWorker(SimPeer):
    """One worker program. It reconnects whenever its connection ends."""

    beat_ns = 1_000 * MS_NS
    silence_share = 0.06  # of heartbeats after which it hangs for a while
    confirms = False  # it confirms deliveries
    forgets_share = 0.5  # of lost connections with which its work is lost, too

    def __init__(self, world: World, number: int, shape: str, temper: str, slots: int, queues: list[bytes]) -> None:
        self.world, self.shape, self.temper, self.slots, self.queues = world, shape, temper, slots, queues
        self.name, self.is_req = f"w{number}", shape == "req"
        self.lives = 0
        self.jobs: dict[bytes, str] = {}  # leased: id on the wire → token
        self.is_leaving = False
        self._silent_until_ns = 0  # it hangs: connected, but sends nothing
        self.prepare()

    def identity(self) -> bytes:
        return f"{self.name}.{self.lives}".encode()

    def arrive(self) -> None:
        """Send its first messages."""
        raise NotImplementedError

    def beat(self, wire: Wire) -> None:
        """Send a heartbeat."""

    def reply(self, wire: Wire, key: bytes, token: str, how: str) -> None:
        """Send a reply; `how`: ok, fail or out_of_time."""
        raise NotImplementedError

    def freed(self) -> None:
        """A slot is free again; called after every job's end that leaves the connection up."""

    def part(self, wire: Wire) -> None:
        """Announce that it leaves, if the dialect has a command for it."""

    def give_up(self, wire: Wire, key: bytes) -> None:
        self.freed()

    def reply_as_stranger(self, wire: Wire, key: bytes, token: str) -> None:
        self.reply(wire, key, token, "ok")

    def answer_twice(self, wire: Wire, key: bytes, token: str) -> None:
        self.reply(wire, key, token, "ok")
        self.reply(wire, key, token, "ok")

    def job_in(self, frames: list[bytes]) -> bytes | None:
        """The body of the job that this message is; None if it is none."""
        raise NotImplementedError

    def receive(self, wire: Wire, frames: list[bytes]) -> None:
        """Handle a message on its present connection."""
        raise NotImplementedError

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        body = self.job_in(frames)
        if body is not None:
            self.world.ledger.given(body, confirms=self.confirms)

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        if self.wire is wire:
            self.receive(wire, frames)

    @property
    def is_healing(self) -> bool:
        return self.world.is_healing

    def come(self) -> None:
        if self.world.life is None or (self.wire is not None and self.wire.is_up):
            return
        self.lives += 1
        self.is_leaving = False
        if self.forgets_share == 1:
            self.jobs.clear()
        self.wire = self.connect()
        self.arrive()
        wire = self.wire
        self.world.timeline.after(self.beat_ns, lambda: self._beat(wire))

    def _beat(self, wire: Wire) -> None:
        world, chance = self.world, self.world.chance
        if self.wire is wire and wire.is_up:
            if self.is_healing or world.timeline.now_ns >= self._silent_until_ns:
                self.beat(wire)
            if not self.is_healing and chance.random() < self.silence_share:
                self._silent_until_ns = world.timeline.now_ns + chance.randint(3000, 8000) * MS_NS
            world.timeline.after(self.beat_ns, lambda: self._beat(wire))

    @property
    def is_silent(self) -> bool:
        return not self.is_healing and self.world.timeline.now_ns < self._silent_until_ns

    def on_lost(self, wire: Wire) -> None:
        if self.wire is wire:
            self.wire = None
            if self.world.chance.random() < self.forgets_share:
                self.jobs.clear()  # it died with its work; else it will reply over its next connection
            self.world.timeline.after(self.world.chance.randint(1, 1500) * MS_NS, self.come)

    def go(self, wire: Wire) -> None:
        if self.wire is wire:
            wire.close()
            self.on_lost(wire)

    def be_good(self) -> None:
        """The world heals: serve and answer everything from now on."""
        self.temper = "good"
        self.come()

    def take_job(self, wire: Wire, key: bytes, token: str) -> None:
        """Work on a job, and end it in some way."""
        self.jobs[key] = token
        chance = self.world.chance
        if not self.is_healing and chance.random() < 0.05:
            wire.stall()
            self.world.timeline.after(chance.randint(50, 3000) * MS_NS, wire.read_again)
        takes_ms = 5 if self.is_healing else chance.choice((1, 3, 10, 50, chance.randint(1, 2500)))
        how = "ok" if self.is_healing else chance.choices(ENDS, TEMPERS[self.temper])[0]
        if how == "late":
            takes_ms += chance.randint(1500, 7000)
        self.world.timeline.after(takes_ms * MS_NS, lambda: self._finish(key, token, how))

    def _finish(self, key: bytes, token: str, how: str) -> None:
        if self.is_silent:
            self.world.timeline.at(self._silent_until_ns, lambda: self._finish(key, token, how))
            return
        if self.jobs.get(key) != token:
            return
        how = "ok" if self.is_healing else how
        wire = self.wire
        if wire is None or not wire.is_up:
            if self.world.life is not None:  # the reply is sent over the next connection
                self.world.timeline.after(AWAY_MS * MS_NS, lambda: self._finish(key, token, how))
            else:
                del self.jobs[key]
            return
        del self.jobs[key]
        if how == "die":
            wire.cut()
        elif how == "never":
            self.give_up(wire, key)
        elif how == "leave":
            self.is_leaving = True
            self.part(wire)
            self.reply(wire, key, token, "ok")
            self.world.timeline.after(800 * MS_NS, lambda: self.go(wire))
        else:
            self._answer(wire, key, token, how)

    def _answer(self, wire: Wire, key: bytes, token: str, how: str) -> None:
        if how == "stranger":
            self.reply_as_stranger(wire, key, token)
        elif how == "twice":
            self.answer_twice(wire, key, token)
        else:
            self.reply(wire, key, token, how)
        if wire.is_up:
            self.freed()
