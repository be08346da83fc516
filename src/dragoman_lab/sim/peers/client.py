"""What clients of every dialect have in common: they send, resend, stop reading, disconnect and reconnect, again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_lab.sim.checks.facts import body_of, token
from dragoman_lab.sim.checks.ledger import Request
from dragoman_lab.sim.machine.loop import MS_NS
from dragoman_lab.sim.machine.net import Wire, WirePeer

if TYPE_CHECKING:
    from dragoman_lab.sim.world import World

REPEATABLE_MAX = 20


class SimClient(WirePeer):
    """Sends requests until the world is healing. `kind` is specific to the dialect: socket type, message shape, identity."""

    def __init__(self, world: World, number: int, kind: str) -> None:
        self.world, self.kind = world, kind
        self.name = f"c{number}"
        self.count = 0
        self.is_waiting = False  # a REQ peer sends nothing before it has its reply
        self._repeatable: list[tuple[Request, list[bytes]]] = []  # what it might send again
        self.rewrites_bodies = False  # whether a worker gets other bytes than those of the request
        self.prepare()

    def prepare(self) -> None:
        """Set up its own state."""

    def connect(self) -> Wire:
        raise NotImplementedError

    def ask(self, token: str, queue: bytes, body: bytes) -> None:
        """Send one new request: `say_request`."""
        raise NotImplementedError

    def do_own(self) -> None:
        """An action that only this dialect has: a schedule, a cancel, a heartbeat."""

    def show_life(self) -> None:
        """Send a message that requests nothing."""

    @property
    def is_req(self) -> bool:
        return self.kind == "req"

    def act(self) -> None:
        """Do one action, and schedule the next."""
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
            self.say_request(*chance.choice(self._repeatable))
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

    def say_request(self, request: Request, frames: list[bytes], *, is_repeatable: bool = False) -> None:
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
