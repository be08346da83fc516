"""Why a slice of a journal does not become a test."""

from __future__ import annotations

from dragoman.errors.kinds import OperatorError


class BadInstant(OperatorError):
    """An instant on the command line cannot be read."""

    code = "BAD_INSTANT"
    exit_code = 2

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(
            f"{text!r}: {problem}; write 2026-03-02T14:03:00 (UTC unless it says another zone), 14:03 (the latest one) or -15m"
        )
        self.text, self.problem = text, problem


class NothingToExport(OperatorError):
    """The journal tells of no message in that slice."""

    code = "NOTHING_TO_EXPORT"
    exit_code = 4


class ExportTooLarge(OperatorError):
    """The slice has more messages than anybody would read in a test."""

    code = "EXPORT_TOO_LARGE"

    def __init__(self, count: int, count_max: int) -> None:
        super().__init__(
            f"the slice has more than {count_max} messages ({count} so far): narrow it with --from, --to, --queue or --id"
        )
        self.count, self.count_max = count, count_max


class ExportMisplaced(OperatorError):
    """The test cannot be written there: a file is there already, or the directory is not."""

    code = "EXPORT_MISPLACED"
    exit_code = 2


class NotReplayable(OperatorError):
    """Not one life of the slice comes out of the simulator as the journal tells it."""

    code = "NOT_REPLAYABLE"
