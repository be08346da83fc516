"""Errors of reading and playing a recording."""

from __future__ import annotations

from dragoman.errors import OperatorError


class BadRecording(OperatorError):
    """A recording cannot be parsed."""

    code = "BAD_RECORDING"
    exit_code = 2

    def __init__(self, path: str, line_no: int, problem: str) -> None:
        super().__init__(f"{path}, line {line_no}: {problem}")
        self.path, self.line_no, self.problem = path, line_no, problem


class ReplayFailed(OperatorError):
    """A recorded peer cannot be played: a listener is missing, or cannot be connected to."""

    code = "REPLAY_FAILED"
