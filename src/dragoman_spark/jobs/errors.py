"""What Spark raises, as one line for people with a stable code. The trace stays behind the error for those who ask (`--trace`).

Spark says the same thing many times over: the exception of Python, the Java exception in it, the task's in that, each with a trace.
The innermost cause says most, and is kept.
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
# The last line of a Python trace that came back out of the Java process, as for an error inside a streaming batch.
_OURS: Final = re.compile(r"^\s*(dragoman[\w.]*)\.(\w+): (.*)$", re.MULTILINE)
_CAUSE: Final = re.compile(r"^\s*Caused by: (.*)$", re.MULTILINE)
# Before the words: names of Java classes, and what wraps the cause that follows.
_CLASS: Final = re.compile(r"^(?:[a-z_$][\w$]*\.)+([A-Z][\w$]*)(?::\s*|$)")
_AWAY: Final = ("StatusCode.UNAVAILABLE", "failed to connect to all addresses", "All masters are unresponsive")


def spark_is_there() -> None:
    """Refuse in plain words where the packages are missing."""
    for module in ("pyspark", "py4j"):
        try:
            found = importlib.util.find_spec(module)
        except (ImportError, ValueError):
            found = None
        if found is None:
            raise SparkMissing(module)


@contextmanager
def readable(address: str = "") -> Iterator[None]:
    """Within it, whatever Spark raises becomes an OperatorError; what is ours passes."""
    try:
        yield
    except ImportError as error:
        module = (error.name or "").split(".")[0]
        if module in {"", "dragoman", "dragoman_spark"}:  # no package of the extra: a fault of our own stays one
            raise
        raise SparkMissing(module) from error
    except Exception as error:
        if isinstance(error, DragomanError) or not is_of_spark(error):
            raise
        raise in_words(error, address) from error


@contextmanager
def readable_at_start(address: str) -> Iterator[None]:
    """The same while a session starts: there it is the settings that are wrong."""
    try:
        with readable(address):
            yield
    except PipelineFailed as error:
        raise BadSparkConf(error.reason) from error.__cause__


def is_of_spark(error: BaseException) -> bool:
    return type(error).__module__.split(".")[0] in {"pyspark", "py4j", "grpc"}


def in_words(error: BaseException, address: str = "") -> OperatorError:
    """The error a person reads."""
    from dragoman_spark.jobs.jvm import last_words

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
    """Of `An error occurred while calling o12.load.` and its like the next line says what it was."""
    lines = [line for line in text.splitlines() if line.strip()]
    while len(lines) > 1 and re.match(
        r"(An error occurred while calling|\(\S+\)\s*$|JVM stacktrace)", lines[0].strip()
    ):
        del lines[0]
    return re.sub(r"^:\s*", "", lines[0]) if lines else ""


def _own_error(text: str) -> OperatorError | None:
    """An error of ours that went through Java and came back as text: the same class again, with the same words."""
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
