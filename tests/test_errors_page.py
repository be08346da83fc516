"""docs/reference/errors.md: every code a user can meet is described there, and it describes no other."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import dragoman
import dragoman_lab.recordings.captures
from dragoman.errors import DragomanError
from dragoman.model.enums import REASON_NAMES, REFUSAL_CODES

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
# The first cell of each row of each table.
DESCRIBED = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))


def subclasses(kind: type[DragomanError]) -> list[type[DragomanError]]:
    return [kind, *(found for child in kind.__subclasses__() for found in subclasses(child))]


def raised() -> set[str]:
    """Codes of every error class of the broker and of recordings, wherever it is defined. The test doubles are not among them."""
    for module in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
        if not module.name.startswith("dragoman.testing") and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    packages = ("dragoman.", dragoman_lab.recordings.__name__)
    return {found.code for found in subclasses(DragomanError) if found.__module__.startswith(packages)}


def written() -> set[str]:
    """Codes that stand as texts where peers' oddities are counted and faults are logged."""
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src/dragoman").rglob("*.py")]
    return {code for text in sources for code in re.findall(r'(?:\bnote\([\w.]+, |\bcode=)"([A-Z0-9_]+)"', text)}


def test_every_error_class_is_described() -> None:
    assert raised() - DESCRIBED == set()


def test_every_counted_or_logged_code_is_described() -> None:
    assert written() - DESCRIBED == set()


@pytest.mark.parametrize("code", REFUSAL_CODES[1:])
def test_every_refusal_is_described(code: str) -> None:
    assert code in DESCRIBED


@pytest.mark.parametrize("reason", REASON_NAMES)
def test_every_reason_is_described(reason: str) -> None:
    assert reason in DESCRIBED


def test_nothing_is_described_that_does_not_exist() -> None:
    assert DESCRIBED - raised() - written() - set(REFUSAL_CODES) - set(REASON_NAMES) == set()


def test_exit_codes_are_those_of_the_errors() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\d)\b", PAGE, re.MULTILINE))
    known = {found.code: str(getattr(found, "exit_code", 1)) for found in subclasses(DragomanError)}
    assert rows
    assert {code: exit_code for code, exit_code in rows.items() if known[code] != exit_code} == {}
