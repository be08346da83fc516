"""The worker's end of ebus: answers to bytes, the broker's bytes to jobs. No sockets, no clock.

READY, PING ──► HEARTBEAT: taken on ──► REQ … REPLY … ──► DISCONNECT: we leave
the broker's DISCONNECT, or five PINGs without a sign from it: over, connect anew under a new identity
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter

from dragoman.dialects.ebus.client_side import HEARTBEAT_S, MISSES_MAX
from dragoman.dialects.ebus.pulse import DEAD, PING_DUE, Pulse
from dragoman.dialects.ebus.words import (
    ANSWER_OPENING,
    CANCEL,
    CLIENT,
    DISCONNECT,
    HEARTBEAT,
    NULL,
    PING,
    READY,
    REJECT,
    REQ,
    REQUEST,
    WORKER,
)
from dragoman.dialects.sides import WorkerSide
from dragoman.limits import FRAMES_MAX
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message, write_frame

SERVICES_MAX: Final = FRAMES_MAX - 4


@final
class EbusWorkerSide(WorkerSide):
    """One worker connection. What is to be sent gathers until `take_out`."""

    def __init__(self, identity: bytes, message_size_max: int) -> None:
        super().__init__()
        self.zmtp = ZmtpConnection(b"DEALER", False, identity, message_size_max)
        self.pulse = Pulse(HEARTBEAT_S, MISSES_MAX)
        self.service: bytes = b""
        self.cancelled: list[bytes] = []
        self.beat_s: float = 0.0
        self.out = BytesWriter()

    def opening(self) -> bytes:
        return self.zmtp.greeting()

    def serve(self, queues: list[tuple[int, bytes]], slots: int) -> None:
        """The number of slots and the services behind the first are an addition of ours to READY. Weights are not said."""
        names = [name for _, name in queues]
        if not 0 < len(names) <= SERVICES_MAX:
            raise ValueError(f"an ebus worker serves 1 to {SERVICES_MAX} services, not {len(names)}")
        self.service = names[0]
        self.tell([READY, NULL, names[0], b"%d" % max(slots, 1), *names[1:]])
        self.tell([PING])  # READY has no answer; to this there is one, if we were taken on

    def receive(self, data: bytes) -> list[tuple[bytes, float, bytes]]:
        """`stales ms` is no bound of the job's: the broker sends CANCEL when it has passed."""
        jobs: list[tuple[bytes, float, bytes]] = []
        for frames in self.zmtp.receive(data):
            count = len(frames)
            if count < 2 or frames[0] != CLIENT:
                continue
            self.pulse.has_heard = True
            word = frames[1]
            if word == REQ or word == REQUEST:
                if count > 2:
                    jobs.append((frames[2], 0.0, frames[3] if count > 3 else NULL))
            elif word == HEARTBEAT:
                self.is_ready = True
            elif word == CANCEL:
                self.cancelled.append(frames[2] if count > 2 else b"")
            elif word == PING:
                self.tell([HEARTBEAT])
            elif word == DISCONNECT:
                self.end(frames[2].decode("utf-8", "replace") if count > 2 else "the broker sent us away")
        return jobs

    def take_cancelled(self) -> list[bytes]:
        cancelled = self.cancelled
        self.cancelled = []
        return cancelled

    def ready(self, slots: int) -> None:
        """An answer says it already."""

    def reply(self, request_id: bytes, value: bytes) -> None:
        out = self.out
        out.write(ANSWER_OPENING)
        write_frame(out, request_id, True)
        write_frame(out, value, False)

    def reject(self, request_id: bytes, value: bytes) -> None:
        """Refuse a job for good: nobody else is asked."""
        self.tell([REJECT, request_id, value])

    def goodbye(self) -> None:
        self.tell([DISCONNECT, self.service, b"leaving"])

    def beat(self, now_s: float) -> None:
        if not self.zmtp.is_ready or self.is_over:
            return
        found = self.pulse.beat(now_s)
        if found == PING_DUE:
            self.tell([PING])
        elif found == DEAD:
            self.end("the broker is silent")
            return
        if now_s - self.beat_s >= HEARTBEAT_S and self.is_ready:
            self.beat_s = now_s
            self.tell([HEARTBEAT])

    def end(self, problem: str) -> None:
        self.is_over = True
        self.problem = problem

    def take_out(self) -> bytes:
        data = self.zmtp.take_outgoing()
        if self.zmtp.is_ready and len(self.out) > 0:
            data += self.out.getvalue()
            self.out = BytesWriter()
        return data

    def tell(self, frames: list[bytes]) -> None:
        self.out.write(encode_message([WORKER, *frames]))
