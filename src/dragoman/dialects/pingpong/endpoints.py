"""The client side of pingpong: endpoints for clients and workers. No sockets, no clock.

    client   order … result …                          the n-th message from the broker answers the n-th order of the connection
    worker   READY ──► PONG ──► job … result … job …   one job at a time
             PING each second, also while busy ──► PONG; nothing received for N_TIMEOUTS × BROKER_TIMEOUT: over, reconnect

Messages have no ids, so a client never has an identity: the orders of an earlier connection must not be answered here.

A broker that does not know the worker's form sends the first job again as a package when the worker sends a PING while it has the job. It
is the same job: from then on the worker answers in packages, whose marks distinguish the jobs.
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from dragoman.dialects import endpoint
from dragoman.dialects.endpoint import CallOptions, EndpointSetup
from dragoman.dialects.pingpong.commands import DELIMITER, ERROR, EXIT, JOB_COMPLETE, PING, PONG, READY
from dragoman.model.enums import REFUSAL_CODES
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message, write_frame

REFUSALS: Final = [code.encode() for code in REFUSAL_CODES] + [b"BAD_ORDER"]


@final
class PingpongClientEndpoint(endpoint.ClientEndpoint):
    """One client connection."""

    def __init__(self, setup: EndpointSetup) -> None:
        self.zmtp = ZmtpConnection(b"DEALER", b"", setup.message_size_max)
        super().__init__(self.zmtp, beat_s=0.0)
        self.calls: deque[bytes] = deque()

    def receive(self, data: bytes) -> list[tuple[int, bytes, bytes]]:
        outcomes: list[tuple[int, bytes, bytes]] = []
        for frames in self.zmtp.receive(data):
            if len(frames) < 2 or frames[0] or not self.calls:
                continue
            call_id = self.calls.popleft()
            if len(frames) > 2 and frames[1] == ERROR:
                is_refusal = frames[2].partition(b":")[0] in REFUSALS
                outcomes.append((endpoint.REFUSED if is_refusal else endpoint.FAILED, call_id, frames[2]))
            else:
                outcomes.append((endpoint.ANSWERED, call_id, frames[1]))
        self.is_ready = self.zmtp.is_ready
        return outcomes

    def request(self, call_id: bytes, options: CallOptions, body: bytes) -> None:
        """Send an order. The port has one queue, so the queue of the options is not sent."""
        self.calls.append(call_id)
        self.unsent.write(DELIMITER)
        write_frame(self.unsent, body, False)


BROKER_TIMEOUT_S: Final = 1.0
N_TIMEOUTS: Final = 3
PING_INTERVAL_S: Final = 1.0


@final
class PingpongWorkerEndpoint(endpoint.WorkerEndpoint):
    """One worker connection. It has no identity of its own, so the broker sees each connection as a new worker."""

    def __init__(self, setup: EndpointSetup) -> None:
        self.zmtp = ZmtpConnection(b"DEALER", b"", setup.message_size_max)
        self.zmtp.program = setup.program
        super().__init__(self.zmtp)
        self.is_serving: bool = False
        self.is_leaving: bool = False
        self.jobs: int = 0  # count so far
        self.marks: dict[bytes, bytes] = {}  # of the jobs it has, by its own id for them; empty: the job came plain
        self.answers_plain: bool = False  # a plain job was answered plainly: a package is its repetition
        self.has_received: bool = False
        self.received_s: float = 0.0
        self.next_ping_s: float = 0.0

    def serve(self, queues: list[tuple[int, bytes]], slots: int) -> None:
        """Register as a worker. The broker chooses the queue, and a connection has one slot."""
        self.is_serving = True
        self.say(READY)

    def receive(self, data: bytes) -> list[tuple[bytes, float, bytes]]:
        jobs: list[tuple[bytes, float, bytes]] = []
        for frames in self.zmtp.receive(data):
            self.has_received = True
            if len(frames) < 2 or frames[0]:
                continue
            word = frames[1]
            if len(frames) == 2 and word == PONG:
                self.is_ready = True
            elif len(frames) == 2 and word == EXIT:
                self.is_over = True
                self.problem = "the broker sent EXIT"
            elif not self.is_leaving:  # else the broker requeues it when the connection closes
                self.take(frames, jobs)
        return jobs

    def take(self, frames: list[bytes], jobs: list[tuple[bytes, float, bytes]]) -> None:
        mark = frames[2] if len(frames) > 2 else b""
        if mark and self.jobs == 1:
            if self.answers_plain:
                self.say(READY)  # already answered: READY tells the broker that we do not run it again
                return
            for job_id in self.marks:
                if not self.marks[job_id]:
                    self.marks[job_id] = mark
                    return
        self.jobs += 1
        job_id = b"%d" % self.jobs
        self.marks[job_id] = mark
        jobs.append((job_id, 0.0, frames[1]))

    def reply(self, request_id: bytes, value: bytes) -> None:
        mark = self.marks.pop(request_id, b"")
        if mark or value == READY or value == PING:  # plain, these two would be taken for control messages
            self.unsent.write(encode_message([b"", JOB_COMPLETE, mark, b"", value]))
        else:
            self.answers_plain = self.answers_plain or self.jobs == 1
            self.unsent.write(encode_message([b"", value]))

    def beat(self, now_s: float) -> None:
        if self.has_received or self.received_s == 0.0:
            self.has_received = False
            self.received_s = now_s
        elif self.zmtp.is_ready and now_s - self.received_s > N_TIMEOUTS * BROKER_TIMEOUT_S:
            self.is_over = True
            self.problem = f"the broker has been silent for {N_TIMEOUTS * BROKER_TIMEOUT_S} s"
        if self.is_serving and now_s >= self.next_ping_s and (self.marks or not self.is_leaving):
            if self.next_ping_s > 0.0:  # none in the first second: READY was just sent
                self.say(PING)
            self.next_ping_s = now_s + PING_INTERVAL_S

    def goodbye(self) -> None:
        """Stop sending PINGs: pingpong has no goodbye, and the broker requeues later jobs when the connection closes."""
        self.is_leaving = True

    def say(self, word: bytes) -> None:
        self.unsent.write(encode_message([b"", word]))


client: Final = PingpongClientEndpoint
worker: Final = PingpongWorkerEndpoint
