"""What may be wrong with the place where the pipeline keeps its tables."""

from __future__ import annotations

from dragoman.errors.kinds import OperatorError


class OutUnreachable(OperatorError):
    """The tables' place cannot be used: no such file system, no rights, no room, no network."""

    code = "OUT_UNREACHABLE"

    def __init__(self, root: str, problem: str) -> None:
        super().__init__(f"tables cannot be kept in {root}: {(problem.splitlines() or [''])[0]}")
        self.root, self.problem = root, problem


class OutBusy(OperatorError):
    """Another command writes the same tables."""

    code = "OUT_BUSY"

    def __init__(self, root: str) -> None:
        super().__init__(f"another `dragoman pipeline` command writes the tables in {root}: wait until it is done")
        self.root = root


class StateTooNew(OperatorError):
    """The tables were written by a later dragoman."""

    code = "STATE_TOO_NEW"
    exit_code = 5

    def __init__(self, file: str, version: int, version_known: int) -> None:
        super().__init__(f"{file} has version {version}; this dragoman reads versions up to {version_known}")
        self.file, self.version, self.version_known = file, version, version_known


class LakeIncomplete(OperatorError):
    """The lake no longer has all facts that the tables were made of, so they cannot be made anew from it."""

    code = "LAKE_INCOMPLETE"

    def __init__(self, root: str, facts: int, broker: str) -> None:
        super().__init__(
            f"the lake {root} lacks {facts} facts that the tables were made of (of broker {broker}, and maybe others): files "
            f"were removed. Days that are there can still be made anew one by one with --date"
        )
        self.root, self.facts, self.broker = root, facts, broker


class DeltaMissing(OperatorError):
    """Tables are to be kept as Delta tables, and the package that does it is not installed."""

    code = "DELTA_MISSING"

    def __init__(self) -> None:
        super().__init__("the format delta needs deltalake, which is not installed: pip install 'dragoman[delta]'")
