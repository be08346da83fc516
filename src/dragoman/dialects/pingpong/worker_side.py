"""The worker's end of the ping-pong dialogue: the broker's bytes to jobs, answers to bytes. No sockets, no clock.

    READY ──► PONG ──► job … result … job …           one job at a time
    PING each second, also while busy ──► PONG        nothing heard for N_TIMEOUTS × BROKER_TIMEOUT: over, begin anew

A broker that does not know our form sends the first job once more as a package when we PING while we hold it. It is the same job:
from then on we answer in packages, whose marks tell one job from another.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter

from dragoman.dialects.pingpong.words import EXIT, JOB_COMPLETE, PING, PONG, READY
from dragoman.dialects.sides import WorkerSide
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message

BROKER_TIMEOUT_S: Final = 1.0
N_TIMEOUTS: Final = 3
PING_INTERVAL_S: Final = 1.0


@final
class PingpongWorkerSide(WorkerSide):
    """One worker connection. It claims no identity, so each connection has a new one."""

    def __init__(self, message_size_max: int) -> None:
        super().__init__()
        self.zmtp = ZmtpConnection(b"DEALER", False, b"", message_size_max)
        self.out = BytesWriter()
        self.is_serving: bool = False
        self.is_leaving: bool = False
        self.jobs: int = 0  # so far
        self.marks: dict[bytes, bytes] = {}  # of the jobs we hold, by our id for them; empty: it came plain
        self.answers_plain: bool = False  # a plain job was answered plainly: a package is its repetition
        self.has_heard: bool = False
        self.last_heard_s: float = 0.0
        self.next_ping_s: float = 0.0

    def opening(self) -> bytes:
        return self.zmtp.greeting()

    def serve(self, queues: list[tuple[int, bytes]], slots: int) -> None:
        """The queue is the broker's to choose, and there is one slot to a connection."""
        self.is_serving = True
        self.say(READY)

    def receive(self, data: bytes) -> list[tuple[bytes, float, bytes]]:
        jobs: list[tuple[bytes, float, bytes]] = []
        for frames in self.zmtp.receive(data):
            self.has_heard = True
            if len(frames) < 2 or frames[0]:
                continue
            word = frames[1]
            if len(frames) == 2 and word == PONG:
                self.is_ready = True
            elif len(frames) == 2 and word == EXIT:
                self.is_over = True
                self.problem = "the broker said EXIT"
            elif not self.is_leaving:  # else it goes back to the line when we are gone
                self.take(frames, jobs)
        return jobs

    def take(self, frames: list[bytes], jobs: list[tuple[bytes, float, bytes]]) -> None:
        mark = frames[2] if len(frames) > 2 else b""
        if mark and self.jobs == 1:
            if self.answers_plain:
                self.say(READY)  # answered already: the broker waits for a sign that we do not work on it again
                return
            for held_id in self.marks:
                if not self.marks[held_id]:
                    self.marks[held_id] = mark
                    return
        self.jobs += 1
        job_id = b"%d" % self.jobs
        self.marks[job_id] = mark
        jobs.append((job_id, 0.0, frames[1]))

    def ready(self, slots: int) -> None:
        """A result says it."""

    def reply(self, request_id: bytes, value: bytes) -> None:
        mark = self.marks.pop(request_id, b"")
        if mark or value == READY or value == PING:  # plain, these two would be taken for control
            self.out.write(encode_message([b"", JOB_COMPLETE, mark, b"", value]))
        else:
            self.answers_plain = self.answers_plain or self.jobs == 1
            self.out.write(encode_message([b"", value]))

    def beat(self, now_s: float) -> None:
        if self.has_heard or self.last_heard_s == 0.0:
            self.has_heard = False
            self.last_heard_s = now_s
        elif self.zmtp.is_ready and now_s - self.last_heard_s > N_TIMEOUTS * BROKER_TIMEOUT_S:
            self.is_over = True
            self.problem = f"the broker has been silent for {N_TIMEOUTS * BROKER_TIMEOUT_S} s"
        if self.is_serving and now_s >= self.next_ping_s and (self.marks or not self.is_leaving):
            if self.next_ping_s > 0.0:  # the first second needs none: READY was just said
                self.say(PING)
            self.next_ping_s = now_s + PING_INTERVAL_S

    def goodbye(self) -> None:
        """There is no word for it: we fall silent, and what still comes goes back to the line with our connection."""
        self.is_leaving = True

    def say(self, word: bytes) -> None:
        self.out.write(encode_message([b"", word]))

    def take_out(self) -> bytes:
        data = self.zmtp.take_outgoing()
        if self.zmtp.is_ready and len(self.out) > 0:
            data += self.out.getvalue()
            self.out = BytesWriter()
        return data
