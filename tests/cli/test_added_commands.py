"""Commands of other packages: they join by entry points, and `dragoman` names none of these packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

import dragoman as package
from dragoman.cli.root import dragoman

WITHOUT = """\
import sys
sys.modules[sys.argv[1]] = None
from dragoman.cli.root import run
sys.exit(run(sys.argv[2:]))
"""


def ran(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A Python process with what is under test, and before it `path`."""
    folders = [*([str(path)] if path else []), str(Path(package.__file__).parents[1])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    return subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("name", "behind"),
    [("export-test", "explain"), ("replay-peer", "tap"), ("generate", "dismiss"), ("pipeline", "bench")],
)
def test_an_added_command_is_listed_behind_the_one_it_names(name: str, behind: str) -> None:
    names = dragoman.list_commands(click.Context(dragoman))
    assert names.index(name) == names.index(behind) + 1


def test_a_package_that_is_missing_has_no_commands() -> None:
    assert "generate " not in ran("-c", WITHOUT, "dragoman_lab", "--help").stdout
    refused = ran("-c", WITHOUT, "dragoman_lab", "generate")
    assert refused.returncode == 2
    assert "No such command 'generate'" in refused.stderr


def test_help_imports_only_the_tables_of_other_packages() -> None:
    code = (
        "import sys; from dragoman.cli.root import run; run(['--help']); "
        "print(sorted(name for name in sys.modules if name.startswith(('dragoman_lab', 'dragoman_spark'))))"
    )
    tables = ["dragoman_lab", "dragoman_lab.commands", "dragoman_spark", "dragoman_spark.commands"]
    assert ran("-c", code).stdout.splitlines()[-1] == str(tables)


def test_any_installed_package_can_add_a_command(tmp_path: Path) -> None:
    info = tmp_path / "greeter-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greeter\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[dragoman.commands]\ngreeter = greeter:COMMANDS\n")
    (tmp_path / "greeter.py").write_text(
        "import click\n"
        "COMMANDS = {'greet': ('greeter:greet', 'Say hello.', 'nothing'), 'up': ('greeter:greet', 'Not this.', 'up')}\n"
        "@click.command()\n"
        "def greet():\n"
        "    click.echo('hello')\n"
    )
    assert ran("-m", "dragoman", "greet", path=tmp_path).stdout == "hello\n"
    shown = ran("-m", "dragoman", "--help", path=tmp_path).stdout
    assert shown.splitlines()[-1].split() == ["greet", "Say", "hello."]
    assert "Not this." not in shown
