"""Converts Spark's exceptions to one line with a stable code. The traceback stays available (`--trace`).

Spark reports the same failure many times: Python's exception, the Java exception in it, the task's in that, each with a trace.
The innermost cause is the most specific, and is kept.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dragoman.errors import BadSparkConf, DragomanError, OperatorError, PipelineFailed, SparkMissing, SparkUnreachable

REASON_SIZE_MAX: Final = 600
# The last line of a Python traceback that came back through the Java process, as for an error inside a streaming batch.
_OURS: Final = re.compile(r"^\s*(dragoman[\w.]*)\.(\w+): (.*)$", re.MULTILINE)
_CAUSE: Final = re.compile(r"^\s*Caused by: (.*)$", re.MULTILINE)
# Prefixes of the message: names of Java classes, and wrappers of the cause that follows.
_CLASS: Final = re.compile(r"^(?:[a-z_$][\w$]*\.)+([A-Z][\w$]*)(?::\s*|$)")
_AWAY: Final = ("StatusCode.UNAVAILABLE", "failed to connect to all addresses", "All masters are unresponsive")


def spark_is_there() -> None:
    """Raise SparkMissing if the packages are missing."""
    for module in ("pyspark", "py4j"):
        try:
            found = importlib.util.find_spec(module)
        except (ImportError, ValueError):
            found = None
        if found is None:
            raise SparkMissing(module)


@contextmanager
def readable(address: str = "") -> Iterator[None]:
    """Converts any Spark exception inside the block to an OperatorError; our own errors pass."""
    try:
        yield
    except ImportError as error:
        module = (error.name or "").split(".")[0]
        if module in {"", "dragoman", "dragoman_spark"}:  # no package of the extra: our own bug
            raise
        raise SparkMissing(module) from error
    except Exception as error:
        if isinstance(error, DragomanError) or not is_of_spark(error):
            raise
        raise in_words(error, address) from error


@contextmanager
def readable_at_start(address: str) -> Iterator[None]:
    """The same while a session starts: then the settings are at fault."""
    try:
        with readable(address):
            yield
    except PipelineFailed as error:
        raise BadSparkConf(error.reason) from error.__cause__


def is_of_spark(error: BaseException) -> bool:
    return type(error).__module__.split(".")[0] in {"pyspark", "py4j", "grpc"}


def in_words(error: BaseException, address: str = "") -> OperatorError:
    """The error to show to a person."""
    from dragoman_spark.jobs.spark.jvm import last_words

    text = str(error)
    ours = _own_error(text)
    if ours is not None:
        return ours
    if any(sign in text for sign in _AWAY):
        return SparkUnreachable(address or "its address", "the connection ended")
    name = type(error).__name__
    if name in {"Py4JNetworkError", "ConnectionRefusedError"} or "JAVA_GATEWAY_EXITED" in text:
        return PipelineFailed(f"the Java process ended: {last_words() or 'it said nothing'}")
    return PipelineFailed(reason_in(text) or name)


def reason_in(text: str) -> str:
    """The innermost reason of a text with traces in it, in one line."""
    causes = _CAUSE.findall(text)
    line = causes[-1] if causes else _first_line(text)
    classes: list[str] = []
    while (wrapped := _CLASS.match(line)) is not None:
        classes.append(wrapped[1])
        line = line[wrapped.end() :]
    line = re.sub(r"\s+", " ", line).strip() or (classes[-1] if classes else "")
    return line if len(line) <= REASON_SIZE_MAX else line[: REASON_SIZE_MAX - 1] + "…"


def _first_line(text: str) -> str:
    """The first informative line: after `An error occurred while calling o12.load.` and the like it is the next one."""
    lines = [line for line in text.splitlines() if line.strip()]
    while len(lines) > 1 and re.match(
        r"(An error occurred while calling|\(\S+\)\s*$|JVM stacktrace)", lines[0].strip()
    ):
        del lines[0]
    return re.sub(r"^:\s*", "", lines[0]) if lines else ""


def _own_error(text: str) -> OperatorError | None:
    """Recreate an error of ours that went through Java and came back as text: the same class, with the same message."""
    for module, name, words in reversed(_OURS.findall(text)):
        try:
            kind = getattr(importlib.import_module(module), name, None)
        except ImportError:
            continue
        if isinstance(kind, type) and issubclass(kind, OperatorError):
            again = kind.__new__(kind)
            again.args = (words,)
            return again
    return None
