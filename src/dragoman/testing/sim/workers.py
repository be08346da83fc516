"""Workers of every shape and temper. Whatever they do, nobody else's work may suffer.

A worker checks what it is given: never more than it said READY for, and, in the original's shape, nothing that would kill
the original.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dragoman.testing.sim.ledger import token_of
from dragoman.testing.sim.loop import MS_NS
from dragoman.testing.sim.net import Wire

if TYPE_CHECKING:
    from dragoman.testing.sim.world import World

VERSION = b"eMQP/1.0"
BEAT_NS = 2_500 * MS_NS
# How a job ends, by temper: the weights of GOOD and the rest are in `TEMPERS`.
ENDS = ("ok", "fail", "out_of_time", "never", "twice", "stranger", "die", "leave")
TEMPERS = {
    "good": (100, 2, 0, 0, 1, 0, 0, 0),
    "moody": (60, 15, 5, 4, 5, 5, 3, 2),
    "dying": (30, 5, 0, 5, 0, 10, 45, 5),
}


class SimWorker:
    """One worker program; it comes back with a new identity whenever its connection ends."""

    is_rude = False

    def __init__(
        self, world: World, number: int, shape: str, temper: str, slots: int, queues: list[tuple[int, bytes]]
    ) -> None:
        self.world, self.shape, self.temper, self.slots, self.queues = world, shape, temper, slots, queues
        self.name = f"w{number}"
        self.wire: Wire | None = None
        self._lives = 0
        self._credit = 0  # READYs said on this connection that no request has used yet
        self._jobs: dict[bytes, str] = {}  # in hand: id on the wire → token
        self._is_known = False  # the broker has acknowledged it
        self._is_leaving = False
        self._silent_until_ns = 0  # it hangs: connected, and not a word

    # -- its connection -------------------------------------------------------------------------------------------------

    def come(self) -> None:
        if self.world.life is None or (self.wire is not None and self.wire.is_up):
            return
        self._lives += 1
        self._credit, self._is_known, self._is_leaving = 0, False, False
        identity = f"{self.name}.{self._lives}".encode()
        self.wire = Wire(self.world, self, "emqp.worker", identity)
        queues = b"[" + b",".join(b'[%d,"%s"]' % (weight, name) for weight, name in self.queues) + b"]"
        shapes = {
            "original": [queues, b"worker"],
            "bytes": [queues, b"worker", b"bytes"],
            "document": [self.queues[0][1]],
        }
        self.wire.say([b"", VERSION, b"INFORM", identity, *shapes[self.shape]])
        wire = self.wire
        self.world.timeline.after(BEAT_NS, lambda: self._beat(wire))

    def _beat(self, wire: Wire) -> None:
        world, chance = self.world, self.world.chance
        if self.wire is wire and wire.is_up:
            if world.is_healing or world.timeline.now_ns >= self._silent_until_ns:
                wire.say([b"", VERSION, b"HEARTBEAT", b"hb", b"1.0"])
            if not world.is_healing and chance.random() < 0.15:
                self._silent_until_ns = world.timeline.now_ns + chance.randint(3000, 8000) * MS_NS
            self.world.timeline.after(BEAT_NS, lambda: self._beat(wire))

    def on_lost(self, wire: Wire) -> None:
        if self.wire is wire:
            self.wire = None
            if self.world.chance.random() < 0.5:
                self._jobs.clear()  # it died with its work; else it will answer from its next identity
            self.world.timeline.after(self.world.chance.randint(1, 1500) * MS_NS, self.come)

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        if self.wire is not wire:
            return
        command = frames[2]
        if command == b"ACK" and not self._is_known:
            assert len(frames) == 5
            self._is_known = True
            self._ready(self.slots)
        elif command == b"REQUEST":
            self._on_request(wire, frames)
        elif command == b"DISCONNECT":
            wire.close()
            self.on_lost(wire)

    def _ready(self, count: int) -> None:
        if self.wire is not None and self.wire.is_up and not self._is_leaving:
            for _ in range(count):
                self._credit += 1
                self.wire.say([b"", VERSION, b"READY", b"rd"])

    # -- its work -------------------------------------------------------------------------------------------------------

    def _on_request(self, wire: Wire, frames: list[bytes]) -> None:
        _, _, _, wire_id, queue, headers, body = frames
        self._credit -= 1
        assert self._credit >= 0, f"{self.name} was given more than it said READY for"
        assert self.shape == "document" or queue in [name for _, name in self.queues], "a queue it does not serve"
        assert b"reply-requested" in headers.split(b","), "every job must be answered, or it is never settled"
        if self.shape == "original":
            check_original(wire_id, headers, body)
        self._jobs[wire_id] = token_of(body)
        chance = self.world.chance
        if not self.world.is_healing and chance.random() < 0.05:
            wire.stall()
            self.world.timeline.after(chance.randint(50, 3000) * MS_NS, wire.read_again)
        takes_ms = 5 if self.world.is_healing else chance.choice((1, 3, 10, 50, chance.randint(1, 2500)))
        how = "ok" if self.world.is_healing else chance.choices(ENDS, TEMPERS[self.temper])[0]
        self.world.timeline.after(takes_ms * MS_NS, lambda: self._finish(wire_id, how))

    def _finish(self, wire_id: bytes, how: str) -> None:
        if self.world.timeline.now_ns < self._silent_until_ns:
            self.world.timeline.at(self._silent_until_ns, lambda: self._finish(wire_id, how))
            return
        token = self._jobs.pop(wire_id, None)
        wire = self.wire
        if token is None:
            return
        how = "ok" if self.world.is_healing else how
        if wire is None or not wire.is_up:
            if self.world.life is not None:  # the answer goes out over whatever connection there will be
                self._jobs[wire_id] = token
                self.world.timeline.after(300 * MS_NS, lambda: self._finish(wire_id, how))
            return
        if how == "die":
            wire.cut()
        elif how == "never":
            self._ready(1)
        elif how == "stranger":
            # The original's way after a reset: its old identity on a connection of its own, gone at once.
            old = Wire(self.world, self, "emqp.worker", b"old-" + wire.identity)
            self._reply(old, wire_id, token, "ok")
            old.close()
            self._ready(1)
        elif how == "leave":
            self._is_leaving = True
            wire.say([b"", VERSION, b"KBYE", b"bye"])
            self._reply(wire, wire_id, token, "ok")
            self.world.timeline.after(800 * MS_NS, lambda: self._go(wire))
        else:
            self._reply(wire, wire_id, token, how)
            if how == "twice":
                self._reply(wire, wire_id, token, "ok")
            self._ready(1)

    def _go(self, wire: Wire) -> None:
        if self.wire is wire:
            wire.close()
            self.on_lost(wire)

    def _reply(self, wire: Wire, wire_id: bytes, token: str, how: str) -> None:
        values = {
            "fail": {"error": {"type": "JobFailed", "message": token}},
            "out_of_time": {"value": "TimeoutError"},
        }
        value = json.dumps(values.get(how, {"value": token})).encode()
        wire.say([b"", VERSION, b"REPLY", b"re", value, wire_id])

    def be_good(self) -> None:
        """The world heals: answer everything, serve everything."""
        self.temper = "good"
        self.come()


def check_original(wire_id: bytes, headers: bytes, body: bytes) -> None:
    """What the original's job manager does not survive."""
    wire_id.decode()
    job = json.loads(body.decode())
    assert isinstance(job, list)
    assert len(job) >= 2
    for header in headers.decode().split(","):
        if "timeout:" in header:
            assert int(header.split(":")[1]) >= 0
