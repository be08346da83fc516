"""Every deliberate error of dragoman, each with a stable code.

Three kinds of wrong (and one place for each):

- a *refusal* is a value: the core returns one of the `Refusal` codes below, nothing is raised;
- a *peer's fault* is an exception below `PeerError`: it costs that peer its connection and nobody else anything;
- an *operator's fault* (a bad setting, a damaged file, a busy port) is an exception below `OperatorError`: the
  command ends with its text and its exit code.

Our own faults are assertions. A code is on the wire, in facts, in logs and in docs/reference/errors.md; it never changes.
"""

from __future__ import annotations

from dragoman.errors.clients import (
    AdminRefused,
    AdminUnreachable,
    AnswerLost,
    AppClosed,
    BadAddress,
    BadTarget,
    BrokerUnreachable,
    ClientError,
    JobFailed,
    NoAnswer,
    NotInDialect,
    Refused,
    TraceNotFound,
)
from dragoman.errors.kinds import DragomanError, OperatorError, PeerError
from dragoman.errors.operators import (
    BadDocument,
    BindNotLoopback,
    ConfigError,
    DataDirectoryBusy,
    DataDirectoryUnusable,
    JournalDamaged,
    JournalFailing,
    JournalFull,
    JournalMisplaced,
    JournalTooNew,
    JournalUnavailable,
    ListenerTaken,
    NoListener,
)
from dragoman.errors.peers import (
    BadCommand,
    BadFrameFlags,
    BadFrameSize,
    BadGreeting,
    CommandTooLarge,
    HandshakeFailed,
    IdentityTooLong,
    MechanismMismatch,
    MessageTooLarge,
    OperationWithoutId,
    PayloadTooLarge,
    PeerRefused,
    RepeatedTooOften,
    SocketTypeMismatch,
    TooManyConsumers,
    TooManyFrames,
)

__all__ = [
    "AdminRefused",
    "AdminUnreachable",
    "AnswerLost",
    "AppClosed",
    "BadAddress",
    "BadCommand",
    "BadDocument",
    "BadFrameFlags",
    "BadFrameSize",
    "BadGreeting",
    "BadTarget",
    "BindNotLoopback",
    "BrokerUnreachable",
    "ClientError",
    "CommandTooLarge",
    "ConfigError",
    "DataDirectoryBusy",
    "DataDirectoryUnusable",
    "DragomanError",
    "HandshakeFailed",
    "IdentityTooLong",
    "JobFailed",
    "JournalDamaged",
    "JournalFailing",
    "JournalFull",
    "JournalMisplaced",
    "JournalTooNew",
    "JournalUnavailable",
    "ListenerTaken",
    "MechanismMismatch",
    "MessageTooLarge",
    "NoAnswer",
    "NoListener",
    "NotInDialect",
    "OperationWithoutId",
    "OperatorError",
    "PayloadTooLarge",
    "PeerError",
    "PeerRefused",
    "Refused",
    "RepeatedTooOften",
    "SocketTypeMismatch",
    "TooManyConsumers",
    "TooManyFrames",
    "TraceNotFound",
]
