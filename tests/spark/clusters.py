"""Real Sparks for a test: a master with two workers, a Connect server, and the `dragoman pipeline` command run against them.

Everything is started from pip's PySpark, on the loopback address and on ports that the system gives, and ends by its own process id.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from dragoman_spark.java import use_java
from dragoman_spark.jobs.options import SILENT, Options
from dragoman_spark.jobs.stream import run
from tests.spark.lives_by_chance import facts_by_chance
from tests.spark.small_lakes import cut, lay_all
from tests.spark.tables_on_disk import rows_of_all

HOST = "127.0.0.1"
SEED = 5
# A driver and two executors of one core and 1024 MB, each a process: every row goes over a socket, every class is sent or found there.
LOCAL_CLUSTER = "local-cluster[2,1,1024]"
# Where many share a machine a Java process takes a minute to say its first word.
START_WAIT_S = 180
RUN_WAIT_S = 540
END_WAIT_S = 20
# Small work: compiling well costs more than it gains.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    "spark.sql.shuffle.partitions": "2",
}


@dataclass(frozen=True)
class Asked:
    """A lake, and what a session in this process makes of it."""

    lake: Path
    facts: int
    rows: dict[str, list[str]]


@functools.cache
def asked(spark: SparkSession, folder: Path) -> Asked:
    """The same for all tests of a run: three files, one batch."""
    print("seed", SEED)
    facts = facts_by_chance(SEED, 500)
    lake, out = folder / "asked" / "lake", folder / "asked" / "tables"
    lay_all(lake, cut(facts, 3))
    run(spark, str(lake), str(out), Options(), SILENT)
    return Asked(lake, len(facts), rows_of_all(out))


def spark_home(folder: Path) -> Path:
    """PySpark's own, by links: Spark writes into its home what executors say, and an installed package is not the place for it."""
    home = folder / "spark"
    home.mkdir()
    for name in ("bin", "jars", "python"):
        (home / name).symlink_to(Path(pyspark.__file__).parent / name)
    return home


def pipeline(home: Path, *arguments: object) -> dict[str, Any]:
    """Run `dragoman pipeline` as a person does; what it prints."""
    command = [sys.executable, "-m", "dragoman", "pipeline", *map(str, arguments), "--json"]
    done = subprocess.run(
        command, env=_environ(home), capture_output=True, text=True, timeout=RUN_WAIT_S, check=False, cwd=home
    )
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-4000:]}"
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def executors(home: Path) -> int:
    """The number of executors that finished a task. A server that stops starts some more, which do nothing."""
    return sum("Finished task" in log.read_text(errors="replace") for log in home.glob("work/app-*/*/stderr"))


def said(settings: dict[str, str]) -> list[str]:
    """Settings as arguments of a command."""
    return [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]


@contextmanager
def two_workers(home: Path) -> Iterator[str]:
    """A standalone master with two workers of one core; its address."""
    with ExitStack() as stack:
        master = ["org.apache.spark.deploy.master.Master", "--host", HOST, "--port", "0", "--webui-port", "0"]
        address = stack.enter_context(_started(home, "master", r"Starting Spark master at (spark://\S+)", *master))
        worker = ["org.apache.spark.deploy.worker.Worker", "--host", HOST, "--port", "0", "--webui-port", "0"]
        worker += ["--cores", "1", "--memory", "1g", "--work-dir", str(home / "work"), address]
        for name in ("worker-1", "worker-2"):
            stack.enter_context(_started(home, name, "(Successfully registered) with master", *worker))
        yield address


@contextmanager
def connect_server(home: Path, master: str) -> Iterator[str]:
    """A Spark Connect server with a session on `master`; its address."""
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    settings = {
        **SETTINGS,
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": "0",
    }
    command = ["org.apache.spark.deploy.SparkSubmit", "--class", server, "--master", master]
    ready = r"Spark Connect server started at: \S*:(\d+)"
    with _started(home, "connect", ready, *command, *said(settings), "spark-internal") as port:
        yield f"sc://{HOST}:{port}"


@contextmanager
def _started(home: Path, name: str, ready: str, *command: str) -> Iterator[str]:
    """One Java process, from the line of its log that says that it is ready (the first group of it) to its end."""
    log = home / f"{name}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [str(home / "bin/spark-class"), *command], env=_environ(home), stdout=file, stderr=file, cwd=home
        )
    try:
        yield _awaited(process, log, ready)
    finally:
        process.terminate()
        try:
            process.wait(END_WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _awaited(process: subprocess.Popen[bytes], log: Path, ready: str) -> str:
    deadline = time.monotonic() + START_WAIT_S
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(ready, log.read_text(encoding="utf-8", errors="replace")):
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"not ready: {log.read_text(encoding='utf-8', errors='replace')[-4000:]}")


def _environ(home: Path) -> dict[str, str]:
    """Nothing of the session that this process may have."""
    environ = {key: value for key, value in os.environ.items() if not re.match("_?(PY)?SPARK", key)}
    use_java(environ)
    return environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_DAEMON_MEMORY": "1g",
        "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS,
    }
