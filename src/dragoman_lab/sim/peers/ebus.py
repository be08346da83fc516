"""Clients and workers of EBUS: rids that collide between clients, re-sent requests, cancels, rejects."""

from __future__ import annotations

from dragoman.model.units import SECOND_NS
from dragoman_lab.sim.checks.facts import token_in
from dragoman_lab.sim.checks.ledger import Request
from dragoman_lab.sim.machine.loop import MS_NS
from dragoman_lab.sim.machine.net import Wire
from dragoman_lab.sim.peers.sim_peers import SimClient, SimWorker

FROM_CLIENT, FROM_WORKER = b"EBC01", b"EBW01"
STALES_KEPT = 3  # an outcome is remembered for so many times its `stales ms`, if that is longer than the setting


class EbusClient(SimClient):
    """`kind`: dealer, bare (no empty frame), newborn (a new identity on each connection, as the original). Its rids are small numbers, the
    same as every other client's."""

    listener = "ebus.client"

    def prepare(self) -> None:
        self._tokens: dict[bytes, str] = {}
        self._services: dict[bytes, bytes] = {}
        self._boots: dict[str, int] = {}  # token → the boot to which it was sent first
        self._asked_on: dict[str, Wire] = {}
        self._lives = 0

    def identity(self) -> bytes:
        self._lives += 1
        return (f"{self.name}.{self._lives}" if self.kind == "newborn" else self.name).encode()

    def _frames(self, *frames: bytes) -> list[bytes]:
        return [FROM_CLIENT, *frames] if self.kind == "bare" else [b"", FROM_CLIENT, *frames]

    def ask(self, token: str, queue: bytes, body: bytes) -> None:
        chance = self.world.chance
        rid = b"%d" % self.count
        self._tokens[rid], self._services[rid] = token, queue
        stales_ms = chance.choice((0, 0, 300, 1000, 6000, 20_000))
        config = self.world.plan.config.dialects["ebus"]
        stales_s = stales_ms / 1000 or config.stales_s
        kept_ns = round(max(config.answers_kept_s, STALES_KEPT * stales_s) * SECOND_NS)
        self._boots[token] = self.world.boots
        word = b"REQ" if chance.random() < 0.7 else b"REQUEST"
        frames = self._frames(word, queue, rid, body, *([b"%d" % stales_ms] if stales_ms else []))
        self.send_request(Request(token, self.name, runs_once=True, kept_ns=kept_ns), frames, is_repeatable=True)

    def send_request(self, request: Request, frames: list[bytes], *, is_repeatable: bool = False) -> None:
        asked_on = self._asked_on.get(request.token, self.open_wire)
        self._asked_on[request.token] = self.open_wire
        if asked_on.identity != self.open_wire.identity and not asked_on.transport.is_gone:
            request.runs_once = False  # to the broker these are two clients
        super().send_request(request, frames, is_repeatable=is_repeatable)

    def do_own(self) -> None:
        """Cancel something, or request the list of services or workers."""
        chance = self.world.chance
        if self._tokens and chance.random() < 0.7:
            rid = chance.choice(sorted(self._tokens)[-10:])
            word = [b"CANCEL", self._services[rid], rid] if chance.random() < 0.8 else [b"REJECT", rid, b"too late"]
            self.world.ledger.requests[self._tokens[rid]].may_miss_answer = True
            self.open_wire.say(self._frames(*word))
        else:
            self.open_wire.say(self._frames(chance.choice((b"SERVICES", b"WORKERS"))))

    def show_life(self) -> None:
        self.open_wire.say(self._frames(self.world.chance.choice((b"PING", b"HEARTBEAT"))))

    def connected(self) -> None:
        if self.kind == "newborn":  # the original sends unanswered requests again
            for request, frames in self._repeatable[-2:]:
                self.send_request(request, frames)

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        is_bare = frames[0] != b""
        words = frames if is_bare else frames[1:]
        assert words[0] == FROM_WORKER, frames
        if words[1] in (b"REPLY", b"REJECT") and self._shape_is_known(self._tokens.get(words[2], ""), wire):
            assert is_bare == (self.kind == "bare"), "an answer has the shape of its question"
        ledger = self.world.ledger
        if words[1] == b"REPLY":
            ledger.answered(self.name, self._tokens.get(words[2]), words[3])
        elif words[1] == b"REJECT":
            value = words[3] if len(words) > 3 else b""
            ledger.refused(self.name, self._tokens.get(words[2]), value)

    def _shape_is_known(self, token: str, wire: Wire) -> bool:
        """Whether the broker must know the shape of this request: a new boot learns it from the client's next message."""
        return self._asked_on.get(token) is wire and self._boots[token] == self.world.boots

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        word = frames[1] if frames[0] else frames[2]
        if self.wire is wire and word == b"DISCONNECT":
            self.leave(in_order=True)
        elif word == b"PING":
            wire.say(self._frames(b"HEARTBEAT"))


class EbusWorker(SimWorker):
    """`shape`: bare (the original's), framed (with an empty frame), short (a READY of three frames)."""

    listener = "ebus.worker"
    beat_ns = 500 * MS_NS
    silence_share = 0.03

    def prepare(self) -> None:
        self._service = self.queues[0]

    def _say(self, wire: Wire, *frames: bytes) -> None:
        wire.say([b"", FROM_WORKER, *frames] if self.shape == "framed" else [FROM_WORKER, *frames])

    def arrive(self) -> None:
        self._say(self.open_wire, b"READY", *([] if self.shape == "short" else [b"null"]), self._service)

    def beat(self, wire: Wire) -> None:
        self._say(wire, b"HEARTBEAT")

    def job_in(self, frames: list[bytes]) -> bytes | None:
        words = frames if self.shape != "framed" else frames[1:]
        assert words[0] == FROM_CLIENT, frames
        return words[3] if words[1] == b"REQ" else None

    def receive(self, wire: Wire, frames: list[bytes]) -> None:
        words = frames if self.shape != "framed" else frames[1:]
        if words[1] == b"REQ":
            assert len(words) == 5, words
            token = token_in(words[3])
            known = self.jobs.get(words[2])
            assert known in (None, token), f"{self.name} was given {token} by the rid of {known}"
            self.take_job(wire, words[2], token)
        elif words[1] == b"CANCEL":
            if self.world.chance.random() < 0.5:  # else it cannot be stopped, and replies late
                self.jobs.pop(words[2], None)
        elif words[1] == b"PING" and not self.is_silent:
            self._say(wire, b"HEARTBEAT")
        elif words[1] == b"DISCONNECT":
            self.go(wire)

    def give_up(self, wire: Wire, key: bytes) -> None:
        """It stays connected and never replies: the request's expiry bounds it."""

    def part(self, wire: Wire) -> None:
        """Does nothing: EBUS has one command for leaving, after which nothing counts; it is sent after the reply."""

    def reply(self, wire: Wire, key: bytes, token: str, how: str) -> None:
        word = b"REJECT" if how in ("fail", "out_of_time") else b"REPLY"
        self._say(wire, word, key, b"done " + token.encode())

    def go(self, wire: Wire) -> None:
        if self.is_leaving and wire.is_up:
            self._say(wire, b"DISCONNECT", self._service, b"enough")
        super().go(wire)
