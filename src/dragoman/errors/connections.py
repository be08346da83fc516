"""Errors of the two ends of a connection.

`PeerError`: the broker found that a peer violated its protocol; that peer loses its connection, no other peer is affected.
`ClientError`: a call through the SDK ended without a result. A class without a docstring is described by its text.
"""

from __future__ import annotations

from typing import Final

from dragoman.errors.kinds import DragomanError, PeerError, coded, error

HTTP_REFUSAL: Final = b"HTTP is not spoken on this port.\n"


@error("HTTP_NOT_SPOKEN", "an HTTP request; this port speaks another protocol")
class HttpNotSpoken(PeerError):
    """The first bytes are an HTTP request: from a browser, a health check, or a malicious web page."""

    answer = (
        b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
        % (len(HTTP_REFUSAL), HTTP_REFUSAL)
    )


@error("TLS_NOT_SPOKEN", "a TLS hello; this port speaks another protocol, in plain")
class TlsNotSpoken(PeerError):
    """The first bytes are a TLS hello."""


@error("LEGACY_GREETING_OFF", "a greeting of ZMTP 1.0, which is off on this listener")
class LegacyGreetingOff(PeerError):
    """A ZMTP 1.0 peer (libzmq 2.x) connected to a listener that accepts only 2.0 and newer."""


@error("BAD_GREETING", "bad greeting: {reason}")
class BadGreeting(PeerError):
    """A ZMTP greeting contains a value that no version of the protocol allows."""

    reason: str


@error("MECHANISM_MISMATCH", "mechanism {ours!r} is spoken here, the peer wants {theirs!r}")
class MechanismMismatch(PeerError):
    ours: bytes
    theirs: bytes


@error("HANDSHAKE_FAILED", "handshake failed: {reason}")
class HandshakeFailed(PeerError):
    """Between greeting and traffic the peer sent something unexpected, or was refused."""

    reason: str


@error("SOCKET_TYPE_MISMATCH", "a {theirs!r} socket may not talk to a {ours!r} socket")
class SocketTypeMismatch(PeerError):
    ours: bytes
    theirs: bytes


@error("IDENTITY_TOO_LONG", "identity of {size} bytes; at most {size_max} are allowed")
class IdentityTooLong(PeerError):
    size: int
    size_max: int


@error("BAD_FRAME_FLAGS", "frame with flags 0x{flags:02X}")
class BadFrameFlags(PeerError):
    """A frame's flags have a reserved bit, or a combination that does not exist."""

    flags: int


@error("BAD_FRAME_SIZE", "frame of size {size}")
class BadFrameSize(PeerError):
    """A ZMTP 1.0 frame of size zero: the size includes the flags byte, so it is at least one."""

    size: int


@error("MESSAGE_STALLED", "the rest of a message did not come: {size} bytes of it were buffered")
class MessageStalled(PeerError):
    """An incomplete message has not grown for longer than `limits.unfinished_s`."""

    size: int


@error("UNFINISHED_TOO_MUCH", "unfinished messages take more than {size_max} bytes; {size} of them were this peer's")
class UnfinishedTooMuch(PeerError):
    """The incomplete messages of peers take more than their share of memory."""

    size: int
    size_max: int


@error("BAD_COMMAND", "bad command: {reason}")
class BadCommand(PeerError):
    """A ZMTP command is malformed or not allowed on this connection."""

    reason: str


@error("COMMAND_TOO_LARGE", "command of {size} bytes announced; at most {size_max} are allowed")
class CommandTooLarge(PeerError):
    size: int
    size_max: int


@error("MESSAGE_TOO_LARGE", "message of at least {size} bytes announced; at most {size_max} are allowed")
class MessageTooLarge(PeerError):
    size: int
    size_max: int


@error("TOO_MANY_FRAMES", "message of more than {count_max} frames")
class TooManyFrames(PeerError):
    count_max: int


@error("PAYLOAD_TOO_LARGE", "payload of {size} bytes announced; at most {size_max} are allowed")
class PayloadTooLarge(PeerError):
    size: int
    size_max: int


@error("OPERATION_WITHOUT_ID", "command {command} came without an ID")
class OperationWithoutId(PeerError):
    """A RISP operation that concerns one request came without that request's ID."""

    command: int


@error("REPEATED_TOO_OFTEN", "operations of more than {size_max} bytes repeated without CLEAR")
class RepeatedTooOften(PeerError):
    """A RISP peer repeated too many bytes of operations from one set of parameters, without CLEAR."""

    size_max: int


@error("TOO_MANY_CONSUMERS", "more than {count_max} queues consumed on one connection")
class TooManyConsumers(PeerError):
    count_max: int


@error("PEER_REFUSED", "the peer refused the connection: {reason}")
class PeerRefused(PeerError):
    """The peer ended the connection with a ZMTP ERROR command; its reason is in the text."""

    reason: str


@coded("CLIENT_ERROR")
class ClientError(DragomanError):
    """A call through the SDK ended without a result."""


@coded("JOB_FAILED")
class JobFailed(ClientError):
    """The job ended without a result: it raised, timed out, expired, was cancelled or quarantined."""

    def __init__(self, type: str, message: str) -> None:  # noqa: A002 - the word of the wire
        super().__init__(f"{type}: {message}" if message else type)
        self.type, self.message = type, message


@error("REFUSED", "{refusal}: {message}")
class Refused(ClientError):
    """The broker did not accept the message; `refusal` is its stable code (docs/reference/errors.md)."""

    refusal: str
    message: str


@error("BROKER_UNREACHABLE", "no broker at {address} within {waited_s:g} s: {reason}")
class BrokerUnreachable(ClientError):
    address: str
    waited_s: float
    reason: str


@error("NO_ANSWER", "no answer to {message_id} within {waited_s:g} s")
class NoAnswer(ClientError):
    """The broker has the call, but no reply came within the caller's timeout."""

    message_id: str
    waited_s: float


@coded("ANSWER_LOST")
class AnswerLost(ClientError):
    """The connection was lost while waiting for a reply, and the broker no longer has the job: it may have run."""

    def __init__(self, message_id: str, state: str) -> None:
        fate = "may or may not have run: its state is not known" if state == "unknown" else f"is {state}"
        super().__init__(f"the answer to {message_id} was lost with the connection; the job {fate}")
        self.message_id, self.state = message_id, state


@coded("NOT_IN_DIALECT")
class NotInDialect(ClientError):
    """The App's dialect does not support the request; `having` are the dialects that do, the nearest first."""

    def __init__(self, dialect: str, feature: str, having: tuple[str, ...]) -> None:
        use = " or ".join(f"{name}://…" for name in having)
        verb = "has" if len(having) == 1 else "have"
        super().__init__(f"{dialect} has no {feature}; {', '.join(having)} {verb}: use {use}")
        self.dialect, self.feature, self.having = dialect, feature, having


@error("NOT_FINITE", "{where} is {value}: JSON has no such number; send None or a text instead")
class NotFinite(ClientError, ValueError):
    """An argument, a result or a published message contains nan or an infinity, which JSON cannot represent."""

    where: str
    value: float


@coded("APP_CLOSED")
class AppClosed(ClientError):
    """The App was closed during the call, or before it began."""


@coded("ADMIN_REFUSED")
class AdminRefused(DragomanError):
    """The broker refused an admin request; `refusal` is its code."""

    def __init__(self, refusal: str, message: str) -> None:
        super().__init__(message)
        self.refusal = refusal
