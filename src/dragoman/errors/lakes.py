"""What may be wrong with a lake, or with reading and filling it."""

from __future__ import annotations

from dragoman.errors.kinds import OperatorError


class PyarrowMissing(OperatorError):
    """The lake is written and read with pyarrow, which is not installed."""

    code = "PYARROW_MISSING"
    exit_code = 2

    def __init__(self) -> None:
        super().__init__("the lake needs pyarrow, which is not installed here: pip install 'dragoman[lake]'")


class LakeUnreachable(OperatorError):
    """The lake's root cannot be used: no such file system, no rights, no room, no network."""

    code = "LAKE_UNREACHABLE"

    def __init__(self, root: str, problem: str) -> None:
        super().__init__(f"the lake {root} cannot be used: {problem}")
        self.root, self.problem = root, problem


class LakeTooNew(OperatorError):
    """A file of the lake was written by a later dragoman."""

    code = "LAKE_TOO_NEW"
    exit_code = 5

    def __init__(self, file: str, version: int, version_known: int) -> None:
        super().__init__(
            f"{file} has lake schema version {version}; this dragoman reads versions up to {version_known}. "
            f"Read it with the dragoman that wrote it, or a later one"
        )
        self.file, self.version, self.version_known = file, version, version_known


class LakeDamaged(OperatorError):
    """A file of the lake does not hold what its name says."""

    code = "LAKE_DAMAGED"
    exit_code = 5

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(
            f"the lake's file {file} is damaged: {problem}. Remove it, and seal again while the journal has its facts"
        )
        self.file, self.problem = file, problem


class LakeAhead(OperatorError):
    """The lake holds facts of this broker that its journal does not have: the journal was put back to an earlier state."""

    code = "LAKE_AHEAD"

    def __init__(self, root: str, lake_lsn: int, journal_lsn: int) -> None:
        super().__init__(
            f"the lake {root} holds this broker's facts up to {lake_lsn}, its journal only up to {journal_lsn}: it was restored "
            f"from a backup, and numbers would come twice. Give it another lake"
        )
        self.root, self.lake_lsn, self.journal_lsn = root, lake_lsn, journal_lsn


class SealerBusy(OperatorError):
    """Another sealer is at work on this journal."""

    code = "SEALER_BUSY"

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"a sealer already reads the journal of {directory}: `dragoman up` seals by itself where its lake is on"
        )
        self.directory = directory


class LakeTaken(OperatorError):
    """Facts were to be generated into a lake that has those of the same seed already."""

    code = "LAKE_TAKEN"
    exit_code = 2

    def __init__(self, root: str, seed: int) -> None:
        super().__init__(
            f"the lake {root} already holds the facts of seed {seed}: name another --out or another --seed"
        )
        self.root, self.seed = root, seed
