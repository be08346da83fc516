"""One blocking connection to a broker's eMQP port: frames out, frames in, with any body and any header."""

from __future__ import annotations

import socket
import time
import uuid
from collections.abc import Iterator
from types import TracebackType
from typing import Final

from dragoman.client.address import Address
from dragoman.client.connection import new_message_ids
from dragoman.dialects.emqp.commands import ACK, PUBLISH, REPLY, REQUEST, VERSION
from dragoman.dialects.endpoint import ANSWERED, KEPT
from dragoman.errors import BrokerUnreachable, NoAnswer
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message

CONNECT_S: Final = 5.0
CHUNK_SIZE: Final = 1 << 18


class RawEmqp:
    """A ZMTP connection as one socket type; messages are lists of frames."""

    def __init__(self, address: Address, role: str, socket_type: bytes = b"DEALER") -> None:
        self._address = address
        # Always with an identity: libzmq makes up a binary one for who says none, and EventMQ's router ends on that.
        self._zmtp = ZmtpConnection(socket_type, str(uuid.uuid4()).encode())
        self._heard: list[list[bytes]] = []
        self._socket = self._connect(role)
        self.ids = new_message_ids()
        try:
            self._shake_hands()
        except BaseException:
            self._socket.close()
            raise

    def _shake_hands(self) -> None:
        self._socket.sendall(self._zmtp.greeting())
        deadline = time.monotonic() + CONNECT_S
        while not self._zmtp.is_ready:
            if not self._receive(deadline):
                raise BrokerUnreachable(self._address.text, CONNECT_S, "it did not finish the handshake")

    def _connect(self, role: str) -> socket.socket:
        reason = "no address"
        try:
            for place in self._address.host_ports(role):
                try:
                    return socket.create_connection(place, CONNECT_S)
                except OSError as error:
                    reason = error.strerror or str(error)
        except ConnectionError as error:
            reason = str(error)
        raise BrokerUnreachable(self._address.text, CONNECT_S, reason)

    def __enter__(self) -> RawEmqp:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """What was sent is delivered first: shutting down our side lets the broker read it all."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the broker closed first
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.settimeout(None)
        self._socket.sendall(data)

    def say(self, *frames: bytes) -> None:
        self.send(encode_message([b"", VERSION, *frames]))

    def request(self, queue: str, headers: str, body: bytes) -> bytes:
        """Send a REQUEST; its id."""
        message_id = self.ids.take()
        self.say(REQUEST, message_id, queue.encode(), headers.encode(), body)
        return message_id

    def publish(self, topic: str, body: bytes) -> None:
        self.say(PUBLISH, self.ids.take(), topic.encode(), body)

    def subscribe(self, prefix: str) -> None:
        self.send(self._zmtp.subscribe_bytes(prefix.encode()))

    def answer(self, message_id: bytes, timeout_s: float) -> tuple[int, bytes]:
        """(KEPT, b"") or (ANSWERED, value) to a request; a hand-over is passed over."""
        deadline = time.monotonic() + timeout_s if timeout_s else None
        for frames in self.messages(deadline):
            if frames[-1] != message_id or len(frames) < 5:
                continue
            if frames[2] == ACK:
                return KEPT, b""
            if frames[2] == REPLY and len(frames) > 5:
                return ANSWERED, frames[4]
        raise NoAnswer(message_id.decode(), timeout_s)

    def messages(self, deadline: float | None = None) -> Iterator[list[bytes]]:
        """Messages as they come, until the deadline."""
        while True:
            while self._heard:
                yield self._heard.pop(0)
            if not self._receive(deadline):
                return

    def _receive(self, deadline: float | None) -> bool:
        """Take what comes next; False when the time is up."""
        remaining_s = None if deadline is None else deadline - time.monotonic()
        if remaining_s is not None and remaining_s <= 0:
            return False
        self._socket.settimeout(remaining_s)
        try:
            data = self._socket.recv(CHUNK_SIZE)
        except TimeoutError:
            return False
        except OSError as error:
            raise BrokerUnreachable(self._address.text, 0, error.strerror or str(error)) from error
        if not data:
            raise BrokerUnreachable(self._address.text, 0, "the broker closed the connection")
        self._heard += self._zmtp.receive(data)
        out = self._zmtp.take_outgoing()
        if out:
            self._socket.sendall(out)
        return True
