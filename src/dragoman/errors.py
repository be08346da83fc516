"""Every deliberate error of dragoman, each with a stable code.

Three kinds of wrong (and one place for each):

- a *refusal* is a value: the core returns one of the `Refusal` codes below, nothing is raised;
- a *peer's fault* is an exception below `PeerError`: it costs that peer its connection and nobody else anything;
- an *operator's fault* (a bad setting, a damaged file, a busy port) is an exception below `OperatorError`: the
  command ends with its text and its exit code.

Our own faults are assertions. A code is on the wire, in facts, in logs and in docs/reference/errors.md; it never changes.
"""

from __future__ import annotations

from typing import ClassVar


class DragomanError(Exception):
    """Anything dragoman raises on purpose."""

    code: ClassVar[str] = "ERROR"


class PeerError(DragomanError):
    """A peer broke its protocol; its connection ends, the broker goes on."""

    code = "PEER_ERROR"


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


class PeerRefused(PeerError):
    """The peer ended the connection with a ZMTP ERROR command; its reason is in the text."""

    code = "PEER_REFUSED"

    def __init__(self, reason: str) -> None:
        super().__init__(f"the peer refused the connection: {reason}")
        self.reason = reason


class OperatorError(DragomanError):
    """The operator must act: the text says what is wrong and what to do."""

    code = "OPERATOR_ERROR"
    exit_code: ClassVar[int] = 1


class ConfigError(OperatorError):
    """A setting is unknown or has a value it cannot have."""

    code = "CONFIG_INVALID"
    exit_code = 2

    def __init__(self, key: str, source: str, problem: str) -> None:
        super().__init__(f"{key}: {problem} (from {source})")
        self.key, self.source, self.problem = key, source, problem


class BindNotLoopback(ConfigError):
    """A listener would be reachable from other machines although no security is configured."""

    code = "BIND_NOT_LOOPBACK"


class JournalUnavailable(DragomanError):
    """The journal cannot keep anything more just now; new work is refused until it can again."""

    code = "JOURNAL_UNAVAILABLE"


class JournalFull(JournalUnavailable):
    """No room is left on the disk: what is waiting may settle, nothing new is taken. Ends by itself when space is back."""

    code = "JOURNAL_FULL"

    def __init__(self, directory: str, needed: int, free: int) -> None:
        super().__init__(f"no room for the journal in {directory}: {needed} bytes needed, {free} free")
        self.directory, self.needed, self.free = directory, needed, free


class JournalFailing(JournalUnavailable):
    """The disk refuses to write or to sync; uncommitted blocks stay in memory and go to a new segment when it can."""

    code = "JOURNAL_FAILING"

    def __init__(self, directory: str, reason: str) -> None:
        super().__init__(f"the disk under {directory} fails: {reason}")
        self.directory, self.reason = directory, reason


class JournalDamaged(OperatorError):
    """Bytes that were once safely on disk are no longer what was written."""

    code = "JOURNAL_DAMAGED"
    exit_code = 5

    def __init__(self, file: str, offset: int, lsn: int, reason: str) -> None:
        super().__init__(
            f"journal damaged: {file} at byte {offset} (fact {lsn}): {reason}. Nothing was changed. "
            f"`dragoman journal verify` lists the damage; `dragoman journal salvage` copies all that is intact"
        )
        self.file, self.offset, self.lsn, self.reason = file, offset, lsn, reason


class JournalTooNew(OperatorError):
    """A journal file was written by a later dragoman."""

    code = "JOURNAL_TOO_NEW"
    exit_code = 5

    def __init__(self, file: str, version: int, version_known: int) -> None:
        super().__init__(
            f"{file} has journal format version {version}; this dragoman reads versions up to {version_known}. "
            f"Run the dragoman that wrote it, or a later one"
        )
        self.file, self.version, self.version_known = file, version, version_known


class JournalMisplaced(OperatorError):
    """A directory is not fit for what was asked: not empty, not a journal, not a finished backup, of two brokers."""

    code = "JOURNAL_MISPLACED"
    exit_code = 5


class DataDirectoryBusy(OperatorError):
    """Another broker lives in this data directory."""

    code = "DATA_DIRECTORY_BUSY"

    def __init__(self, path: object) -> None:
        super().__init__(f"a broker already runs on {path}; stop it, or give this one a data directory of its own")


class DataDirectoryUnusable(OperatorError):
    """The data directory cannot be made or written to."""

    code = "DATA_DIRECTORY_UNUSABLE"

    def __init__(self, path: object, error: OSError) -> None:
        super().__init__(f"the data directory {path} cannot be used: {error.strerror}")


class ListenerTaken(OperatorError):
    """An address that was asked for explicitly cannot be bound."""

    code = "LISTENER_TAKEN"

    def __init__(self, name: str, address: str, error: OSError) -> None:
        super().__init__(
            f"listener {name} cannot bind {address}: {error.strerror}; free the port, choose another with "
            f"--listen {name}=ADDRESS, or leave it out with --listen {name}=off"
        )


class NoListener(OperatorError):
    """Not one listener could be bound."""

    code = "NO_LISTENER"

    def __init__(self) -> None:
        super().__init__("no listener is on: every one is switched off or its port is taken")


class ClientError(DragomanError):
    """A call through the SDK did not end with its result."""

    code = "CLIENT_ERROR"


class JobFailed(ClientError):
    """The job ended without a result: it raised, ran out of time, expired, was cancelled or quarantined."""

    code = "JOB_FAILED"

    def __init__(self, type: str, message: str) -> None:  # noqa: A002 - the word of the wire
        super().__init__(f"{type}: {message}" if message else type)
        self.type, self.message = type, message


class Refused(ClientError):
    """The broker did not take the work; `refusal` is its stable code (docs/reference/errors.md)."""

    code = "REFUSED"

    def __init__(self, refusal: str, message: str) -> None:
        super().__init__(f"{refusal}: {message}")
        self.refusal, self.message = refusal, message


class BrokerUnreachable(ClientError):
    """No connection to the broker came up in time."""

    code = "BROKER_UNREACHABLE"

    def __init__(self, address: str, waited_s: float, reason: str) -> None:
        super().__init__(f"no broker at {address} within {waited_s:g} s: {reason}")
        self.address, self.waited_s, self.reason = address, waited_s, reason


class NoAnswer(ClientError):
    """The broker has the call, but nothing came back in the time the caller was willing to wait."""

    code = "NO_ANSWER"

    def __init__(self, message_id: str, waited_s: float) -> None:
        super().__init__(f"no answer to {message_id} within {waited_s:g} s")
        self.message_id, self.waited_s = message_id, waited_s


class AnswerLost(ClientError):
    """The connection was lost while an answer was awaited, and the broker no longer holds the job: it may have run."""

    code = "ANSWER_LOST"

    def __init__(self, message_id: str, state: str) -> None:
        fate = "may or may not have run: the broker does not know it" if state == "unknown" else f"is {state}"
        super().__init__(f"the answer to {message_id} was lost with the connection; the job {fate}")
        self.message_id, self.state = message_id, state


class AppClosed(ClientError):
    """The App was closed while the call was under way, or before it began."""

    code = "APP_CLOSED"


class BadAddress(OperatorError):
    """An App's address cannot be understood, or does not name what is needed."""

    code = "BAD_ADDRESS"
    exit_code = 2

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(f"{address!r}: {problem}")
        self.address, self.problem = address, problem


class BadTarget(OperatorError):
    """`dragoman worker` was given something that does not lead to an App."""

    code = "BAD_TARGET"
    exit_code = 2

    def __init__(self, target: str, problem: str) -> None:
        super().__init__(f"{target!r}: {problem}")
        self.target, self.problem = target, problem


class AdminUnreachable(OperatorError):
    """No broker answers at the admin socket of a data directory."""

    code = "BROKER_NOT_REACHABLE"
    exit_code = 3

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"no broker answers at {path}: {reason}. `dragoman up --data DIR` starts one")
        self.path, self.reason = path, reason


class AdminRefused(DragomanError):
    """The broker answered an admin request with no; `refusal` is its code."""

    code = "ADMIN_REFUSED"

    def __init__(self, refusal: str, message: str) -> None:
        super().__init__(message)
        self.refusal = refusal


class TraceNotFound(OperatorError):
    """No fact in the journal tells of this message."""

    code = "NOT_FOUND"
    exit_code = 4
