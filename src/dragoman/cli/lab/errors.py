"""What can be wrong with a recording, or with playing it."""

from __future__ import annotations

from dragoman.errors import OperatorError


class BadRecording(OperatorError):
    """A recording of a conversation cannot be read."""

    code = "BAD_RECORDING"
    exit_code = 2

    def __init__(self, path: str, line_no: int, problem: str) -> None:
        super().__init__(f"{path}, line {line_no}: {problem}")
        self.path, self.line_no, self.problem = path, line_no, problem


class ReplayFailed(OperatorError):
    """A recorded peer cannot be played: a listener is missing, or the connection to it."""

    code = "REPLAY_FAILED"
