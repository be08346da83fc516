"""Errors of the two ends of a connection.

`PeerError`: the broker found that a peer violated its protocol; that peer loses its connection, no other peer is affected.
`ClientError`: a call through the SDK ended without a result.
"""

from __future__ import annotations

from typing import Final

from dragoman.errors.kinds import DragomanError, PeerError

HTTP_REFUSAL: Final = b"HTTP is not spoken on this port.\n"


class HttpNotSpoken(PeerError):
    """The first bytes are an HTTP request: from a browser, a health check, or a malicious web page."""

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
    """A ZMTP 1.0 peer (libzmq 2.x) connected to a listener that accepts only 2.0 and newer."""

    code = "LEGACY_GREETING_OFF"

    def __init__(self) -> None:
        super().__init__("a greeting of ZMTP 1.0, which is off on this listener")


class BadGreeting(PeerError):
    """A ZMTP greeting contains a value that no version of the protocol allows."""

    code = "BAD_GREETING"

    def __init__(self, reason: str) -> None:
        super().__init__(f"bad greeting: {reason}")
        self.reason = reason


class MechanismMismatch(PeerError):
    """The peer's greeting names a security mechanism other than this listener's."""

    code = "MECHANISM_MISMATCH"

    def __init__(self, ours: bytes, theirs: bytes) -> None:
        super().__init__(f"mechanism {ours!r} is spoken here, the peer wants {theirs!r}")
        self.ours, self.theirs = ours, theirs


class HandshakeFailed(PeerError):
    """Between greeting and traffic the peer sent something unexpected, or was refused."""

    code = "HANDSHAKE_FAILED"

    def __init__(self, reason: str) -> None:
        super().__init__(f"handshake failed: {reason}")
        self.reason = reason


class SocketTypeMismatch(PeerError):
    """The peer's socket type is not compatible with ours."""

    code = "SOCKET_TYPE_MISMATCH"

    def __init__(self, ours: bytes, theirs: bytes) -> None:
        super().__init__(f"a {theirs!r} socket may not talk to a {ours!r} socket")
        self.ours, self.theirs = ours, theirs


class IdentityTooLong(PeerError):
    """A peer's identity is longer than ZMTP allows."""

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
    """A ZMTP 1.0 frame of size zero: the size includes the flags byte, so it is at least one."""

    code = "BAD_FRAME_SIZE"

    def __init__(self, size: int) -> None:
        super().__init__(f"frame of size {size}")
        self.size = size


class MessageStalled(PeerError):
    """An incomplete message has not grown for longer than `limits.unfinished_s`."""

    code = "MESSAGE_STALLED"

    def __init__(self, size: int) -> None:
        super().__init__(f"the rest of a message did not come: {size} bytes of it were kept in vain")
        self.size = size


class UnfinishedTooMuch(PeerError):
    """The incomplete messages of peers take more than their share of memory."""

    code = "UNFINISHED_TOO_MUCH"

    def __init__(self, size: int, size_max: int) -> None:
        super().__init__(f"unfinished messages take more than {size_max} bytes; {size} of them were this peer's")
        self.size, self.size_max = size, size_max


class BadCommand(PeerError):
    """A ZMTP command is malformed or not allowed on this connection."""

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
    """A message has more frames than any dialect uses."""

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
    """A RISP operation that concerns one request came without that request's ID."""

    code = "OPERATION_WITHOUT_ID"

    def __init__(self, command: int) -> None:
        super().__init__(f"command {command} came without an ID")
        self.command = command


class RepeatedTooOften(PeerError):
    """A RISP peer repeated too many bytes of operations from one set of parameters, without CLEAR."""

    code = "REPEATED_TOO_OFTEN"

    def __init__(self, size_max: int) -> None:
        super().__init__(f"operations of more than {size_max} bytes repeated without CLEAR")
        self.size_max = size_max


class TooManyConsumers(PeerError):
    """One rq connection consumes more queues than its limit."""

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


class ClientError(DragomanError):
    """A call through the SDK ended without a result."""

    code = "CLIENT_ERROR"


class JobFailed(ClientError):
    """The job ended without a result: it raised, timed out, expired, was cancelled or quarantined."""

    code = "JOB_FAILED"

    def __init__(self, type: str, message: str) -> None:  # noqa: A002 - the word of the wire
        super().__init__(f"{type}: {message}" if message else type)
        self.type, self.message = type, message


class Refused(ClientError):
    """The broker did not accept the message; `refusal` is its stable code (docs/reference/errors.md)."""

    code = "REFUSED"

    def __init__(self, refusal: str, message: str) -> None:
        super().__init__(f"{refusal}: {message}")
        self.refusal, self.message = refusal, message


class BrokerUnreachable(ClientError):
    """No connection to the broker was established in time."""

    code = "BROKER_UNREACHABLE"

    def __init__(self, address: str, waited_s: float, reason: str) -> None:
        super().__init__(f"no broker at {address} within {waited_s:g} s: {reason}")
        self.address, self.waited_s, self.reason = address, waited_s, reason


class NoAnswer(ClientError):
    """The broker has the call, but no reply came within the caller's timeout."""

    code = "NO_ANSWER"

    def __init__(self, message_id: str, waited_s: float) -> None:
        super().__init__(f"no answer to {message_id} within {waited_s:g} s")
        self.message_id, self.waited_s = message_id, waited_s


class AnswerLost(ClientError):
    """The connection was lost while waiting for a reply, and the broker no longer has the job: it may have run."""

    code = "ANSWER_LOST"

    def __init__(self, message_id: str, state: str) -> None:
        fate = "may or may not have run: its state is not known" if state == "unknown" else f"is {state}"
        super().__init__(f"the answer to {message_id} was lost with the connection; the job {fate}")
        self.message_id, self.state = message_id, state


class NotInDialect(ClientError):
    """The App's dialect does not support the request; `having` are the dialects that do, the nearest first."""

    code = "NOT_IN_DIALECT"

    def __init__(self, dialect: str, feature: str, having: tuple[str, ...]) -> None:
        use = " or ".join(f"{name}://…" for name in having)
        verb = "has" if len(having) == 1 else "have"
        super().__init__(f"{dialect} has no {feature}; {', '.join(having)} {verb}: use {use}")
        self.dialect, self.feature, self.having = dialect, feature, having


class NotFinite(ClientError, ValueError):
    """An argument, a result or a published message contains nan or an infinity, which JSON cannot represent."""

    code = "NOT_FINITE"

    def __init__(self, where: str, value: float) -> None:
        super().__init__(f"{where} is {value}: JSON has no such number; send None or a text instead")
        self.where, self.value = where, value


class AppClosed(ClientError):
    """The App was closed during the call, or before it began."""

    code = "APP_CLOSED"


class AdminRefused(DragomanError):
    """The broker refused an admin request; `refusal` is its code."""

    code = "ADMIN_REFUSED"

    def __init__(self, refusal: str, message: str) -> None:
        super().__init__(message)
        self.refusal = refusal
