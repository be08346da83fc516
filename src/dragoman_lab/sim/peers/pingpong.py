"""Clients and workers of the ping-pong dialogue, whose messages carry no id: only order and the open lease identify a reply."""

from __future__ import annotations

import json
from collections import defaultdict, deque

from dragoman_lab.sim.checks.facts import token_in
from dragoman_lab.sim.checks.ledger import Request
from dragoman_lab.sim.machine.net import Wire
from dragoman_lab.sim.peers.sim_peers import SimClient, SimWorker

QUEUE = b"pingpong"


class PingpongClient(SimClient):
    """`kind`: plain, json, req. It is anonymous, so that each connection gets only its own replies, in the order of its requests."""

    listener = "pingpong.client"

    def prepare(self) -> None:
        self._asked: defaultdict[int, deque[str]] = defaultdict(deque)  # by connection
        self.rewrites_bodies = self.kind == "json"

    def ask(self, token: str, queue: bytes, body: bytes) -> None:
        self._asked[self.open_wire.number].append(token)
        request = Request(token, self.name, takes_one_answer=self.is_req)
        if self.kind == "json":
            order = body.removeprefix(b"\xff\xfe ")
            self.send_request(request, [b'{"order":%s}' % order])
        else:
            self.send_request(request, [b"", body])

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        asked = self._asked[wire.number]
        assert asked, f"{self.name} got an answer to nothing: {frames}"
        token = asked.popleft()
        ledger = self.world.ledger
        if self.kind == "json":
            assert len(frames) == 1, frames
            reply = json.loads(frames[0])
            if token_in(frames[0]) == "" and b"TimeoutError" not in frames[0]:
                assert "msg" in reply, reply
                ledger.refused(self.name, token, frames[0])
            else:
                ledger.answered(self.name, token, frames[0])
        elif frames[1] == b"ERROR":
            ledger.refused(self.name, token, frames[2])
        else:
            assert len(frames) == 2, frames
            ledger.answered(self.name, token, frames[1])


class PingpongWorker(SimWorker):
    """`shape`: plain, package, json. It does one job at a time and serves the one queue."""

    listener = "pingpong.worker"
    forgets_share = 1.0  # it cannot tell which connection a job came from, so it forgets the job with the connection

    def prepare(self) -> None:
        self._client_id = b""  # of a package
        self._work_token = ""  # of a json job

    def identity(self) -> bytes:
        return super().identity() if self.world.chance.random() < 0.5 else b""

    def arrive(self) -> None:
        self._say(self.open_wire, b"PING" if self.shape == "json" else b"READY")

    def _say(self, wire: Wire, word: bytes) -> None:
        wire.say([b'{"status":"%s"}' % word] if self.shape == "json" else [b"", word])

    def beat(self, wire: Wire) -> None:
        if not self.jobs or self.shape == "package":
            self._say(wire, b"PING")

    def job_in(self, frames: list[bytes]) -> bytes | None:
        return frames[-1 if self.shape == "json" else 1]

    def receive(self, wire: Wire, frames: list[bytes]) -> None:
        if self.shape == "json" and len(frames) == 1:
            if json.loads(frames[0])["status"] == "WORK":
                self._work_token = json.loads(frames[0])["token"]
                self._on_job(wire, frames[0])
        elif self.shape == "plain" and len(frames) == 2 and frames[1] not in (b"PONG", b"EXIT"):
            self._on_job(wire, frames[1])
        elif self.shape == "package" and len(frames) == 5:
            self._client_id = frames[2]
            self._on_job(wire, frames[1])

    def _on_job(self, wire: Wire, job: bytes) -> None:
        token = token_in(job)
        assert not self.jobs, f"{self.name} was given {token} while it works on {list(self.jobs.values())}"
        self.take_job(wire, b"job", token)

    def give_up(self, wire: Wire, key: bytes) -> None:
        """It forgot its job: it sends READY, or disconnects."""
        if self.world.chance.random() < 0.5:
            self._say(wire, b"READY")
        else:
            wire.cut()

    def reply(self, wire: Wire, key: bytes, token: str, how: str) -> None:
        result = b"done " + token.encode()
        if self.shape == "json" and how == "fail":
            wire.say([b'{"status":"ERROR","token":"%s","msg":"%s"}' % (self._work_token.encode(), result)])
        elif self.shape == "json":
            wire.say([b'{"status":"SUCCESS","token":"%s","result":"%s"}' % (self._work_token.encode(), result)])
        elif self.shape == "package":
            wire.say([b"", b"JOB COMPLETE", self._client_id, b"", result])
        else:
            wire.say([b"", result])

    def answer_twice(self, wire: Wire, key: bytes, token: str) -> None:
        """A second result would count for the next job, undetectably. It sends one READY too many instead."""
        self.reply(wire, key, token, "ok")
        self._say(wire, b"READY")
