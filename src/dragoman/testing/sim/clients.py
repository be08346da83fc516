"""Clients of every kind: patient, anonymous, one-shot, REQ, careless and rude."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dragoman.testing.sim.ledger import Request
from dragoman.testing.sim.loop import MS_NS
from dragoman.testing.sim.net import Wire

if TYPE_CHECKING:
    from dragoman.testing.sim.world import World

VERSION = b"eMQP/1.0"
HEADERS = (
    "reply-requested", "reply-requested", "ack-requested", "ack-requested", "guarantee", "retry-count:0", "retry-count:1",
    "retry-count:3", "timeout:1", "timeout:0.3", "priority:1", "priority:9", "delay:0.2", "delay:2.5", "expires:0.5",
    "expires:4", "dedupe:{key}", "x-shade:blue", "traceparent:00-ab-cd-01", "nohaste",
)  # fmt: skip
BROKEN_HEADERS = ("priority:eleven", "timeout:-5", "retry-count:many", "delay:nan")


class SimClient:
    """Sends requests until the world is healing. `kind`: dealer, anonymous, one_shot, req."""

    is_rude = False

    def __init__(self, world: World, number: int, kind: str) -> None:
        self.world, self.kind = world, kind
        self.name = f"c{number}"
        self.wire: Wire | None = None
        self._count = 0
        self._said: list[tuple[Request, list[bytes]]] = []  # what it might say again
        self._is_waiting = False  # a REQ peer says nothing before it has its answer
        self._schedules = 0

    def act(self) -> None:
        """Do one thing, and come back a little later."""
        world, chance = self.world, self.world.chance
        if world.is_healing:
            return
        if len(world.ledger.requests) >= world.plan.requests_max:
            return
        world.timeline.after(chance.choice((1, 5, 60, chance.randint(1, 800))) * MS_NS, self.act)
        if self.wire is None or not self.wire.is_up:
            self._connect()
        elif self.kind != "req":
            self._do_something(chance.random())
        elif not self._is_waiting:
            self._request()

    def _do_something(self, dice: float) -> None:
        assert self.wire is not None
        if dice < 0.85:
            for _ in range(self.world.chance.choice((1, 1, 1, 2, 8))):
                self._request()
        elif dice < 0.89 and self._said:
            self._say(*self.world.chance.choice(self._said))
        elif dice < 0.93:
            self._schedule()
        elif dice < 0.95:
            self.wire.stall()
            self.world.timeline.after(self.world.chance.randint(50, 3000) * MS_NS, self.wire.read_again)
        elif dice < 0.98:
            self._leave(in_order=self.world.chance.random() < 0.5)
        else:
            self.wire.say([b"", VERSION, b"HEARTBEAT", b"hb", b"1.0"])

    def _connect(self) -> None:
        if self.world.life is None:
            return
        identity = b"" if self.kind == "anonymous" else self.name.encode()
        if self.kind == "one_shot":
            identity += b".%d" % self._count
        socket_type = b"REQ" if self.kind == "req" else b"DEALER"
        self._is_waiting = False
        self.wire = Wire(self.world, self, "emqp.client", identity, socket_type)
        if self.kind == "one_shot":  # the way of EventMQ's `.delay()`: one request on a connection of its own
            self._request()
            self._leave(in_order=True)

    def _leave(self, *, in_order: bool) -> None:
        assert self.wire is not None
        self.world.ledger.disturbed(self.name)
        if in_order:
            self.wire.close()
        else:
            self.wire.cut()
        self.wire = None

    def _request(self) -> None:
        world, chance = self.world, self.world.chance
        self._count += 1
        rid = f"{self.name}-{self._count:04d}"
        key = f"{self.name}.{chance.randint(1, 6)}"
        picked = {h.format(key=key) for h in chance.choices(HEADERS, k=chance.choice((0, 1, 1, 2, 3)))}
        headers = ",".join(sorted(picked))
        if chance.random() < 0.01:
            headers = chance.choice(BROKEN_HEADERS)
        request = Request(
            rid,
            self.name,
            "reply-requested" in headers,
            "ack-requested" in headers,
            self.kind == "req",
            "dedupe:" in headers,
        )
        body = json.dumps(["run", {"token": rid, "fill": "x" * chance.choice(world.plan.fills)}]).encode()
        if chance.random() < world.plan.unfit_share:
            body = b"\xff\xfe " + body  # bytes that the original's worker must never see
        queue = chance.choice(world.plan.queues)
        self._say(request, [b"", VERSION, b"REQUEST", rid.encode(), queue, headers.encode(), body])
        self._is_waiting = True

    def _say(self, request: Request, frames: list[bytes]) -> None:
        assert self.wire is not None
        self.world.ledger.sent(request)
        self.wire.say(frames)
        if len(self._said) < 20 and self.kind == "dealer":
            self._said.append((request, frames))

    def _schedule(self) -> None:
        assert self.wire is not None
        chance = self.world.chance
        self._schedules += 1
        body = json.dumps(["run", {"token": f"s-{self.name}-{chance.randint(1, 3)}"}]).encode()
        headers = ",".join(
            chance.sample(("nohaste", "run_count:2", "retry-count:1", "reply-requested"), k=chance.randint(0, 2))
        )
        is_cron = chance.random() < 0.3
        interval = b"-1" if is_cron else chance.choice((b"0.5", b"1", b"3"))
        cron = chance.choice((b"* * * * *", b"*/5 * * * *", b"no cron")) if is_cron else b""
        command = b"SCHEDULE" if chance.random() < 0.7 else b"UNSCHEDULE"
        rid = f"{self.name}-s{self._schedules:03d}"
        self.world.ledger.sent(Request(rid, self.name, False, False, False, True))
        queue = chance.choice(self.world.plan.queues)
        self.wire.say([b"", VERSION, command, rid.encode(), queue, headers.encode(), interval, body, cron])

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        self._is_waiting = False

    def on_lost(self, wire: Wire) -> None:
        self.world.ledger.disturbed(self.name)
        if self.wire is wire:
            self.wire = None


class RudePeer:
    """Says what nobody understands, on any port, and floods."""

    is_rude = True

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.name = f"rude{number}"
        self.wire: Wire | None = None

    def act(self) -> None:
        world, chance = self.world, self.world.chance
        if world.is_healing:
            return
        world.timeline.after(chance.randint(5, 900) * MS_NS, self.act)
        if self.wire is None or not self.wire.is_up:
            if world.life is not None:
                listener = chance.choice(("emqp.worker", "emqp.admin", "emqp.publish", "emqp.subscribe"))
                socket_type = b"SUB" if listener == "emqp.subscribe" else b"DEALER"
                self.wire = Wire(world, self, listener, chance.choice((b"", b"rude", b"\xff\x00")), socket_type)
            return
        dice = chance.random()
        if dice < 0.15:
            self.wire.send(chance.randbytes(chance.randint(1, 60)))
        elif dice < 0.3:
            self.wire.cut()
        elif self.wire.listener == "emqp.subscribe":
            self.wire.say([chance.choice((b"\x01", b"\x00", b"\x01new", b"\x02")) + b"s/"])
        else:
            self.wire.say(self._nonsense())

    def _nonsense(self) -> list[bytes]:
        chance = self.world.chance
        command = chance.choice((
            b"READY", b"REPLY", b"INFORM", b"KBYE", b"kbai", b"HELLO", b"STATUS", b"ROUTER_SHOW_WORKERS", b"PUBLISH",
            b"UNSCHEDULE", b"ACK", b"", b"ready", b"HEARTBEAT",
        ))  # fmt: skip
        version = VERSION if chance.random() < 0.9 else chance.choice((b"eMQP/2.0", b"", b"eMQP/1.9"))
        if command == b"PUBLISH":
            return [b"", version, command, b"p", b"s/news", b"today"]
        rest = [
            chance.choice((b"", b"nobody", b"[[1,2]]", b'[[5,"rude"]]', b"\xff")) for _ in range(chance.randint(0, 4))
        ]
        return [b""] * chance.choice((0, 1, 1, 2)) + [version, command, b"n", *rest]

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        pass

    def on_lost(self, wire: Wire) -> None:
        if self.wire is wire:
            self.wire = None


class Probe:
    """One last request on a queue of the plan, when all is well again."""

    is_rude = False
    name = "probe"

    def __init__(self, world: World) -> None:
        self.is_answered = False
        wire = Wire(world, self, "emqp.client", b"probe")
        world.ledger.sent(Request("probe-1", self.name, True, False, False, False))
        body = json.dumps(["run", {"token": "probe-1"}]).encode()
        wire.say([b"", VERSION, b"REQUEST", b"probe-1", world.plan.queues[0], b"reply-requested", body])

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        self.is_answered = self.is_answered or len(frames) == 6

    def on_lost(self, wire: Wire) -> None:
        """It does not come back."""
