"""Clients and workers of eMQP: every header, every shape of INFORM, and the original program's behaviour."""

from __future__ import annotations

import json

from dragoman.model.enums import REFUSAL_CODES
from dragoman_lab.sim.checks.facts import token_in, tokens_in
from dragoman_lab.sim.checks.ledger import Request
from dragoman_lab.sim.machine.loop import MS_NS
from dragoman_lab.sim.machine.net import Wire
from dragoman_lab.sim.peers.sim_peers import SimClient, SimWorker

VERSION = b"eMQP/1.0"
REFUSALS = frozenset(REFUSAL_CODES)
HEADERS = (
    "reply-requested", "reply-requested", "ack-requested", "ack-requested", "guarantee", "retry-count:0", "retry-count:1",
    "retry-count:3", "timeout:1", "timeout:0.3", "priority:1", "priority:9", "delay:0.2", "delay:2.5", "expires:0.5",
    "expires:4", "dedupe:{key}", "x-shade:blue", "traceparent:00-ab-cd-01", "nohaste",
)  # fmt: skip
BROKEN_HEADERS = ("priority:eleven", "timeout:-5", "retry-count:many", "delay:nan")


class EmqpClient(SimClient):
    """`kind`: dealer, anonymous, one_shot (a connection for each request), req."""

    listener = "emqp.client"

    def prepare(self) -> None:
        self._schedules = 0

    def identity(self) -> bytes:
        if self.kind == "one_shot":
            return f"{self.name}.{self.count}".encode()
        return b"" if self.kind == "anonymous" else self.name.encode()

    def connected(self) -> None:
        if self.kind == "one_shot":  # as EventMQ's `.delay()` does
            self.request()
            self.leave(in_order=True)

    def ask(self, token: str, queue: bytes, body: bytes) -> None:
        chance = self.world.chance
        key = f"{self.name}.{chance.randint(1, 6)}"
        picked = {h.format(key=key) for h in chance.choices(HEADERS, k=chance.choice((0, 1, 1, 2, 3)))}
        headers = ",".join(sorted(picked))
        if chance.random() < 0.01:
            headers = chance.choice(BROKEN_HEADERS)
        request = Request(
            token,
            self.name,
            wants_reply="reply-requested" in headers,
            wants_ack="ack-requested" in headers,
            wants_handover=not self.is_req,
            takes_one_answer=self.is_req,
            is_deduped="dedupe:" in headers,
        )
        frames = [b"", VERSION, b"REQUEST", token.encode(), queue, headers.encode(), body]
        self.send_request(request, frames, is_repeatable=self.kind == "dealer")

    def do_own(self) -> None:
        """Add or remove a schedule. Its jobs carry no token: no client waits for them."""
        chance = self.world.chance
        self._schedules += 1
        body = json.dumps(["run", {"schedule": f"s.{self.name}.{chance.randint(1, 3)}"}]).encode()
        headers = ",".join(
            chance.sample(("nohaste", "run_count:2", "retry-count:1", "reply-requested"), k=chance.randint(0, 2))
        )
        is_cron = chance.random() < 0.3
        interval = b"-1" if is_cron else chance.choice((b"0.5", b"1", b"3"))
        cron = chance.choice((b"* * * * *", b"* * * * * *", b"*/5 * * * *", b"no cron")) if is_cron else b""
        command = b"SCHEDULE" if chance.random() < 0.7 else b"UNSCHEDULE"
        rid = f"{self.name}-s{self._schedules:03d}".encode()
        queue = chance.choice(self.world.plan.queues)
        self.open_wire.say([b"", VERSION, command, rid, queue, headers.encode(), interval, body, cron])

    def show_life(self) -> None:
        self.open_wire.say([b"", VERSION, b"HEARTBEAT", b"hb", b"1.0"])

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        assert frames[:2] == [b"", VERSION], frames
        ledger, command = self.world.ledger, frames[2]
        if command not in (b"ACK", b"REPLY"):
            return
        rid = frames[5 if command == b"REPLY" and len(frames) > 5 else 4]
        if token_in(rid) == "":
            assert rid.startswith(self.name.encode() + b"-s"), f"{self.name} got an answer to {rid!r}"
        elif command == b"ACK":
            ledger.acked(self.name, rid.decode())
        elif len(frames) == 5:
            ledger.handed_over(self.name, rid.decode())
        else:
            self._answered(rid.decode(), frames[4])

    def _answered(self, token: str, value: bytes) -> None:
        """Record a reply. The broker's own are of two kinds: the request was never accepted, or it was and has no result."""
        try:
            error = json.loads(value).get("error")
        except (ValueError, AttributeError):
            error = None  # sent by a worker of another dialect
        if error is not None and error["type"] in REFUSALS:
            self.world.ledger.refused(self.name, token, value)
        elif error is not None and not tokens_in(value):
            self.world.ledger.failed(self.name, token, value)
        else:
            self.world.ledger.answered(self.name, token, value)


class EmqpWorker(SimWorker):
    """`shape`: original, bytes, document. It comes back with a new identity."""

    listener = "emqp.worker"
    beat_ns = 2_500 * MS_NS
    silence_share = 0.15

    def prepare(self) -> None:
        self._credit = 0  # READYs sent on this connection that no request has used yet
        self._is_known = False  # the broker has acknowledged it
        self._weights = [self.world.chance.choice((1, 10, 10, 30)) for _ in self.queues]

    def arrive(self) -> None:
        self._credit, self._is_known = 0, False
        pairs = zip(self._weights, self.queues, strict=True)
        queues = b"[" + b",".join(b'[%d,"%s"]' % pair for pair in pairs) + b"]"
        shapes = {
            "original": [queues, b"worker"],
            "bytes": [queues, b"worker", b"bytes"],
            "document": [self.queues[0]],
        }
        self.open_wire.say([b"", VERSION, b"INFORM", self.open_wire.identity, *shapes[self.shape]])

    def beat(self, wire: Wire) -> None:
        wire.say([b"", VERSION, b"HEARTBEAT", b"hb", b"1.0"])

    def job_in(self, frames: list[bytes]) -> bytes | None:
        assert frames[:2] == [b"", VERSION], frames
        return frames[6] if frames[2] == b"REQUEST" else None

    def receive(self, wire: Wire, frames: list[bytes]) -> None:
        command = frames[2]
        if command == b"ACK" and not self._is_known:
            assert len(frames) == 5
            self._is_known = True
            self._ready(self.slots)
        elif command == b"REQUEST":
            self._on_request(wire, frames)
        elif command == b"DISCONNECT":
            self.go(wire)

    def _ready(self, count: int) -> None:
        if self.wire is not None and self.wire.is_up and not self.is_leaving:
            for _ in range(count):
                self._credit += 1
                self.wire.say([b"", VERSION, b"READY", b"rd"])

    def freed(self) -> None:
        self._ready(1)

    def _on_request(self, wire: Wire, frames: list[bytes]) -> None:
        _, _, _, wire_id, queue, headers, body = frames
        self._credit -= 1
        assert self._credit >= 0, f"{self.name} was given more than it sent READY for"
        assert self.shape == "document" or queue in self.queues, "a queue it does not serve"
        assert b"reply-requested" in headers.split(b","), "every job must be answered, or it is never settled"
        if self.shape == "original":
            check_original(wire_id, headers, body)
        self.take_job(wire, wire_id, token_in(body))

    def part(self, wire: Wire) -> None:
        wire.say([b"", VERSION, b"KBYE", b"bye"])

    def reply_as_stranger(self, wire: Wire, key: bytes, token: str) -> None:
        """Reply as the original does after a reset: with its old identity on another connection, closed at once."""
        old = Wire(self.world, self, "emqp.worker", b"old-" + wire.identity)
        self.reply(old, key, token, "ok")
        old.close()

    def reply(self, wire: Wire, key: bytes, token: str, how: str) -> None:
        values = {
            "fail": {"error": {"type": "JobFailed", "message": token}},
            "out_of_time": {"value": "TimeoutError"},
        }
        value = json.dumps(values.get(how, {"value": token})).encode()
        wire.say([b"", VERSION, b"REPLY", b"re", value, key])


def check_original(wire_id: bytes, headers: bytes, body: bytes) -> None:
    """Check for what crashes the original's job manager."""
    wire_id.decode()
    job = json.loads(body.decode())
    assert isinstance(job, list)
    assert len(job) >= 2
    for header in headers.decode().split(","):
        if "timeout:" in header:
            assert int(header.split(":")[1]) >= 0
