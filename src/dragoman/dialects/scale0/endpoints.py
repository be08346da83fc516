"""The client side of Scale0: endpoints for clients and workers. No sockets, no clock.

    client   CONNECT ──► CONFIG ──► TASK … TASKREPLY or ERROR with its id
    worker   CONNECT with services ──► CONFIG ──► PING: queued ──► TASK: not queued; PING again while a slot is free … TASKREPLY …

One PING grants one task, so a worker is queued at most once however many slots are free. While PONGs arrive slowly, the worker asks for no
more tasks; with all slots in use, or when leaving, its PING has `busy` and is only a heartbeat.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.dialects.endpoint import (
    ANSWERED,
    FAILED,
    REFUSED,
    CallOptions,
    ClientEndpoint,
    EndpointSetup,
    WorkerEndpoint,
)
from dragoman.dialects.scale0.complaints import REFUSED_WORDS
from dragoman.dialects.scale0.headers import read_header, text_of, token_of
from dragoman.dialects.scale0.negotiated_session import AGREED, NegotiatedSession
from dragoman.dialects.scale0.words import ERROR, MOVED, NOT_UNDERSTOOD, TASK, TASKREPLY
from dragoman.wire.zmtp.frames import write_message

ABSENT: Final = b""


@final
class Scale0ClientEndpoint(ClientEndpoint):
    """One client connection. `seeks`: this is not the preferred broker, so ask it which one to use."""

    def __init__(self, identity: bytes, message_size_max: int, seeks: bool = False, wall_s: float = 0.0) -> None:
        super().__init__()
        self.accord = NegotiatedSession(self, identity, message_size_max, seeks, wall_s)

    def opening(self) -> bytes:
        return self.accord.zmtp.greeting()

    def receive(self, data: bytes) -> list[tuple[int, bytes, bytes]]:
        outcomes: list[tuple[int, bytes, bytes]] = []
        accord = self.accord
        for frames in accord.zmtp.receive(data):
            if len(frames) >= 2:
                self.receive_message(frames, outcomes)
        accord.opened()
        if accord.zmtp.is_ready and not accord.seeks:
            self.is_ready = True
        return outcomes

    def receive_message(self, frames: list[bytes], outcomes: list[tuple[int, bytes, bytes]]) -> None:
        command = frames[0]
        h = read_header(frames[1])
        if h.problem:
            return  # a broker never sends an invalid header
        if command == TASKREPLY:
            outcomes.append((ANSWERED, text_of(h.id_token()), frames[2] if len(frames) > 2 else ABSENT))
        elif command == ERROR and h.id_token():
            is_refusal = h.code == MOVED or h.code == NOT_UNDERSTOOD or h.reason.partition(b":")[0] in REFUSED_WORDS
            outcomes.append((REFUSED if is_refusal else FAILED, text_of(h.id_token()), h.reason))
        else:
            self.accord.receive_message(command, h)

    def request(self, call_id: bytes, options: CallOptions, body: bytes) -> None:
        accord = self.accord
        header = b'{"id":%s,"service":%s%s}' % (token_of(call_id), token_of(options.queue), accord.stamp())
        write_message(accord.out, [TASK, header, body], False)

    def beat(self, now_s: float) -> None:
        self.accord.beat(now_s)
        if self.accord.is_ping_due():
            self.accord.ping(b"")

    def data_to_send(self) -> bytes:
        return self.accord.data_to_send()


@final
class Scale0WorkerEndpoint(WorkerEndpoint):
    """One worker connection. `seeks`: this is not the preferred broker, so ask it which one to use."""

    def __init__(self, identity: bytes, message_size_max: int, seeks: bool = False, wall_s: float = 0.0) -> None:
        super().__init__()
        self.accord = NegotiatedSession(self, identity, message_size_max, seeks, wall_s)
        self.free: int = 0  # free slots
        self.is_in_line: bool = False  # a PING of ours was granted a task that has not arrived yet
        self.is_leaving: bool = False

    def opening(self) -> bytes:
        return self.accord.zmtp.greeting()

    def serve(self, queues: list[tuple[int, bytes]], slots: int) -> None:
        """Set the services to offer. Scale0 has no weights."""
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
                continue  # a broker never sends an invalid header
            if frames[0] == TASK:
                self.free -= 1
                self.is_in_line = False
                jobs.append((h.id_token(), 0.0, frames[2] if len(frames) > 2 else b""))
            else:
                accord.receive_message(frames[0], h)
                if accord.state != AGREED:
                    self.is_in_line = False  # a PING under another configuration was not accepted
        accord.opened()
        self.ask()
        return jobs

    def ask(self) -> None:
        """Ask for a task if a slot is free and the broker is not slow."""
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

    def data_to_send(self) -> bytes:
        return self.accord.data_to_send()


def client(setup: EndpointSetup) -> ClientEndpoint:
    return Scale0ClientEndpoint(setup.identity, setup.message_size_max, setup.is_alternate, setup.wall_s)


def worker(setup: EndpointSetup) -> WorkerEndpoint:
    made = Scale0WorkerEndpoint(setup.identity, setup.message_size_max, setup.is_alternate, setup.wall_s)
    made.accord.zmtp.program = setup.program
    return made
