"""Faults of peers: each costs its peer the connection, and nobody else anything."""

from __future__ import annotations

from typing import Final

from dragoman.errors.kinds import PeerError

HTTP_REFUSAL: Final = b"HTTP is not spoken on this port.\n"


class HttpNotSpoken(PeerError):
    """The first bytes are an HTTP request: a browser, a health check, or a web page that means harm."""

    code = "HTTP_NOT_SPOKEN"
    answer = (
        b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
        % (len(HTTP_REFUSAL), HTTP_REFUSAL)
    )

    def __init__(self) -> None:
        super().__init__("an HTTP request; this port speaks another protocol")


class TlsNotSpoken(PeerError):
    """The first bytes are a TLS hello."""

    code = "TLS_NOT_SPOKEN"

    def __init__(self) -> None:
        super().__init__("a TLS hello; this port speaks another protocol, in plain")


class LegacyGreetingOff(PeerError):
    """A ZMTP 1.0 peer (libzmq 2.x) reached a listener that takes 2.0 and newer only."""

    code = "LEGACY_GREETING_OFF"

    def __init__(self) -> None:
        super().__init__("a greeting of ZMTP 1.0, which is off on this listener")


class BadGreeting(PeerError):
    """A ZMTP greeting holds what no version of the protocol allows."""

    code = "BAD_GREETING"

    def __init__(self, reason: str) -> None:
        super().__init__(f"bad greeting: {reason}")
        self.reason = reason


class MechanismMismatch(PeerError):
    """The peer's greeting names another security mechanism than this listener's."""

    code = "MECHANISM_MISMATCH"

    def __init__(self, ours: bytes, theirs: bytes) -> None:
        super().__init__(f"mechanism {ours!r} is spoken here, the peer wants {theirs!r}")
        self.ours, self.theirs = ours, theirs


class HandshakeFailed(PeerError):
    """Between greeting and traffic the peer said something out of turn, or was refused."""

    code = "HANDSHAKE_FAILED"

    def __init__(self, reason: str) -> None:
        super().__init__(f"handshake failed: {reason}")
        self.reason = reason


class SocketTypeMismatch(PeerError):
    """The peer's socket type may not talk to ours."""

    code = "SOCKET_TYPE_MISMATCH"

    def __init__(self, ours: bytes, theirs: bytes) -> None:
        super().__init__(f"a {theirs!r} socket may not talk to a {ours!r} socket")
        self.ours, self.theirs = ours, theirs


class IdentityTooLong(PeerError):
    """A peer claims an identity longer than ZMTP allows."""

    code = "IDENTITY_TOO_LONG"

    def __init__(self, size: int, size_max: int) -> None:
        super().__init__(f"identity of {size} bytes; at most {size_max} are allowed")
        self.size, self.size_max = size, size_max


class BadFrameFlags(PeerError):
    """A frame's flags have a reserved bit, or a combination that does not exist."""

    code = "BAD_FRAME_FLAGS"

    def __init__(self, flags: int) -> None:
        super().__init__(f"frame with flags 0x{flags:02X}")
        self.flags = flags


class BadFrameSize(PeerError):
    """A ZMTP 1.0 frame of size zero: its size counts the flags byte, so it is at least one."""

    code = "BAD_FRAME_SIZE"

    def __init__(self, size: int) -> None:
        super().__init__(f"frame of size {size}")
        self.size = size


class MessageStalled(PeerError):
    """A message that was begun has not grown for longer than `limits.unfinished_s`."""

    code = "MESSAGE_STALLED"

    def __init__(self, size: int) -> None:
        super().__init__(f"the rest of a message did not come: {size} bytes of it were kept in vain")
        self.size = size


class UnfinishedTooMuch(PeerError):
    """The messages that peers have begun and not finished take more than their share of memory."""

    code = "UNFINISHED_TOO_MUCH"

    def __init__(self, size: int, size_max: int) -> None:
        super().__init__(f"unfinished messages take more than {size_max} bytes; {size} of them were this peer's")
        self.size, self.size_max = size, size_max


class BadCommand(PeerError):
    """A ZMTP command is malformed or does not belong on this connection."""

    code = "BAD_COMMAND"

    def __init__(self, reason: str) -> None:
        super().__init__(f"bad command: {reason}")
        self.reason = reason


class CommandTooLarge(PeerError):
    """A ZMTP command announced more bytes than allowed."""

    code = "COMMAND_TOO_LARGE"

    def __init__(self, size: int, size_max: int) -> None:
        super().__init__(f"command of {size} bytes announced; at most {size_max} are allowed")
        self.size, self.size_max = size, size_max


class MessageTooLarge(PeerError):
    """A message's frames announced more bytes than the listener allows."""

    code = "MESSAGE_TOO_LARGE"

    def __init__(self, size: int, size_max: int) -> None:
        super().__init__(f"message of at least {size} bytes announced; at most {size_max} are allowed")
        self.size, self.size_max = size, size_max


class TooManyFrames(PeerError):
    """A message has more frames than any dialect knows."""

    code = "TOO_MANY_FRAMES"

    def __init__(self, count_max: int) -> None:
        super().__init__(f"message of more than {count_max} frames")
        self.count_max = count_max


class PayloadTooLarge(PeerError):
    """A RISP payload announced more bytes than the listener allows."""

    code = "PAYLOAD_TOO_LARGE"

    def __init__(self, size: int, size_max: int) -> None:
        super().__init__(f"payload of {size} bytes announced; at most {size_max} are allowed")
        self.size, self.size_max = size, size_max


class OperationWithoutId(PeerError):
    """A RISP operation that is about one request did not say which."""

    code = "OPERATION_WITHOUT_ID"

    def __init__(self, command: int) -> None:
        super().__init__(f"command {command} came without an ID")
        self.command = command


class RepeatedTooOften(PeerError):
    """A RISP peer had operations repeated without saying them again."""

    code = "REPEATED_TOO_OFTEN"

    def __init__(self, size_max: int) -> None:
        super().__init__(f"operations of more than {size_max} bytes repeated without CLEAR")
        self.size_max = size_max


class TooManyConsumers(PeerError):
    """One rq connection has consumed more queues than its limit."""

    code = "TOO_MANY_CONSUMERS"

    def __init__(self, count_max: int) -> None:
        super().__init__(f"more than {count_max} queues consumed on one connection")
        self.count_max = count_max


class PeerRefused(PeerError):
    """The peer ended the connection with a ZMTP ERROR command; its reason is in the text."""

    code = "PEER_REFUSED"

    def __init__(self, reason: str) -> None:
        super().__init__(f"the peer refused the connection: {reason}")
        self.reason = reason
