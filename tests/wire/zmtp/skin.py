"""The thinnest I/O skin around a `ZmtpConnection`: one blocking TCP socket whose timeout is the deadline of every wait."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import zmq

from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message

DEADLINE_S = 60.0
READ_SIZE = 256 * 1024


class Skin:
    """Our end of one connection."""

    def __init__(self, sock: socket.socket, connection: ZmtpConnection, read_size: int = READ_SIZE) -> None:
        sock.settimeout(DEADLINE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self.connection = connection
        self.read_size = read_size
        self.messages: list[list[bytes]] = []
        self.bytes_read = 0
        self.send_bytes(connection.greeting())

    def send_bytes(self, data: bytes) -> None:
        self.sock.sendall(data)

    def send(self, frames: list[bytes]) -> None:
        self.send_bytes(encode_message(frames, self.connection.is_v1))

    def pump(self) -> None:
        """Read once, answer what must be answered; a fault is raised after our last words have left."""
        data = self.sock.recv(self.read_size)
        if not data:
            raise EOFError
        self.bytes_read += len(data)
        try:
            self.messages += self.connection.receive(data)
        finally:
            outgoing = self.connection.take_outgoing()
            if outgoing:
                self.send_bytes(outgoing)

    def handshake(self) -> Skin:
        while not self.connection.is_ready:
            self.pump()
        return self

    def receive(self) -> list[bytes]:
        while not self.messages:
            self.pump()
        return self.messages.pop(0)

    def close(self) -> None:
        self.sock.close()


class OneByteSkin(Skin):
    """A connection whose every byte travels alone, both ways."""

    def __init__(self, sock: socket.socket, connection: ZmtpConnection) -> None:
        super().__init__(sock, connection, read_size=1)

    def send_bytes(self, data: bytes) -> None:
        for octet in data:
            self.sock.sendall(bytes([octet]))


class Stage:
    """One listening socket of ours, and a libzmq context on the other side."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(DEADLINE_S)
        self.port: int = self.listener.getsockname()[1]
        self.context = zmq.Context()
        self.skins: list[Skin] = []
        self.judges: list[zmq.Socket[bytes]] = []

    def judge(self, socket_type: int, **options: bytes | int) -> zmq.Socket[bytes]:
        """A socket of libzmq, not yet connected or bound."""
        judge: zmq.Socket[bytes] = self.context.socket(socket_type)
        self.judges.append(judge)
        judge.setsockopt(zmq.LINGER, 0)
        judge.setsockopt(zmq.RCVTIMEO, int(DEADLINE_S * 1000))
        judge.setsockopt(zmq.SNDTIMEO, int(DEADLINE_S * 1000))
        for name, value in options.items():
            judge.setsockopt(getattr(zmq, name), value)
        return judge

    def connected(self, socket_type: int, **options: bytes | int) -> zmq.Socket[bytes]:
        judge = self.judge(socket_type, **options)
        judge.connect(f"tcp://127.0.0.1:{self.port}")
        return judge

    def accept(self, connection: ZmtpConnection, kind: type[Skin] = Skin) -> Skin:
        skin = kind(self.listener.accept()[0], connection)
        self.skins.append(skin)
        return skin

    def connect(self, judge: zmq.Socket[bytes], connection: ZmtpConnection, kind: type[Skin] = Skin) -> Skin:
        """Connect our side to a judge that binds."""
        port = judge.bind_to_random_port("tcp://127.0.0.1")
        return self.connect_again(port, connection, kind)

    def connect_again(self, port: int, connection: ZmtpConnection, kind: type[Skin] = Skin) -> Skin:
        skin = kind(socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S), connection)
        self.skins.append(skin)
        return skin.handshake()

    def raw(self) -> socket.socket:
        """A peer of plain bytes."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE_S)

    def close(self) -> None:
        for skin in self.skins:
            skin.close()
        self.listener.close()
        for judge in self.judges:
            judge.close(linger=0)
        self.context.term()


@contextmanager
def a_stage() -> Iterator[Stage]:
    stage = Stage()
    try:
        yield stage
    finally:
        stage.close()
