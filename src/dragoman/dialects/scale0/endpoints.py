"""The client side of Scale0: endpoints for clients and workers. No sockets, no clock.

    client   CONNECT ──► CONFIG ──► TASK … TASKREPLY or ERROR with its id
    worker   CONNECT with services ──► CONFIG ──► PING: queued ──► TASK: not queued; PING again while a slot is free … TASKREPLY …

Both negotiate first, and give a broker up:

    CONNECT ──► CONFIG: agreed                    503 ──► NEEDBROKER, once
    NEEDBROKER ──► CHANGEBROKER: go there         503 ──► CONNECT here: no other broker serves us
    agreed: 426 or FORCENEGOTIATE ──► CONNECT     301 ──► CHANGEBROKER follows, or we try the next address
    no PONG for three intervals, or 444 ──► over

One PING grants one task, so a worker is queued at most once however many slots are free. While PONGs arrive slowly, the worker asks for no
more tasks; with all slots in use, or when leaving, its PING has `busy` and is only a heartbeat.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.dialects import endpoint as sdk
from dragoman.dialects.scale0 import commands
from dragoman.dialects.scale0.headers import UNKNOWN_LOAD, Header, read_header, text_of, token_of
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message, write_message

INTERVAL_S: Final = 5.0
MISSES_MAX: Final = 3
SLOW_S: Final = 1.0  # a PONG that takes longer shows that the broker, or this program, is overloaded

UNASKED: Final = 0
CONNECTING: Final = 1
SEEKING: Final = 2  # looking for a broker
AGREED: Final = 3


@final
class NegotiatedSession:
    """How a client or a worker negotiates with a broker, and when it gives it up. It marks `endpoint` when it is ready or over."""

    def __init__(self, endpoint: sdk.Endpoint, zmtp: ZmtpConnection, setup: sdk.EndpointSetup) -> None:
        self.endpoint = endpoint
        self.zmtp = zmtp
        self.state: int = UNASKED
        self.seeks = setup.is_alternate  # this is not the preferred broker: ask which one to use
        self.has_sought: bool = False
        self.services: list[bytes] = []
        self.version: bytes = b""  # token
        self.load: float = UNKNOWN_LOAD  # the broker's, if it reports one
        self.wall_s = setup.wall_s  # the wall clock minus the clock of `beat`; 0: unknown, and no time is sent
        self.now_s: float = 0.0
        self.last_ping_s: float = 0.0
        self.last_pong_s: float = 0.0
        self.pings_owed: int = 0  # PINGs without a PONG so far
        self.oldest_ping_s: float = 0.0
        self.is_moving: bool = False  # 301 has arrived, the new address has not

    def opened(self) -> None:
        """Called after every receive: begin the negotiation when the handshake is done."""
        if self.state == UNASKED and self.zmtp.is_ready:
            self.last_pong_s = self.now_s
            if self.seeks:
                self.seek()
            else:
                self.connect()

    def connect(self) -> None:
        self.state = CONNECTING
        self.send(commands.CONNECT, b'"config_type":"JSON"' + self.introduction())

    def seek(self) -> None:
        self.state = SEEKING
        self.has_sought = True
        self.send(commands.NEEDBROKER, self.introduction()[1:])

    def introduction(self) -> bytes:
        fields = b',"identity":%s' % token_of(self.zmtp.identity)
        if self.services:
            fields += b',"services":[%s]' % b",".join([token_of(name) for name in self.services])
        if self.version:
            fields += b',"config_version":%s' % self.version
        return fields

    def receive_message(self, command: bytes, h: Header) -> None:
        """Handle everything but tasks and their outcomes."""
        if command == commands.CONFIG:
            self.state = AGREED
            self.version = h.version
            self.load = h.load
            self.endpoint.is_ready = True
        elif command == commands.PONG:
            self.last_pong_s = self.now_s
            self.oldest_ping_s = self.now_s
            if self.pings_owed > 0:
                self.pings_owed -= 1
        elif command == commands.CHANGEBROKER:
            self.endpoint.moved_to = h.broker
            self.end(h.reason.decode("utf-8", "replace") or "the broker sent us elsewhere")
        elif command == commands.FORCENEGOTIATE or h.code == commands.WRONG_VERSION:
            if self.state == AGREED:
                self.connect()
        elif h.code == commands.MOVED:
            self.is_moving = True
        elif h.code == commands.NOT_ACCEPTING and self.state == SEEKING:
            self.connect()
        elif h.code == commands.NOT_ACCEPTING and self.state == CONNECTING and not self.has_sought:
            self.seek()
        elif h.code == commands.HOSTILE or h.code == commands.NOT_ACCEPTING or self.state != AGREED:
            self.end(f"{h.code}: {h.reason.decode('utf-8', 'replace')}")

    def end(self, problem: str) -> None:
        self.endpoint.is_over = True
        self.endpoint.problem = problem

    def beat(self, now_s: float) -> None:
        """Called four times a second. The caller sends the PINGs, when `is_ping_due`."""
        self.now_s = now_s
        if self.last_pong_s == 0.0:
            self.last_pong_s = now_s
            self.last_ping_s = now_s
        if self.endpoint.is_over:
            return
        if self.is_moving:
            self.end("the broker is stopping")
        elif self.zmtp.is_ready and now_s - self.last_pong_s > MISSES_MAX * INTERVAL_S:
            self.end("the broker is silent")

    def is_ping_due(self) -> bool:
        return self.state == AGREED and self.now_s - self.last_ping_s >= INTERVAL_S

    def is_slow(self) -> bool:
        """Whether PONGs arrive slowly: then no more tasks are requested."""
        return self.pings_owed > 0 and self.now_s - self.oldest_ping_s > SLOW_S

    def ping(self, more: bytes) -> None:
        """Send a PING; `more` are further members of its header, each with a comma before it."""
        self.last_ping_s = self.now_s
        if self.pings_owed == 0:
            self.oldest_ping_s = self.now_s
        self.pings_owed += 1
        self.send(commands.PING, b'"heartbeat_interval":%g%s%s' % (INTERVAL_S, self.stamp(), more))

    def stamp(self) -> bytes:
        """Time and version, each with a comma before it."""
        fields = b""
        if self.wall_s != 0.0 and self.now_s != 0.0:
            fields = b',"time":%.3f' % (self.wall_s + self.now_s)
        return fields + b',"config_version":%s' % self.version if self.version else fields

    def send(self, command: bytes, members: bytes) -> None:
        self.endpoint.unsent.write(encode_message([command, b"{%s}" % members]))


@final
class Scale0ClientEndpoint(sdk.ClientEndpoint):
    """One client connection."""

    def __init__(self, setup: sdk.EndpointSetup) -> None:
        zmtp = ZmtpConnection(b"DEALER", setup.identity, setup.message_size_max)
        super().__init__(zmtp)
        self.negotiated = NegotiatedSession(self, zmtp, setup)

    def receive(self, data: bytes) -> list[tuple[int, bytes, bytes]]:
        outcomes: list[tuple[int, bytes, bytes]] = []
        negotiated = self.negotiated
        for frames in negotiated.zmtp.receive(data):
            if len(frames) >= 2:
                self.receive_message(frames, outcomes)
        negotiated.opened()
        if negotiated.zmtp.is_ready and not negotiated.seeks:
            self.is_ready = True
        return outcomes

    def receive_message(self, frames: list[bytes], outcomes: list[tuple[int, bytes, bytes]]) -> None:
        command = frames[0]
        h = read_header(frames[1])
        if h.problem:
            return  # a broker never sends an invalid header
        if command == commands.TASKREPLY:
            outcomes.append((sdk.ANSWERED, text_of(h.id_token()), frames[2] if len(frames) > 2 else b""))
        elif command == commands.ERROR and h.id_token():
            is_refusal = (
                h.code == commands.MOVED
                or h.code == commands.NOT_UNDERSTOOD
                or h.reason.partition(b":")[0] in commands.REFUSED_WORDS
            )
            outcomes.append((sdk.REFUSED if is_refusal else sdk.FAILED, text_of(h.id_token()), h.reason))
        else:
            self.negotiated.receive_message(command, h)

    def request(self, call_id: bytes, options: sdk.CallOptions, body: bytes) -> None:
        negotiated = self.negotiated
        header = b'{"id":%s,"service":%s%s}' % (token_of(call_id), token_of(options.queue), negotiated.stamp())
        write_message(self.unsent, [commands.TASK, header, body], False)

    def beat(self, now_s: float) -> None:
        self.negotiated.beat(now_s)
        if self.negotiated.is_ping_due():
            self.negotiated.ping(b"")


@final
class Scale0WorkerEndpoint(sdk.WorkerEndpoint):
    """One worker connection."""

    def __init__(self, setup: sdk.EndpointSetup) -> None:
        zmtp = ZmtpConnection(b"DEALER", setup.identity, setup.message_size_max)
        zmtp.program = setup.program
        super().__init__(zmtp)
        self.negotiated = NegotiatedSession(self, zmtp, setup)
        self.free: int = 0  # free slots
        self.is_in_line: bool = False  # a PING of ours was granted a task that has not arrived yet
        self.is_leaving: bool = False

    def serve(self, queues: list[tuple[int, bytes]], slots: int) -> None:
        """Set the services to offer. Scale0 has no weights."""
        self.negotiated.services = [name for _, name in queues]
        self.free = slots

    def receive(self, data: bytes) -> list[tuple[bytes, float, bytes]]:
        jobs: list[tuple[bytes, float, bytes]] = []
        negotiated = self.negotiated
        for frames in negotiated.zmtp.receive(data):
            if len(frames) < 2:
                continue
            h = read_header(frames[1])
            if h.problem:
                continue  # a broker never sends an invalid header
            if frames[0] == commands.TASK:
                self.free -= 1
                self.is_in_line = False
                jobs.append((h.id_token(), 0.0, frames[2] if len(frames) > 2 else b""))
            else:
                negotiated.receive_message(frames[0], h)
                if negotiated.state != AGREED:
                    self.is_in_line = False  # a PING under another configuration was not accepted
        negotiated.opened()
        self.ask()
        return jobs

    def ask(self) -> None:
        """Ask for a task if a slot is free and the broker is not slow."""
        negotiated = self.negotiated
        if negotiated.state != AGREED or self.is_in_line or self.is_leaving or self.is_over:
            return
        if self.free > 0 and not negotiated.is_slow():
            self.is_in_line = True
            negotiated.ping(b"")

    def ready(self, slots: int) -> None:
        self.free += slots
        self.ask()

    def reply(self, request_id: bytes, value: bytes) -> None:
        header = b'{"id":%s%s}' % (request_id, self.negotiated.stamp())
        write_message(self.unsent, [commands.TASKREPLY, header, value], False)

    def goodbye(self) -> None:
        self.is_leaving = True
        self.is_in_line = False
        if self.negotiated.state == AGREED:
            self.negotiated.ping(b',"busy":true')

    def beat(self, now_s: float) -> None:
        negotiated = self.negotiated
        negotiated.beat(now_s)
        self.ask()
        if negotiated.is_ping_due():
            negotiated.ping(b"" if self.is_in_line else b',"busy":true')


client: Final = Scale0ClientEndpoint
worker: Final = Scale0WorkerEndpoint
