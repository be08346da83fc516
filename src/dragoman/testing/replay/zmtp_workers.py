"""Workers of the four dialects over ZMTP, as a replay needs them."""

from __future__ import annotations

import json

from dragoman.runtime.config import Config
from dragoman.testing.replay.workers import ReplayWorker
from dragoman.testing.sim.ebus import FROM_WORKER
from dragoman.testing.sim.emqp import VERSION
from dragoman.testing.sim.net import Wire

VALUE = b'{"value":"replayed"}'
FAILURE = b'{"error":{"type":"JobFailed","message":"replayed"}}'


class EmqpWorker(ReplayWorker):
    """`shape` original: EventMQ's own, which takes JSON jobs only and has its own bounds on time."""

    listener = "emqp.worker"

    def beat_s(self, config: Config) -> float:
        return config.emqp.worker_lost_s / 3

    def arrive(self) -> None:
        queues = json.dumps([[weight, queue.decode()] for queue, weight in self.queues.items()]).encode()
        more = [] if self.guest.shape == "original" else [b"bytes"]
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
        self.speaking.say([b"", VERSION, *frames])
        self.stage.settle()
        return True


class Scale0Worker(ReplayWorker):
    """Busy, except while it waits for the one task that it asked for."""

    listener = "scale0.worker"

    def beat_s(self, config: Config) -> float:
        return self.guest.heartbeat_s or config.scale0.heartbeat_s

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
        if self.guest.heartbeat_s:
            header["heartbeat_interval"] = self.guest.heartbeat_s
        if not self.wants_one:
            header["busy"] = True
        self._say(b"PING", header)

    def _say(self, command: bytes, header: dict[str, object], *body: bytes) -> bool:
        self.speaking.say([command, json.dumps(header).encode(), *body])
        self.stage.settle()
        return True


class PingpongWorker(ReplayWorker):
    """One job at a time. `shape` json: the form that can say that a job failed."""

    listener = "pingpong.worker"
    is_gated = True

    def beat_s(self, config: Config) -> float:
        return config.pingpong.worker_expire_s / 3

    def arrive(self) -> None:
        self._word(b"READY")

    def beat(self) -> None:
        if len(self.arrivals) == self._answered:
            self._word(b"PING")

    def make_room(self, stale: list[bytes]) -> None:
        self._answered = len(self.arrivals)  # what was taken from it, it has forgotten
        self._word(b"READY")

    _answered = 0

    def answer(self, key: bytes) -> bool:
        self._answered = len(self.arrivals)
        if self.guest.shape == "json":
            return self._say([b'{"status":"SUCCESS","token":"%s","result":"replayed"}' % key])
        return self._say([b"", b"replayed"])

    def fail(self, key: bytes) -> bool:
        if self.guest.shape != "json":
            return False
        self._answered = len(self.arrivals)
        return self._say([b'{"status":"ERROR","token":"%s","msg":"replayed"}' % key])

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        if len(frames) == 1:
            said = json.loads(frames[0])
            if said["status"] == "WORK":
                self.given(said["token"].encode())
        elif frames[1] not in (b"PONG", b"EXIT"):
            self.given(b"")

    def _word(self, word: bytes) -> None:
        self._say([b'{"status":"%s"}' % word] if self.guest.shape == "json" else [b"", word])

    def _say(self, frames: list[bytes]) -> bool:
        self.speaking.say(frames)
        self.stage.settle()
        return True


class EbusWorker(ReplayWorker):
    """It says at once how many requests it takes."""

    listener = "ebus.worker"
    is_gated = True

    def beat_s(self, config: Config) -> float:
        return config.ebus.ping_s / 2

    def arrive(self) -> None:
        first, *more = self.queues
        self._say(b"READY", b"null", first, b"%d" % self.guest.slots, *more)

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
        self.speaking.say([FROM_WORKER, *frames])
        self.stage.settle()
        return True
