"""One connection of a replayed peer: ZMTP with its recorded socket type, or RISP for RQ. The constructor blocks until it is connected."""

from __future__ import annotations

import socket
import time
import uuid
from collections import deque
from typing import Final

from dragoman.errors import PeerError
from dragoman.runtime.admin.risp_text import Item
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message
from dragoman_lab.recordings.errors import ReplayFailed
from dragoman_lab.recordings.likeness import is_life_sign, operations_of

CONNECT_S: Final = 5.0
CHUNK_SIZE: Final = 1 << 18


class Line:
    """What ZMTP and RISP connections share: a socket, and the messages received and not yet compared."""

    def __init__(self, place: tuple[str, int]) -> None:
        try:
            self.socket = socket.create_connection(place, CONNECT_S)
        except OSError as error:
            raise ReplayFailed(f"no connection to {place[0]}:{place[1]}: {error.strerror or error}") from error
        self.is_ended = False  # by the broker

    def fileno(self) -> int:
        return self.socket.fileno()

    def close(self) -> None:
        self.socket.close()

    def hear(self) -> None:
        """Read what has arrived, after `select` reported the socket as readable."""
        try:
            data = self.socket.recv(CHUNK_SIZE)
        except OSError:
            data = b""
        if data:
            self.take(data)
        else:
            self.is_ended = True

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError:
            self.is_ended = True

    def take(self, data: bytes) -> None:
        raise NotImplementedError


class ZmtpLine(Line):
    def __init__(self, place: tuple[str, int], socket_type: str) -> None:
        super().__init__(place)
        self.zmtp = ZmtpConnection(socket_type.encode(), False, str(uuid.uuid4()).encode())
        self.heard: deque[list[bytes]] = deque()
        self.send(self.zmtp.greeting())
        end_s = time.monotonic() + CONNECT_S
        while not self.zmtp.is_ready and not self.is_ended:
            self.socket.settimeout(max(end_s - time.monotonic(), 0.001))
            self.hear()
        if not self.zmtp.is_ready:
            self.close()
            raise ReplayFailed(f"{place[0]}:{place[1]} did not finish the handshake with a {socket_type}")
        self.socket.settimeout(CONNECT_S)

    def take(self, data: bytes) -> None:
        try:
            messages = self.zmtp.receive(data)
        except PeerError:
            self.is_ended = True
            return
        self.heard.extend(frames for frames in messages if not is_life_sign(frames))
        out = self.zmtp.take_outgoing()
        if out:
            self.send(out)

    def say(self, frames: list[bytes]) -> None:
        if self.zmtp.socket_type in (b"SUB", b"XSUB") and len(frames) == 1 and frames[0][:1] in (b"\x00", b"\x01"):
            is_new = frames[0][0] == 1
            self.send(self.zmtp.subscribe_bytes(frames[0][1:]) if is_new else self.zmtp.cancel_bytes(frames[0][1:]))
        else:
            self.send(encode_message(frames, self.zmtp.is_v1))


class RispLine(Line):
    def __init__(self, place: tuple[str, int]) -> None:
        super().__init__(place)
        self.heard: deque[list[Item]] = deque()
        self._rest = b""

    def take(self, data: bytes) -> None:
        operations, self._rest = operations_of(self._rest + data)
        self.heard.extend(operations)
