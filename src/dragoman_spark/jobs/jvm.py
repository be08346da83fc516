"""The Java process that a session lives in: started quietly, and its last words kept for when it fails.

What it writes to stderr goes to a file without a name instead of the terminal. PySpark reports no more than that it exited; the
reason (`Invalid maximum heap size`, `OutOfMemoryError`) is in what it wrote.
"""

from __future__ import annotations

import os
import re
import tempfile
from typing import IO, Final

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from dragoman_spark.java import use_java

# Bytes from the end of its words that are looked through for a reason.
WORDS_SIZE: Final = 64 * 1024
# Lines that say nothing of why: the launcher's last line, places in a trace, what Java adds to its own refusals.
_IDLE: Final = re.compile(
    r"^\s*(at |\.\.\. \d+ more|Error: A fatal exception|Error: Could not create the Java|WARNING: )"
)

_spoken: IO[bytes] | None = None


def start_jvm(settings: dict[str, str], is_verbose: bool) -> None:
    """Start the Java process for these settings, unless this process has one already (or spark-submit gave it one)."""
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
    """The line of what the Java process said that tells most about its end; empty: none does."""
    if _spoken is None:
        return ""
    # Neither seek nor read: the place in the file is shared with the process that writes.
    start = max(os.fstat(_spoken.fileno()).st_size - WORDS_SIZE, 0)
    text = os.pread(_spoken.fileno(), WORDS_SIZE, start).decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _IDLE.match(line)]
    telling = [line for line in lines if re.search(r"Exception|Error|[Ii]nvalid|Unrecognized|refuse|must", line)]
    return (telling or lines or [""])[-1]
