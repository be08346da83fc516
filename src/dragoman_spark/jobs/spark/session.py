"""One Spark session, with the pipeline's settings: `with open_session("run") as session`. The only module that creates one.

Local by default, without a server to start. `remote` is the address of a Spark Connect server, `master` that of a cluster; under
spark-submit neither is needed and its own settings apply. `conf` overrides everything here.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dragoman.errors import SparkUnreachable
from dragoman_spark.jobs.spark.errors import readable_at_start, spark_is_there

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# For every session; a Connect server accepts these, too.
ANSWERS: Final[dict[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    # Spark's own default is a format that other readers treat as legacy.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
    # About 3 M facts: what one task sorts or hashes fits in its share of 1 GB.
    "spark.sql.files.maxPartitionBytes": "64m",
}
# For a session on this machine.
LOCAL: Final[dict[str, str]] = {
    "spark.ui.enabled": "false",
    # A run has some hundred plans; Spark caches the code of a hundred and would compile the rest again for every batch.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # PySpark would look up the caller's line for every column expression, which takes longer than creating the expression.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Files are passed to Spark one by one; listing some hundred of them needs no job.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "512",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
QUIET: Final[dict[str, str]] = {"spark.ui.showConsoleProgress": "false"}
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
# Spark compiles some hundred plans, and the JVM stops compiling (or drops other code) when its code cache is full.
CODE_ROOM: Final = "-XX:ReservedCodeCacheSize=512m"
# Short jobs on few cores: pauses do not matter, and concurrent collector threads would take the cores from the work.
COLLECTOR: Final = "-XX:+UseParallelGC"
LOGGING: Final = Path(__file__).with_name("log4j2.properties")

MEMORY_MAX: Final = 4 * 1024**3
# Tasks of a shuffle per core: a second wave evens out the first one's differences; AQE merges those that are too small.
WAVES: Final = 2
# A master or Connect server that responds at all does so within this; Spark itself would try for minutes.
REACH_WAIT_S: Final = 5.0
CONNECT_PORT: Final = 15002


@contextmanager
def open_session(
    app: str,
    master: str | None = None,
    remote: str | None = None,
    conf: Mapping[str, str] | None = None,
    is_verbose: bool = False,
) -> Iterator[SparkSession]:
    """A session, stopped at the end. An existing session of this process is used as it is, and left running."""
    spark_is_there()
    from pyspark.sql import SparkSession

    if not is_verbose:
        _hush()
    present = SparkSession.getActiveSession()
    if present is not None:
        yield present
        return
    with readable_at_start(remote or master or "local[*]"):
        session = _connected(app, remote, conf or {}) if remote else _started(app, master, conf or {}, is_verbose)
    try:
        yield session
    finally:
        session.stop()
        if remote:
            # PySpark leaves this behind, and a local session of the same process would then behave as a remote one.
            os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)


def settings_for(master: str, conf: Mapping[str, str], is_verbose: bool = False) -> dict[str, str]:
    """All settings for a session on `master`, by Spark's names."""
    settings = dict(ANSWERS)
    if is_local(master):
        settings |= LOCAL
        settings["spark.driver.memory"] = f"{memory_for_driver() // 1024**2}m"
        settings["spark.sql.shuffle.partitions"] = str(WAVES * cores_of(master))
    if not is_verbose:
        settings |= QUIET
    settings |= conf
    further = settings.get(JAVA_OPTIONS, "")
    options = [] if is_verbose else [f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"]
    if is_local(master):
        options.append(CODE_ROOM)
    if is_local(master) and not _has_collector(further, settings.get("spark.driver.defaultJavaOptions", "")):
        options.append(COLLECTOR)
    if options:
        # Before the user's options: of two, Java uses the later.
        settings[JAVA_OPTIONS] = " ".join([*options, further]).rstrip()
    return settings


def _has_collector(*options: str) -> bool:
    """Whether a garbage collector is already chosen: with two choices Java does not start."""
    said = [*options, os.environ.get("JAVA_TOOL_OPTIONS", ""), os.environ.get("JDK_JAVA_OPTIONS", "")]
    return any(re.search(r"-XX:\+Use\w+GC\b", one) for one in said)


def is_local(master: str) -> bool:
    """Whether all processes of the session run on this machine."""
    return master == "local" or master.startswith(("local[", "local-cluster["))


def cores_of(master: str) -> int:
    """The number of concurrent tasks on a local master."""
    named = re.match(r"local(?:-cluster)?\[\s*(\d+|\*)\s*(?:,\s*(\d+))?", master)
    if named is None:
        return 1
    if master.startswith("local-cluster"):
        return int(named[1]) * int(named[2] or 1)
    return os.cpu_count() or 1 if named[1] == "*" else int(named[1])


def memory_for_driver() -> int:
    """Bytes: half of this machine's or container's memory; at most MEMORY_MAX."""
    here = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        here = min(here, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    except (OSError, ValueError):  # no such file, or "max"
        pass
    return min(MEMORY_MAX, here // 2)


def _hush() -> None:
    """Disable the loggers with which PySpark logs an exception as JSON before it raises it."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _started(app: str, master: str | None, conf: Mapping[str, str], is_verbose: bool) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    from dragoman_spark.jobs.spark.jvm import is_given, start_jvm

    if is_given():
        SparkContext._ensure_initialized()
        told = dict(SparkConf().getAll())
        settings = settings_for(master or told.get("spark.master", ""), {}, is_verbose) | told | dict(conf)
    else:
        master = master or "local[*]"
        _reach(master, "spark://", 7077)
        settings = settings_for(master, conf, is_verbose)
    if master:
        settings["spark.master"] = master
    settings["spark.app.name"] = f"dragoman {app}"
    start_jvm(settings, is_verbose)
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    _try_out(session, conf)
    return session


def _connected(app: str, remote: str, conf: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    if not remote.startswith("sc://"):
        raise SparkUnreachable(remote, "the address of a Connect server begins with sc://")
    _reach(remote, "sc://", CONNECT_PORT)
    session = SparkSession.builder.remote(remote).appName(f"dragoman {app}").getOrCreate()
    for key, value in ANSWERS.items():
        session.conf.set(key, value)
    _try_out(session, conf)
    return session


def _try_out(session: SparkSession, conf: Mapping[str, str]) -> None:
    """Set each setting in the session: only then Spark validates its value, not at the start."""
    for key, value in conf.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)


def _reach(address: str, scheme: str, port_default: int) -> None:
    """Raise for an address without a listener; of several, one is enough."""
    if not address.startswith(scheme):
        return
    reasons = []
    for place in re.split(r"[/;]", address.removeprefix(scheme))[0].split(","):
        host, _, port = place.rpartition(":") if re.search(r":\d+$", place) else (place, "", "")
        try:
            socket.create_connection((host.strip("[]"), int(port or port_default)), REACH_WAIT_S).close()
        except OSError as error:
            reasons.append(f"{place}: {error.strerror or error}")
        else:
            return
    raise SparkUnreachable(address, "; ".join(reasons))
