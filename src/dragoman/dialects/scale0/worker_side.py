"""The worker's end of Scale0: answers to bytes, the broker's bytes to jobs. No sockets, no clock.

    CONNECT with services ──► CONFIG ──► PING: in the line ──► TASK: out of it; PING again while a slot is free … TASKREPLY …

One PING buys one task, so there is never more than one in the line however many slots are free. While PONGs come back slowly nothing
more is asked for; with all slots taken, or leaving, PING says `busy` and only shows that we live.
"""

from __future__ import annotations

from typing import final

from dragoman.dialects.scale0.accord import AGREED, Accord
from dragoman.dialects.scale0.headers import read_header
from dragoman.dialects.scale0.words import TASK, TASKREPLY
from dragoman.dialects.sides import WorkerSide
from dragoman.wire.zmtp.frames import write_message


@final
class Scale0WorkerSide(WorkerSide):
    """One worker connection. `seeks`: this is not the broker we wanted, so ask it which to use."""

    def __init__(self, identity: bytes, message_size_max: int, seeks: bool = False, wall_s: float = 0.0) -> None:
        super().__init__()
        self.accord = Accord(self, identity, message_size_max, seeks, wall_s)
        self.free: int = 0  # slots
        self.is_in_line: bool = False  # a PING of ours has bought a task that has not come yet
        self.is_leaving: bool = False

    def opening(self) -> bytes:
        return self.accord.zmtp.greeting()

    def serve(self, queues: list[tuple[int, bytes]], slots: int) -> None:
        """Scale0 knows no weights."""
        self.accord.services = [name for _, name in queues]
        self.free = slots

    def receive(self, data: bytes) -> list[tuple[bytes, float, bytes]]:
        jobs: list[tuple[bytes, float, bytes]] = []
        accord = self.accord
        for frames in accord.zmtp.receive(data):
            if len(frames) < 2:
                continue
            h = read_header(frames[1])
            if h.problem:
                continue  # no broker says so
            if frames[0] == TASK:
                self.free -= 1
                self.is_in_line = False
                jobs.append((h.id_token(), 0.0, frames[2] if len(frames) > 2 else b""))
            else:
                accord.hear(frames[0], h)
                if accord.state != AGREED:
                    self.is_in_line = False  # what we asked for under other terms was not taken
        accord.opened()
        self.ask()
        return jobs

    def ask(self) -> None:
        """Enter the line if there is room here, and the broker is not slow."""
        accord = self.accord
        if accord.state != AGREED or self.is_in_line or self.is_leaving or self.is_over:
            return
        if self.free > 0 and not accord.is_slow():
            self.is_in_line = True
            accord.ping(b"")

    def ready(self, slots: int) -> None:
        self.free += slots
        self.ask()

    def reply(self, request_id: bytes, value: bytes) -> None:
        header = b'{"id":%s%s}' % (request_id, self.accord.stamp())
        write_message(self.accord.out, [TASKREPLY, header, value], False)

    def goodbye(self) -> None:
        self.is_leaving = True
        self.is_in_line = False
        if self.accord.state == AGREED:
            self.accord.ping(b',"busy":true')

    def beat(self, now_s: float) -> None:
        accord = self.accord
        accord.beat(now_s)
        self.ask()
        if accord.is_ping_due():
            accord.ping(b"" if self.is_in_line else b',"busy":true')

    def take_out(self) -> bytes:
        return self.accord.take_out()
