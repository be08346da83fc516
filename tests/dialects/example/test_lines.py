"""A dialect outside the package joins broker, SDK, pages, simulator and command line by its folder and DRAGOMAN_DIALECTS alone.

The registry is read when a program starts, so each test is a program of its own.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDER = Path(__file__).parent
MODULES = ("__init__", "description", "settings", "sessions", "endpoints")
LINES_MAX = 150


def run(*command: str) -> str:
    environ = os.environ | {"DRAGOMAN_DIALECTS": "tests.dialects.example.description"}
    environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def play(name: str, *args: str) -> str:
    return run("-m", "tests.dialects.example.plays", name, *args)


def code_lines(path: Path) -> int:
    """Without blank lines, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    left = set(range(1, len(text.splitlines()) + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            left -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    kept = [text.splitlines()[number - 1].strip() for number in left]
    return sum(1 for line in kept if line and not line.startswith("#"))


def test_the_example_is_short() -> None:
    assert sum(code_lines(FOLDER / f"{module}.py") for module in MODULES) <= LINES_MAX


def test_nobody_knows_it_unless_it_is_named() -> None:
    asked = "from dragoman.dialects.registry import DIALECTS_BY_NAME as names; print('lines' in names)"
    environ = {key: value for key, value in os.environ.items() if key != "DRAGOMAN_DIALECTS"}
    done = subprocess.run([sys.executable, "-c", asked], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_lines_reach_a_broker_by_hand(tmp_path: Path) -> None:
    play("by_hand", str(tmp_path))


def test_the_sdk_calls_and_works_through_it(tmp_path: Path) -> None:
    play("sdk", str(tmp_path))


def test_its_messages_cross_from_and_to_every_other_dialect(tmp_path: Path) -> None:
    play("crossings", str(tmp_path))


def test_a_message_survives_a_restart_and_is_named_in_every_view(tmp_path: Path) -> None:
    play("restart", str(tmp_path))


def test_it_stands_on_the_page_of_crossings() -> None:
    page = play("reference_page")
    assert "| **lines** |" in page
    assert "### lines → emqp" in page
    assert "### rq → lines" in page


def test_its_messages_are_counted_and_drawn_on_the_web_page(tmp_path: Path) -> None:
    play("web_page", str(tmp_path))


def test_the_simulator_has_peers_of_it() -> None:
    play("simulator")


def test_the_command_line_knows_it(tmp_path: Path) -> None:
    play("command_line", str(tmp_path))


def test_its_settings_and_its_listener_are_those_of_any_dialect() -> None:
    shown = run("-m", "dragoman", "config", "show")
    assert '"lines" = "tcp://127.0.0.1:7070"' in shown
    assert "[lines]" in shown
    assert "queues_max = 100" in shown


def test_a_name_that_leads_nowhere_is_told_to_the_operator() -> None:
    environ = os.environ | {"DRAGOMAN_DIALECTS": "nowhere.description"}
    command = [sys.executable, "-m", "dragoman", "config", "show"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "nowhere.description describes no dialect that can be added" in done.stderr
    assert "from environment variable DRAGOMAN_DIALECTS" in done.stderr


@pytest.mark.parametrize("clash", ["number", "listener", "name", "reserved"])
def test_a_description_that_contradicts_another_is_refused(clash: str) -> None:
    play("clash", clash)
