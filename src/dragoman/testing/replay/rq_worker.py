"""A consumer of rq, as a replay needs it; and every kind of worker by its dialect."""

from __future__ import annotations

from dragoman.runtime.config import Config
from dragoman.testing.replay.workers import ReplayWorker
from dragoman.testing.replay.zmtp_workers import EbusWorker, EmqpWorker, PingpongWorker, Scale0Worker
from dragoman.testing.sim import risp
from dragoman.testing.sim.net import Wire

ENDLESS = b"\xe0\xff\xff\xff\xff"  # a payload of four gigabytes is announced: no listener takes that


class RqWorker(ReplayWorker):
    """One queue on a connection of its own; an id stays taken until it is answered, whatever became of its message."""

    listener = "rq"
    is_gated = True
    minds_stale = True

    def beat_s(self, config: Config) -> float:
        return 0

    def arrive(self) -> None:
        self._noreply: set[bytes] = set()
        for queue, rank in self.queues.items():
            self._say(risp.queue(queue), risp.most(self.guest.slots), risp.priority(rank), risp.CONSUME)

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
        self.speaking.say([risp.CLEAR, *pieces])
        self.stage.settle()
        return True


WORKERS: dict[str, type[ReplayWorker]] = {
    "emqp": EmqpWorker,
    "scale0": Scale0Worker,
    "pingpong": PingpongWorker,
    "ebus": EbusWorker,
    "rq": RqWorker,
}
