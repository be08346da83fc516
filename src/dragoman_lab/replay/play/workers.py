"""Workers of a replay, of every dialect: they connect, send heartbeats, take messages, and end them as the story says.

No fact records which worker had a free slot when; the leases show which worker took what. So a worker has a free slot when the story says
that it takes something: one of eMQP or Scale0 requests a message then. One whose dialect has no requests (it gets the next message as soon
as it has replied) is *gated*: it does not read its connection, so the broker gives it nothing, except the one message that it takes.
"""

from __future__ import annotations

import json

from dragoman.model.units import SECOND_NS
from dragoman.runtime.config import Config
from dragoman_lab.replay.play.stage import Stage
from dragoman_lab.replay.tables import ReplayedPeer
from dragoman_lab.sim.machine import risp
from dragoman_lab.sim.machine.net import StillWire, Wire
from dragoman_lab.sim.peers.ebus import FROM_WORKER
from dragoman_lab.sim.peers.emqp import VERSION

GARBAGE = b"\xff" * 16  # invalid in ZMTP at any position
ENDLESS = b"\xe0\xff\xff\xff\xff"  # announces a payload of four gigabytes, which no listener accepts
VALUE = b'{"value":"replayed"}'
FAILURE = b'{"error":{"type":"JobFailed","message":"replayed"}}'


class ReplayWorker:
    """One connection of one worker. A verb returns False if its dialect has no command for it."""

    listener = ""
    is_rude = False
    is_gated = False
    minds_stale = False  # a message taken from it occupies a slot until it replies

    def __init__(self, stage: Stage, peer: ReplayedPeer) -> None:
        self.stage, self.peer = stage, peer
        self.name = peer.name
        self.queues = peer.queues
        self.wire: Wire | None = None
        self.arrivals: list[bytes] = []  # messages it was given, in order, by the keys that its replies need
        self.is_silent = False
        self.wants_one = False  # it requested a message that has not come yet
        self.spare = 0  # slots that an open gate withholds
        self.beat_ns = int(self.beat_s(stage.plan.config) * SECOND_NS)

    # -- its connection -------------------------------------------------------------------------------------------------

    def come(self) -> None:
        self.wire = StillWire(self.stage, self, self.listener, self.peer.identity)
        session = self.wire.connection.session
        if session is not None:
            session.is_blocked = self.is_gated
        self.arrive()
        self.stage.settle()
        self._next_beat()

    def serve(self, queues: dict[bytes, int]) -> None:
        """Serve these queues from now on."""
        self.queues = queues
        self.arrive()
        self.stage.settle()

    def _next_beat(self) -> None:
        if self.beat_ns:
            self.stage.timeline.after(self.beat_ns, self._beat)

    def _beat(self) -> None:
        if self.is_connected and not self.is_silent:
            self.beat()
            self._next_beat()

    def fall_silent(self, rooms: int) -> None:
        """Send a last heartbeat, with a request for each message that it will still be given."""
        for _ in range(rooms):
            self.make_room([])
        if not rooms:
            self.beat()
        self.stage.settle()
        self.is_silent = True

    def die(self) -> None:
        if self.wire is not None:
            self.wire.cut()
            self.stage.settle()

    def misbehave(self) -> None:
        self.speaking.send(self.garbage())
        self.stage.settle()

    @property
    def is_connected(self) -> bool:
        return self.wire is not None and self.wire.is_up

    @property
    def speaking(self) -> Wire:
        assert self.wire is not None, f"{self.name} has not come yet"
        return self.wire

    def send(self, frames: list[bytes]) -> bool:
        self.speaking.say(frames)
        self.stage.settle()
        return True

    # -- specific to the dialect ----------------------------------------------------------------------------------------

    def beat_s(self, config: Config) -> float:
        """The interval of heartbeats; 0: only on request."""
        raise NotImplementedError

    def arrive(self) -> None:
        raise NotImplementedError

    def beat(self) -> None:
        """Send a heartbeat."""

    def make_room(self, stale: list[bytes]) -> None:
        """Request one more message. `stale`: messages that were taken from it before it replied."""

    def answer(self, key: bytes) -> bool:
        raise NotImplementedError

    def fail(self, key: bytes) -> bool:
        return False

    def reject(self, key: bytes) -> bool:
        return False

    def give_back(self, key: bytes) -> bool:
        return False

    def confirm(self, key: bytes) -> bool:
        return False

    def part(self) -> bool:
        """Announce that it takes nothing new."""
        return False

    def garbage(self) -> bytes:
        return GARBAGE

    # -- received messages ----------------------------------------------------------------------------------------------

    def given(self, key: bytes) -> None:
        self.wants_one = False
        self.arrivals.append(key)

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        """Ignored: `on_message` follows at once."""

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        raise NotImplementedError

    def on_lost(self, wire: Wire) -> None:
        """Ignored: it does not come back; a later connection is another worker."""


class EmqpWorker(ReplayWorker):
    """`shape` original: EventMQ's own, which accepts JSON jobs only and has its own timeouts."""

    listener = "emqp.worker"

    def beat_s(self, config: Config) -> float:
        return float(config.dialects["emqp"].worker_lost_s) / 3

    def arrive(self) -> None:
        queues = json.dumps([[weight, queue.decode()] for queue, weight in self.queues.items()]).encode()
        more = [] if self.peer.shape == "original" else [b"bytes"]
        self._say(b"INFORM", b"in", queues, b"worker", *more)

    def beat(self) -> None:
        self._say(b"HEARTBEAT", b"hb", b"1.0")

    def make_room(self, stale: list[bytes]) -> None:
        self._say(b"READY", b"rd")

    def answer(self, key: bytes) -> bool:
        return self._say(b"REPLY", b"re", VALUE, key)

    def fail(self, key: bytes) -> bool:
        return self._say(b"REPLY", b"re", FAILURE, key)

    def part(self) -> bool:
        return self._say(b"KBYE", b"bye")

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        if frames[2] == b"REQUEST":
            self.given(frames[3])

    def _say(self, *frames: bytes) -> bool:
        return self.send([b"", VERSION, *frames])


class Scale0Worker(ReplayWorker):
    """Reports itself as busy, except while it waits for the one task that it requested."""

    listener = "scale0.worker"

    def beat_s(self, config: Config) -> float:
        return self.peer.heartbeat_s or config.dialects["scale0"].heartbeat_s

    def arrive(self) -> None:
        self._ping()

    def beat(self) -> None:
        self._ping()

    def make_room(self, stale: list[bytes]) -> None:
        self.wants_one = True
        self._ping()

    def answer(self, key: bytes) -> bool:
        return self._say(b"TASKREPLY", {"id": key.decode()}, b"replayed")

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        if frames[0] == b"TASK":
            self.given(str(json.loads(frames[1])["id"]).encode())

    def _ping(self) -> None:
        header: dict[str, object] = {"services": [queue.decode() for queue in self.queues]}
        if self.peer.heartbeat_s:
            header["heartbeat_interval"] = self.peer.heartbeat_s
        if not self.wants_one:
            header["busy"] = True
        self._say(b"PING", header)

    def _say(self, command: bytes, header: dict[str, object], *body: bytes) -> bool:
        return self.send([command, json.dumps(header).encode(), *body])


class PingpongWorker(ReplayWorker):
    """One job at a time. `shape` json: the form that can report that a job failed."""

    listener = "pingpong.worker"
    is_gated = True

    def beat_s(self, config: Config) -> float:
        return float(config.dialects["pingpong"].worker_expire_s) / 3

    def arrive(self) -> None:
        self._word(b"READY")

    def beat(self) -> None:
        if len(self.arrivals) == self._answered:
            self._word(b"PING")

    def make_room(self, stale: list[bytes]) -> None:
        self._answered = len(self.arrivals)  # it has forgotten what was taken from it
        self._word(b"READY")

    _answered = 0

    def answer(self, key: bytes) -> bool:
        self._answered = len(self.arrivals)
        if self.peer.shape == "json":
            return self.send([b'{"status":"SUCCESS","token":"%s","result":"replayed"}' % key])
        return self.send([b"", b"replayed"])

    def fail(self, key: bytes) -> bool:
        if self.peer.shape != "json":
            return False
        self._answered = len(self.arrivals)
        return self.send([b'{"status":"ERROR","token":"%s","msg":"replayed"}' % key])

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        if len(frames) == 1:
            said = json.loads(frames[0])
            if said["status"] == "WORK":
                self.given(said["token"].encode())
        elif frames[1] not in (b"PONG", b"EXIT"):
            self.given(b"")

    def _word(self, word: bytes) -> None:
        self.send([b'{"status":"%s"}' % word] if self.peer.shape == "json" else [b"", word])


class EbusWorker(ReplayWorker):
    """Announces its number of slots when it connects."""

    listener = "ebus.worker"
    is_gated = True

    def beat_s(self, config: Config) -> float:
        return float(config.dialects["ebus"].ping_s) / 2

    def arrive(self) -> None:
        first, *more = self.queues
        self._say(b"READY", b"null", first, b"%d" % self.peer.slots, *more)

    def beat(self) -> None:
        self._say(b"HEARTBEAT")

    def answer(self, key: bytes) -> bool:
        return self._say(b"REPLY", key, b"replayed")

    def reject(self, key: bytes) -> bool:
        return self._say(b"REJECT", key, b"replayed")

    def part(self) -> bool:
        return self._say(b"DISCONNECT", next(iter(self.queues)), b"enough")

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        if frames[1] == b"REQ":
            self.given(frames[2])

    def _say(self, *frames: bytes) -> bool:
        return self.send([FROM_WORKER, *frames])


class RqWorker(ReplayWorker):
    """One queue per connection; an id stays in use until the worker replies, whatever happened to its message."""

    listener = "rq"
    is_gated = True
    minds_stale = True

    def beat_s(self, config: Config) -> float:
        return 0

    def arrive(self) -> None:
        self._noreply: set[bytes] = set()
        for queue, rank in self.queues.items():
            self._say(risp.queue(queue), risp.most(self.peer.slots), risp.priority(rank), risp.CONSUME)

    def make_room(self, stale: list[bytes]) -> None:
        if stale:
            self._of(stale[0], risp.UNDELIVERED)

    def answer(self, key: bytes) -> bool:
        if key in self._noreply:
            return self._of(key, risp.DELIVERED)
        return self._of(key, risp.payload(b"replayed"), risp.REPLY)

    def give_back(self, key: bytes) -> bool:
        return self._of(key, risp.UNDELIVERED)

    def confirm(self, key: bytes) -> bool:
        return self._of(key, risp.DELIVERED)

    def part(self) -> bool:
        return self._say(risp.queue(next(iter(self.queues))), risp.CANCEL_QUEUE)

    def garbage(self) -> bytes:
        return ENDLESS

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        if frames[0] == b"PING" and not self.is_silent:
            wire.say([risp.PONG])
        elif frames[0] == b"REQUEST":
            self.given(frames[1])
            self._noreply.discard(frames[1])
            if b"NOREPLY" in frames[5:]:
                self._noreply.add(frames[1])

    def _of(self, key: bytes, *pieces: bytes) -> bool:
        return self._say(risp.request_id(int(key)), *pieces)

    def _say(self, *pieces: bytes) -> bool:
        return self.send([risp.CLEAR, *pieces])


WORKERS: dict[str, type[ReplayWorker]] = {
    "emqp": EmqpWorker,
    "scale0": Scale0Worker,
    "pingpong": PingpongWorker,
    "ebus": EbusWorker,
    "rq": RqWorker,
}
