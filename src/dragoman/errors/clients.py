"""What a program that uses the SDK or the command line can meet."""

from __future__ import annotations

from dragoman.errors.kinds import DragomanError, OperatorError


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
        fate = "may or may not have run: its state is not known" if state == "unknown" else f"is {state}"
        super().__init__(f"the answer to {message_id} was lost with the connection; the job {fate}")
        self.message_id, self.state = message_id, state


class NotInDialect(ClientError):
    """What was asked has no word in the App's dialect; `having` are the dialects that have one, the nearest first."""

    code = "NOT_IN_DIALECT"

    def __init__(self, dialect: str, feature: str, having: tuple[str, ...]) -> None:
        use = " or ".join(f"{name}://…" for name in having)
        verb = "has" if len(having) == 1 else "have"
        super().__init__(f"{dialect} has no {feature}; {', '.join(having)} {verb}: use {use}")
        self.dialect, self.feature, self.having = dialect, feature, having


class NotFinite(ClientError, ValueError):
    """An argument, a result or news holds nan or an infinity, which JSON has no word for."""

    code = "NOT_FINITE"

    def __init__(self, where: str, value: float) -> None:
        super().__init__(f"{where} is {value}: JSON has no such number; send None or a text instead")
        self.where, self.value = where, value


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


class BadSearch(OperatorError):
    """A search for messages asks for something that cannot be."""

    code = "BAD_SEARCH"
    exit_code = 2
