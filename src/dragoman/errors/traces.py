"""What may be wrong with telling a collector of traces."""

from __future__ import annotations

from dragoman.errors.kinds import DragomanError, OperatorError


class ExporterBusy(OperatorError):
    """One process at a time tells the collector of a journal."""

    code = "EXPORTER_BUSY"

    def __init__(self, directory: str) -> None:
        super().__init__(f"another process exports the traces of {directory} already")
        self.directory = directory


class CollectorAway(DragomanError):
    """The collector cannot take spans now; they are offered again, after `wait_s` if it said so."""

    code = "COLLECTOR_AWAY"

    def __init__(self, endpoint: str, problem: str, wait_s: float = 0.0) -> None:
        super().__init__(f"the collector at {endpoint} takes no spans: {problem}")
        self.endpoint, self.problem, self.wait_s = endpoint, problem, wait_s


class SpansRefused(DragomanError):
    """The collector will never take these spans: they are too many at once, or it finds them wrong."""

    code = "SPANS_REFUSED"

    def __init__(self, endpoint: str, problem: str) -> None:
        super().__init__(f"the collector at {endpoint} refuses spans for good: {problem}")
        self.endpoint, self.problem = endpoint, problem
