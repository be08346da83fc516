"""What the far ends of Scale0 share: how a client or a worker comes to terms with a broker, and when it gives it up.

CONNECT ──► CONFIG: agreed                    503 ──► NEEDBROKER, once
NEEDBROKER ──► CHANGEBROKER: go there         503 ──► CONNECT here: nobody else serves us
agreed: 426 or FORCENEGOTIATE ──► CONNECT     301 ──► CHANGEBROKER follows, or we look elsewhere ourselves
no PONG for three intervals, or 444 ──► over
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter

from dragoman.dialects.scale0.headers import UNKNOWN_LOAD, Header, token_of
from dragoman.dialects.scale0.words import (
    CHANGEBROKER,
    CONFIG,
    CONNECT,
    FORCENEGOTIATE,
    HOSTILE,
    MOVED,
    NEEDBROKER,
    NOT_ACCEPTING,
    PING,
    PONG,
    WRONG_VERSION,
)
from dragoman.dialects.sides import Side
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message

INTERVAL_S: Final = 5.0
MISSES_MAX: Final = 3
SLOW_S: Final = 1.0  # a PONG that takes longer: the broker, or we, have too much to do

UNASKED: Final = 0
CONNECTING: Final = 1
SEEKING: Final = 2  # a broker
AGREED: Final = 3


@final
class Accord:
    """One connection's terms. `side` is told when it is ready or over; what is to be sent gathers in `out`."""

    def __init__(self, side: Side, identity: bytes, message_size_max: int, seeks: bool, wall_s: float) -> None:
        self.side = side
        self.zmtp = ZmtpConnection(b"DEALER", False, identity, message_size_max)
        self.out = BytesWriter()
        self.state: int = UNASKED
        self.seeks = seeks  # it was not to be this broker: ask first which
        self.has_sought: bool = False
        self.services: list[bytes] = []
        self.version: bytes = b""  # token
        self.load: float = UNKNOWN_LOAD  # the broker's, where it tells
        self.wall_s = wall_s  # the wall clock less the clock of `beat`; 0: unknown, and no time is told
        self.now_s: float = 0.0
        self.last_ping_s: float = 0.0
        self.last_pong_s: float = 0.0
        self.pings_owed: int = 0  # PINGs that have had no PONG yet
        self.oldest_ping_s: float = 0.0
        self.is_moving: bool = False  # 301 came, where to has not

    def opened(self) -> None:
        """After every receive: when the handshake is done, begin."""
        if self.state == UNASKED and self.zmtp.is_ready:
            self.last_pong_s = self.now_s
            if self.seeks:
                self.seek()
            else:
                self.connect()

    def connect(self) -> None:
        self.state = CONNECTING
        self.tell(CONNECT, b'"config_type":"JSON"' + self.who())

    def seek(self) -> None:
        self.state = SEEKING
        self.has_sought = True
        self.tell(NEEDBROKER, self.who()[1:])

    def who(self) -> bytes:
        told = b',"identity":%s' % token_of(self.zmtp.identity)
        if self.services:
            told += b',"services":[%s]' % b",".join([token_of(name) for name in self.services])
        if self.version:
            told += b',"config_version":%s' % self.version
        return told

    def hear(self, command: bytes, h: Header) -> None:
        """Everything but tasks and their ends."""
        if command == CONFIG:
            self.state = AGREED
            self.version = h.version
            self.load = h.load
            self.side.is_ready = True
        elif command == PONG:
            self.last_pong_s = self.now_s
            self.oldest_ping_s = self.now_s
            if self.pings_owed > 0:
                self.pings_owed -= 1
        elif command == CHANGEBROKER:
            self.side.moved_to = h.broker
            self.end(h.reason.decode("utf-8", "replace") or "the broker sent us elsewhere")
        elif command == FORCENEGOTIATE or h.code == WRONG_VERSION:
            self.renegotiate()
        elif h.code == MOVED:
            self.is_moving = True
        elif h.code == NOT_ACCEPTING and self.state == SEEKING:
            self.connect()
        elif h.code == NOT_ACCEPTING and self.state == CONNECTING and not self.has_sought:
            self.seek()
        elif h.code == HOSTILE or h.code == NOT_ACCEPTING or self.state != AGREED:
            self.end(f"{h.code}: {h.reason.decode('utf-8', 'replace')}")

    def renegotiate(self) -> None:
        if self.state == AGREED:
            self.connect()

    def end(self, problem: str) -> None:
        self.side.is_over = True
        self.side.problem = problem

    def beat(self, now_s: float) -> None:
        """Four times a second. True signs of life are the caller's to make: when `is_ping_due`."""
        self.now_s = now_s
        if self.last_pong_s == 0.0:
            self.last_pong_s = now_s
            self.last_ping_s = now_s
        if self.side.is_over:
            return
        if self.is_moving:
            self.end("the broker is stopping")
        elif self.zmtp.is_ready and now_s - self.last_pong_s > MISSES_MAX * INTERVAL_S:
            self.end("the broker is silent")

    def is_ping_due(self) -> bool:
        return self.state == AGREED and self.now_s - self.last_ping_s >= INTERVAL_S

    def is_slow(self) -> bool:
        """Whether PONGs come back slowly: then no more tasks are asked for."""
        return self.pings_owed > 0 and self.now_s - self.oldest_ping_s > SLOW_S

    def ping(self, more: bytes) -> None:
        """A PING; `more` are further members of its header, each with a comma before it."""
        self.last_ping_s = self.now_s
        if self.pings_owed == 0:
            self.oldest_ping_s = self.now_s
        self.pings_owed += 1
        self.tell(PING, b'"heartbeat_interval":%g%s%s' % (INTERVAL_S, self.stamp(), more))

    def stamp(self) -> bytes:
        """Time and version, each with a comma before it."""
        told = b""
        if self.wall_s != 0.0 and self.now_s != 0.0:
            told = b',"time":%.3f' % (self.wall_s + self.now_s)
        return told + b',"config_version":%s' % self.version if self.version else told

    def tell(self, command: bytes, members: bytes) -> None:
        self.out.write(encode_message([command, b"{%s}" % members]))

    def take_out(self) -> bytes:
        data = self.zmtp.take_outgoing()
        if self.zmtp.is_ready and len(self.out) > 0:
            data += self.out.getvalue()
            self.out = BytesWriter()
        return data
