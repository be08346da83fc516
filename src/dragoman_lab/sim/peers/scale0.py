"""Clients and workers of scale0: ids that collide between clients, one task for one PING, and REQ sockets in lockstep."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dragoman.model.units import SECOND_NS
from dragoman_lab.sim.checks.facts import token_in
from dragoman_lab.sim.checks.ledger import Request
from dragoman_lab.sim.machine.net import Wire
from dragoman_lab.sim.peers.sim_peers import SimClient, SimWorker

if TYPE_CHECKING:
    from dragoman_lab.sim.world import World

HEARTBEAT_S = 1


def message(command: bytes, header: dict[str, object], *body: bytes, is_req: bool = False) -> list[bytes]:
    frames = [command, json.dumps(header).encode(), *body]
    return [b"", *frames] if is_req else frames


def split(frames: list[bytes]) -> tuple[bytes, dict[str, object], bytes]:
    """Command, header and body."""
    at = 0 if frames[0] else 1
    header = json.loads(frames[at + 1]) if len(frames) > at + 1 and frames[at + 1] else {}
    assert isinstance(header, dict), frames
    return frames[at], header, frames[at + 2] if len(frames) > at + 2 else b""


def now_s(world: World) -> float:
    """A peer's clock: correct, except for a small random share of readings."""
    wrong_s = 100.0 if not world.is_healing and world.chance.random() < 0.01 else 0.0
    return world.wall_ns() / SECOND_NS + wrong_s


class Scale0Client(SimClient):
    """`kind`: dealer, anonymous, req. Its ids are small numbers, the same as every other client's."""

    listener = "scale0.client"

    def prepare(self) -> None:
        self._tokens: dict[str, str] = {}

    def identity(self) -> bytes:
        return self.name.encode() if self.kind == "dealer" else b""

    def ask(self, token: str, queue: bytes, body: bytes) -> None:
        task_id = f"{self.count}"
        self._tokens[task_id] = token
        header: dict[str, object] = {"id": task_id, "service": queue.decode()}
        if self.world.chance.random() < 0.5:
            header["time"] = now_s(self.world)
        request = Request(token, self.name, takes_one_answer=self.is_req)
        self.send_request(request, message(b"TASK", header, body, is_req=self.is_req))

    def do_own(self) -> None:
        header: dict[str, object] = {"config_type": self.world.chance.choice(("JSON", "XML", "ZFL", "YAML"))}
        self.open_wire.say(message(b"CONNECT", header))

    def show_life(self) -> None:
        self.open_wire.say(message(b"PING", {"time": now_s(self.world)}))

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        assert (frames[0] == b"") == (wire.socket_type == b"REQ"), "an answer has the shape of its question"
        command, header, body = split(frames)
        ledger = self.world.ledger
        if command == b"TASKREPLY":
            ledger.answered(self.name, self._tokens.get(str(header["id"])), body)
        elif command == b"ERROR" and "id" in header:
            ledger.refused(self.name, self._tokens.get(str(header["id"])), json.dumps(header).encode() + body)


class Scale0Worker(SimWorker):
    """`shape`: dealer, req."""

    listener = "scale0.worker"

    def prepare(self) -> None:
        self._credit = 0  # messages that may each be answered by one task
        self._version: object = None
        self._services = [name.decode() for name in self.queues]

    def identity(self) -> bytes:
        return super().identity() if self.world.chance.random() < 0.8 else b""

    def arrive(self) -> None:
        self._credit, self._version = 0, None
        if self.world.chance.random() < 0.5:
            self._connect_again(self.open_wire)
        else:
            self._ping(self.open_wire)

    def _connect_again(self, wire: Wire) -> None:
        kind = self.world.chance.choice(("JSON", "XML", "ZFL"))
        header: dict[str, object] = {"config_type": kind, "identity": self.name, "services": self._services}
        wire.say(message(b"CONNECT", header, is_req=self.is_req))

    def _ping(self, wire: Wire, *, is_busy: bool = False) -> None:
        header: dict[str, object] = {"heartbeat_interval": HEARTBEAT_S, "services": self._services}
        if self.world.chance.random() < 0.5:
            header["time"] = now_s(self.world)
        if self._version is not None:
            header["config_version"] = self._version
        if is_busy:
            header["busy"] = True
        else:
            self._credit += 1
        wire.say(message(b"PING", header, is_req=self.is_req))

    def beat(self, wire: Wire) -> None:
        if self.is_req or self.is_leaving:
            return  # a REQ socket may send only after a reply
        self._ping(wire, is_busy=len(self.jobs) >= self.slots)

    def job_in(self, frames: list[bytes]) -> bytes | None:
        command, _, body = split(frames)
        return body if command == b"TASK" else None

    def receive(self, wire: Wire, frames: list[bytes]) -> None:
        command, header, body = split(frames)
        if command == b"TASK":
            self._credit -= 1
            assert self._credit >= 0, f"{self.name} was given more tasks than it sent PINGs"
            assert header["service"] in self._services, "a service it does not offer"
            self.take_job(wire, str(header["id"]).encode(), token_in(body))
            if not self.is_req and len(self.jobs) < self.slots:
                self._ping(wire)
        elif command == b"CONFIG":
            self._version = header["config_version"]
            if self.is_req or self._credit == 0:
                self._later(wire)
        elif command == b"FORCENEGOTIATE" or (command == b"ERROR" and header["code"] == 426 and self.is_req):
            self._connect_again(wire)  # a REQ socket gets only the error
        elif command == b"ERROR" and header["code"] == 503:
            self.go(wire)  # its clock was wrong: it reconnects
        elif self.is_req:
            self._later(wire)

    def _later(self, wire: Wire) -> None:
        """A REQ worker sends the next PING a little after each reply that was no task."""
        pause_ns = SECOND_NS // 5
        self.world.timeline.after(pause_ns, lambda: self._ping(wire) if self.wire is wire and wire.is_up else None)

    def freed(self) -> None:
        if self.wire is not None and not self.is_req and not self.is_leaving:
            self._ping(self.wire)

    def give_up(self, wire: Wire, key: bytes) -> None:
        if self.is_req:
            wire.cut()
        else:
            self.freed()

    def reply(self, wire: Wire, key: bytes, token: str, how: str) -> None:
        if self.is_req:
            self._credit += 1  # its reply may be the next task
        header: dict[str, object] = {"id": key.decode()}
        wire.say(message(b"TASKREPLY", header, b"done " + token.encode(), is_req=self.is_req))
