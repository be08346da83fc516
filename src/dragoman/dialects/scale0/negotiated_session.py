"""The common part of Scale0's endpoints: how a client or a worker negotiates with a broker, and when it gives it up.

CONNECT ──► CONFIG: agreed                    503 ──► NEEDBROKER, once
NEEDBROKER ──► CHANGEBROKER: go there         503 ──► CONNECT here: no other broker serves us
agreed: 426 or FORCENEGOTIATE ──► CONNECT     301 ──► CHANGEBROKER follows, or we try the next address
no PONG for three intervals, or 444 ──► over
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter

from dragoman.dialects.endpoint import Endpoint
from dragoman.dialects.scale0 import words
from dragoman.dialects.scale0.headers import UNKNOWN_LOAD, Header, token_of
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message

INTERVAL_S: Final = 5.0
MISSES_MAX: Final = 3
SLOW_S: Final = 1.0  # a PONG that takes longer shows that the broker, or this program, is overloaded

UNASKED: Final = 0
CONNECTING: Final = 1
SEEKING: Final = 2  # looking for a broker
AGREED: Final = 3


@final
class NegotiatedSession:
    """The negotiation of one connection. It marks `endpoint` when it is ready or over; output is buffered in `out`."""

    def __init__(self, endpoint: Endpoint, identity: bytes, message_size_max: int, seeks: bool, wall_s: float) -> None:
        self.endpoint = endpoint
        self.zmtp = ZmtpConnection(b"DEALER", identity, message_size_max)
        self.out = BytesWriter()
        self.state: int = UNASKED
        self.seeks = seeks  # this is not the preferred broker: ask which one to use
        self.has_sought: bool = False
        self.services: list[bytes] = []
        self.version: bytes = b""  # token
        self.load: float = UNKNOWN_LOAD  # the broker's, if it reports one
        self.wall_s = wall_s  # the wall clock minus the clock of `beat`; 0: unknown, and no time is sent
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
        self.tell(words.CONNECT, b'"config_type":"JSON"' + self.who())

    def seek(self) -> None:
        self.state = SEEKING
        self.has_sought = True
        self.tell(words.NEEDBROKER, self.who()[1:])

    def who(self) -> bytes:
        fields = b',"identity":%s' % token_of(self.zmtp.identity)
        if self.services:
            fields += b',"services":[%s]' % b",".join([token_of(name) for name in self.services])
        if self.version:
            fields += b',"config_version":%s' % self.version
        return fields

    def receive_message(self, command: bytes, h: Header) -> None:
        """Handle everything but tasks and their outcomes."""
        if command == words.CONFIG:
            self.state = AGREED
            self.version = h.version
            self.load = h.load
            self.endpoint.is_ready = True
        elif command == words.PONG:
            self.last_pong_s = self.now_s
            self.oldest_ping_s = self.now_s
            if self.pings_owed > 0:
                self.pings_owed -= 1
        elif command == words.CHANGEBROKER:
            self.endpoint.moved_to = h.broker
            self.end(h.reason.decode("utf-8", "replace") or "the broker sent us elsewhere")
        elif command == words.FORCENEGOTIATE or h.code == words.WRONG_VERSION:
            self.renegotiate()
        elif h.code == words.MOVED:
            self.is_moving = True
        elif h.code == words.NOT_ACCEPTING and self.state == SEEKING:
            self.connect()
        elif h.code == words.NOT_ACCEPTING and self.state == CONNECTING and not self.has_sought:
            self.seek()
        elif h.code == words.HOSTILE or h.code == words.NOT_ACCEPTING or self.state != AGREED:
            self.end(f"{h.code}: {h.reason.decode('utf-8', 'replace')}")

    def renegotiate(self) -> None:
        if self.state == AGREED:
            self.connect()

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
        self.tell(words.PING, b'"heartbeat_interval":%g%s%s' % (INTERVAL_S, self.stamp(), more))

    def stamp(self) -> bytes:
        """Time and version, each with a comma before it."""
        fields = b""
        if self.wall_s != 0.0 and self.now_s != 0.0:
            fields = b',"time":%.3f' % (self.wall_s + self.now_s)
        return fields + b',"config_version":%s' % self.version if self.version else fields

    def tell(self, command: bytes, members: bytes) -> None:
        self.out.write(encode_message([command, b"{%s}" % members]))

    def data_to_send(self) -> bytes:
        data = self.zmtp.take_outgoing()
        if self.zmtp.is_ready and len(self.out) > 0:
            data += self.out.getvalue()
            self.out = BytesWriter()
        return data
