"""Peers of every age as bytes, and the cuts a network may make in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dragoman.errors import PeerError
from dragoman.limits import MESSAGE_SIZE_MAX
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_command, encode_message
from dragoman.wire.zmtp.greeting import TYPES

SIGNATURE = b"\xff\0\0\0\0\0\0\0\x01\x7f"

Message = list[bytes]


def greeting_v3(minor: int = 1, mechanism: bytes = b"NULL", major: int = 3) -> bytes:
    return SIGNATURE + bytes([major, minor]) + mechanism.ljust(20, b"\0") + bytes(32)


def greeting_v2(socket_type: bytes) -> bytes:
    return SIGNATURE + b"\x01" + bytes([TYPES.index(socket_type)])


def metadata(**properties: bytes) -> bytes:
    out = b""
    for key, value in properties.items():
        name = key.replace("_", "-").encode()
        out += bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value
    return out


def command(name: bytes, data: bytes = b"") -> bytes:
    return encode_command(bytes([len(name)]) + name + data)


def ready(socket_type: bytes, identity: bytes = b"") -> bytes:
    return command(b"READY", metadata(Socket_Type=socket_type, Identity=identity))


def opening(version: int, socket_type: bytes, identity: bytes = b"") -> bytes:
    """All a peer of that version says before its first message."""
    if version >= 30:
        return greeting_v3(minor=version - 30) + ready(socket_type, identity)
    if version == 2:
        return greeting_v2(socket_type) + encode_message([identity])
    return encode_message([identity], is_v1=True)


def opened(version: int, ours: bytes, theirs: bytes, message_size_max: int = MESSAGE_SIZE_MAX) -> ZmtpConnection:
    """A connection of ours whose peer has finished its opening."""
    connection = ZmtpConnection(ours, message_size_max=message_size_max)
    assert connection.receive(opening(version, theirs)) == []
    assert connection.is_ready
    connection.take_outgoing()
    return connection


def hear(connection: ZmtpConnection, parts: Iterable[bytes]) -> tuple[list[Message], bytes, PeerError | None]:
    """All messages, all bytes to send and the fault that these parts bring about."""
    messages: list[Message] = []
    outgoing = b""
    fault: PeerError | None = None
    for part in parts:
        try:
            messages += connection.receive(part)
        except PeerError as error:
            fault = error
        outgoing += connection.take_outgoing()
        if fault is None:
            fault = connection.fault
        if fault is not None:
            break
    return messages, outgoing, fault


def cuts(stream: bytes) -> Iterator[list[bytes]]:
    """The stream whole, byte by byte, and in two at every point."""
    yield [stream]
    yield [stream[at : at + 1] for at in range(len(stream))]
    for at in range(1, len(stream)):
        yield [stream[:at], stream[at:]]
