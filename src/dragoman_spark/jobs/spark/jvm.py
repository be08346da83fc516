"""The Java process of a session: started quietly, with its stderr kept for failures.

Its stderr goes to an unnamed file instead of the terminal. PySpark reports only that it exited; the
reason (`Invalid maximum heap size`, `OutOfMemoryError`) is in its stderr.
"""

from __future__ import annotations

import os
import re
import tempfile
from typing import IO, Final

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from dragoman_spark.java import use_java

# Bytes from the end of stderr that are searched for a reason.
WORDS_SIZE: Final = 64 * 1024
# Lines without a reason: the launcher's last line, stack frames, Java's additions to its own errors.
_IDLE: Final = re.compile(
    r"^\s*(at |\.\.\. \d+ more|Error: A fatal exception|Error: Could not create the Java|WARNING: )"
)

_spoken: IO[bytes] | None = None


def start_jvm(settings: dict[str, str], is_verbose: bool) -> None:
    """Start the Java process for these settings, unless this process has one already (or spark-submit provided it)."""
    global _spoken
    if SparkContext._gateway is not None or is_given():
        return
    use_java()
    conf = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        conf.set(key, value)
    if is_verbose:
        gateway = launch_gateway(conf)  # type: ignore[no-untyped-call]
    else:
        _spoken = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the process that writes to it)
        gateway = launch_gateway(conf, popen_kwargs={"stderr": _spoken})  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def is_given() -> bool:
    """Whether spark-submit started the Java process, and this one as its child."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def last_words() -> str:
    """The most informative line of the Java process's stderr; empty: there is none."""
    if _spoken is None:
        return ""
    # pread, not seek and read: the file offset is shared with the process that writes.
    start = max(os.fstat(_spoken.fileno()).st_size - WORDS_SIZE, 0)
    text = os.pread(_spoken.fileno(), WORDS_SIZE, start).decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _IDLE.match(line)]
    telling = [line for line in lines if re.search(r"Exception|Error|[Ii]nvalid|Unrecognized|refuse|must", line)]
    return (telling or lines or [""])[-1]
