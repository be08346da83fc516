"""Clients and workers of a replay, of every dialect.

A client sends its messages as the journal records them. A worker connects, sends heartbeats, takes messages, and ends them as the story
says. No fact records which worker had a free slot when; the leases show which worker took what. So a worker has a free slot when the story
says that it takes something: one of eMQP or Scale0 requests a message then. One whose dialect has no requests (it gets the next message as
soon as it has replied) is *gated*: it does not read its connection, so the broker gives it nothing, except the one message that it takes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from dragoman.dialects.description import CLIENT, WORKER
from dragoman.dialects.registry import DIALECTS_BY_NAME
from dragoman.dialects.traceparent import leading, without_traceparent
from dragoman.model.units import SECOND_NS
from dragoman_lab.replay.play.stage import Stage
from dragoman_lab.replay.tables import MessageRow, PeerRow, read_queues
from dragoman_lab.sim.machine import risp
from dragoman_lab.sim.machine.net import StillWire, Wire, WirePeer
from dragoman_lab.sim.peers.ebus import FROM_CLIENT, FROM_WORKER
from dragoman_lab.sim.peers.emqp import VERSION

GARBAGE = b"\xff" * 16  # invalid in ZMTP at any position
ENDLESS = b"\xe0\xff\xff\xff\xff"  # announces a payload of four gigabytes, which no listener accepts
VALUE = b'{"value":"replayed"}'
FAILURE = b'{"error":{"type":"JobFailed","message":"replayed"}}'


def scale0_request(m: MessageRow) -> list[bytes]:
    """An id that is not plain text is in the headers as it was sent, after a `traceparent` if there is one."""
    token = without_traceparent(m.headers).decode() or json.dumps(m.client_id.decode())
    traceparent = leading(m.headers).decode()
    trace = f', "traceparent": "{traceparent}"' if traceparent else ""
    header = f'{{"id": {token}, "service": {json.dumps(m.queue.decode())}{trace}}}'
    return [b"TASK", header.encode(), m.body]


def rq_request(m: MessageRow) -> list[bytes]:
    pieces = [risp.CLEAR, risp.request_id(int(m.client_id)), risp.queue(m.queue), risp.payload(m.body)]
    if m.is_noreply:
        pieces.append(risp.NOREPLY)
    if m.retries >= 0:
        pieces.append(risp.retries(m.retries))
    if m.timeout_s:
        pieces.append(risp.timeout(int(m.timeout_s)))
    return [*pieces, risp.REQUEST]


REQUESTS: dict[str, Callable[[MessageRow], list[bytes]]] = {
    "emqp": lambda m: [b"", VERSION, b"REQUEST", m.client_id, m.queue, m.headers, m.body],
    "scale0": scale0_request,
    "pingpong": lambda m: [b'{"order":%s}' % m.body] if m.headers else [b"", m.body],
    # Its headers are the request's expiry in milliseconds.
    "ebus": lambda m: [b"", FROM_CLIENT, b"REQ", m.queue, m.client_id, m.body, m.headers],
    "rq": rq_request,
}
CANCELS: dict[str, Callable[[MessageRow], list[bytes]]] = {
    "emqp": lambda m: [b"", VERSION, b"CANCEL", b"cancel", m.client_id],
    "ebus": lambda m: [b"", FROM_CLIENT, b"CANCEL", m.queue, m.client_id],
}
PONGS = {"ebus": [b"", FROM_CLIENT, b"HEARTBEAT"], "rq": [risp.PONG]}  # a client's answer to a PING


class ReplayPeer(WirePeer):
    """A client or a worker."""

    def __init__(self, stage: Stage, peer: PeerRow) -> None:
        self.stage, self.peer, self.name = stage, peer, peer.name

    @property
    def is_connected(self) -> bool:
        return self.wire is not None and self.wire.is_up

    def die(self) -> None:
        if self.wire is not None:
            self.wire.cut()
            self.stage.settle()


class ReplayClient(ReplayPeer):
    """One client: connects with its first message and stays until the story disconnects it."""

    def __init__(self, stage: Stage, peer: PeerRow) -> None:
        super().__init__(stage, peer)
        self.listener = DIALECTS_BY_NAME[peer.dialect].by_role[CLIENT].name

    def come(self) -> Wire:
        if not self.is_connected:
            self.wire = StillWire(self.stage, self, self.listener, self.peer.identity, self.peer.socket)
            self.stage.settle()
        return self.open_wire

    def send(self, frames: list[bytes]) -> None:
        self.come().say(frames)
        self.stage.settle()

    def request(self, message: MessageRow) -> None:
        self.send(REQUESTS[self.peer.dialect](message))

    def cancel(self, message: MessageRow) -> bool:
        """Cancel the message; False if the dialect has no command for it."""
        if self.peer.dialect not in CANCELS:
            return False
        self.send(CANCELS[self.peer.dialect](message))
        return True

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        if self.peer.dialect in PONGS and b"PING" in frames[:3]:
            wire.say(PONGS[self.peer.dialect])


# The interval of a worker's heartbeats by its dialect's settings; 0: only on request.
BEATS_S: dict[str, Callable[[Any], float]] = {
    "emqp": lambda settings: settings.worker_lost_s / 3,
    "scale0": lambda settings: settings.heartbeat_s,
    "pingpong": lambda settings: settings.worker_expire_s / 3,
    "ebus": lambda settings: settings.ping_s / 2,
    "rq": lambda settings: 0,
}


class ReplayWorker(ReplayPeer):
    """One connection of one worker."""

    is_gated = False
    minds_stale = False  # a message whose lease ended occupies a slot until the worker replies
    garbage = GARBAGE

    def __init__(self, stage: Stage, peer: PeerRow) -> None:
        super().__init__(stage, peer)
        self.queues = peer.queues
        self.arrivals: list[bytes] = []  # messages it was given, in order, by the keys that its replies need
        self.is_silent = False
        self.spare = 0  # slots that an open gate withholds
        beat_s = peer.heartbeat_s or BEATS_S[peer.dialect](stage.plan.config.dialects[peer.dialect])
        self.beat_ns = int(beat_s * SECOND_NS)

    def message(self, what: str, key: bytes) -> list[bytes] | None:
        """Its dialect's message for a verb of the story, or for `beats`; None if there is none."""
        raise NotImplementedError

    def key_of(self, frames: list[bytes]) -> bytes | None:
        """The key of the job that it has received; None if this is no job."""
        raise NotImplementedError

    def come(self) -> None:
        listener = DIALECTS_BY_NAME[self.peer.dialect].by_role[WORKER].name
        self.wire = StillWire(self.stage, self, listener, self.peer.identity)
        session = self.wire.connection.session
        if session is not None:
            session.is_blocked = self.is_gated
        self.send("joins")
        self._next_beat()

    def serve(self, queues: dict[str, int]) -> None:
        """Serve these queues from now on."""
        self.queues = read_queues(queues)
        self.send("joins")

    def _next_beat(self) -> None:
        if self.beat_ns:
            self.stage.timeline.after(self.beat_ns, self._beat)

    def _beat(self) -> None:
        if self.is_connected and not self.is_silent:
            self.send("beats")
            self._next_beat()

    def fall_silent(self, rooms: int = 0) -> None:
        """Send a last heartbeat, or a request for each message that it will still be given."""
        for _ in range(rooms):
            self.send("has room")
        if not rooms:
            self.send("beats")
        self.is_silent = True

    def misbehave(self) -> None:
        self.open_wire.send(self.garbage)
        self.stage.settle()

    def send(self, what: str, key: bytes = b"") -> bool:
        """Send the message for a verb; False if its dialect has none."""
        frames = self.message(what, key)
        if frames is not None:
            self.open_wire.say(frames)
        self.stage.settle()
        return frames is not None

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        key = self.key_of(frames)
        if key is not None:
            self.arrivals.append(key)


class EmqpWorker(ReplayWorker):
    """`shape` original: EventMQ's own, which accepts JSON jobs only and has its own timeouts."""

    def message(self, what: str, key: bytes) -> list[bytes] | None:
        queues = json.dumps([[weight, queue.decode()] for queue, weight in self.queues.items()]).encode()
        known = {
            "joins": [b"INFORM", b"in", queues, b"worker", *([] if self.peer.shape == "original" else [b"bytes"])],
            "beats": [b"HEARTBEAT", b"hb", b"1.0"],
            "has room": [b"READY", b"rd"],
            "answers": [b"REPLY", b"re", VALUE, key],
            "fails": [b"REPLY", b"re", FAILURE, key],
            "parts": [b"KBYE", b"bye"],
        }
        return [b"", VERSION, *known[what]] if what in known else None

    def key_of(self, frames: list[bytes]) -> bytes | None:
        return frames[3] if frames[2] == b"REQUEST" else None


class Scale0Worker(ReplayWorker):
    """Reports itself as busy, except while it waits for the one task that it requested."""

    _wants_one = False  # it requested a task that has not come yet

    def message(self, what: str, key: bytes) -> list[bytes] | None:
        if what == "answers":
            return [b"TASKREPLY", json.dumps({"id": key.decode()}).encode(), b"replayed"]
        if what not in ("joins", "beats", "has room"):
            return None
        self._wants_one = self._wants_one or what == "has room"
        header: dict[str, object] = {"services": [queue.decode() for queue in self.queues]}
        if self.peer.heartbeat_s:
            header["heartbeat_interval"] = self.peer.heartbeat_s
        if not self._wants_one:
            header["busy"] = True
        return [b"PING", json.dumps(header).encode()]

    def key_of(self, frames: list[bytes]) -> bytes | None:
        if frames[0] != b"TASK":
            return None
        self._wants_one = False
        return str(json.loads(frames[1])["id"]).encode()


class PingpongWorker(ReplayWorker):
    """One job at a time. `shape` json: the form that can report that a job failed."""

    is_gated = True
    _answered = 0  # of its arrivals; it has forgotten those whose lease ended

    def message(self, what: str, key: bytes) -> list[bytes] | None:
        is_json = self.peer.shape == "json"
        if what in ("joins", "beats", "has room"):
            if what == "beats" and self._answered < len(self.arrivals):
                return None  # it sends no PING while it works
            word = b"PING" if what == "beats" else b"READY"
            frames = [b'{"status":"%s"}' % word] if is_json else [b"", word]
        elif what == "answers" and not is_json:
            frames = [b"", b"replayed"]
        elif what == "answers":
            frames = [b'{"status":"SUCCESS","token":"%s","result":"replayed"}' % key]
        elif what == "fails" and is_json:
            frames = [b'{"status":"ERROR","token":"%s","msg":"replayed"}' % key]
        else:
            return None
        if what in ("has room", "answers", "fails"):
            self._answered = len(self.arrivals)
        return frames

    def key_of(self, frames: list[bytes]) -> bytes | None:
        if len(frames) > 1:
            return None if frames[1] in (b"PONG", b"EXIT") else b""
        job = json.loads(frames[0])
        return job["token"].encode() if job["status"] == "WORK" else None


class EbusWorker(ReplayWorker):
    """Announces its number of slots when it connects."""

    is_gated = True

    def message(self, what: str, key: bytes) -> list[bytes] | None:
        first, *more = self.queues
        known = {
            "joins": [b"READY", b"null", first, b"%d" % self.peer.slots, *more],
            "beats": [b"HEARTBEAT"],
            "answers": [b"REPLY", key, b"replayed"],
            "rejects": [b"REJECT", key, b"replayed"],
            "parts": [b"DISCONNECT", first, b"enough"],
        }
        return [FROM_WORKER, *known[what]] if what in known else None

    def key_of(self, frames: list[bytes]) -> bytes | None:
        return frames[2] if frames[1] == b"REQ" else None


class RqWorker(ReplayWorker):
    """An id stays in use until the worker replies, whatever happened to its message."""

    is_gated = True
    minds_stale = True
    garbage = ENDLESS

    def __init__(self, stage: Stage, peer: PeerRow) -> None:
        super().__init__(stage, peer)
        self._noreply: set[bytes] = set()  # jobs whose only answer is DELIVERED

    def message(self, what: str, key: bytes) -> list[bytes] | None:
        if what == "joins":
            most = risp.most(self.peer.slots)
            consumes = [
                [risp.CLEAR, risp.queue(queue), most, risp.priority(rank), risp.CONSUME]
                for queue, rank in self.queues.items()
            ]
            return [piece for pieces in consumes for piece in pieces]
        if what == "parts":
            return [risp.CLEAR, risp.queue(next(iter(self.queues))), risp.CANCEL_QUEUE]
        acts = {
            "answers": risp.payload(b"replayed") + risp.REPLY,
            "returns": risp.UNDELIVERED,
            "confirms": risp.DELIVERED,
        }
        if what not in acts:
            return None
        act = risp.DELIVERED if what == "answers" and key in self._noreply else acts[what]
        return [risp.CLEAR, risp.request_id(int(key)), act]

    def key_of(self, frames: list[bytes]) -> bytes | None:
        if frames[0] != b"REQUEST":
            return None
        self._noreply.discard(frames[1])
        if b"NOREPLY" in frames[5:]:
            self._noreply.add(frames[1])
        return frames[1]

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        super().on_message(wire, frames)
        if frames[0] == b"PING" and not self.is_silent:
            wire.say([risp.PONG])


WORKERS: dict[str, type[ReplayWorker]] = {
    "emqp": EmqpWorker,
    "scale0": Scale0Worker,
    "pingpong": PingpongWorker,
    "ebus": EbusWorker,
    "rq": RqWorker,
}
