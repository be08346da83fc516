"""Rules for the whole tree that are cheap to check: layout, sizes, names, pins, links, which build is under test."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dragoman
from dragoman.version import VERSION, build_flavour, version_line

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
LINES_MAX = 600
MODULES_MAX = 15  # side by side in one folder, without `__init__.py` and `__main__.py`
VAGUE_NAMES = {"utils", "helpers", "manager", "base", "misc", "common"}


def project() -> dict[str, list[str]]:
    """Return every list of requirements in pyproject.toml by its name."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {
        "build": table["build-system"]["requires"],
        "runtime": table["project"]["dependencies"],
        **table["project"]["optional-dependencies"],
    }


def bare(requirement: str) -> str:
    return re.split(r"[<>=!~\[; ]", requirement)[0].lower().replace("_", "-")


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {name.lower().replace("_", "-"): version for name, version in pairs}


def test_every_folder_of_the_sources_is_a_package() -> None:
    """Without `__init__.py` a folder is neither installed nor seen by import-linter."""
    folders = {path.parent for path in SOURCES}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_no_source_file_is_longer_than_one_sitting() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {name: length for name, length in lengths.items() if length > LINES_MAX} == {}


def test_no_folder_of_the_lab_is_crowded() -> None:
    folders = {path.parent for path in SOURCES if path.is_relative_to(ROOT / "src/dragoman_lab")}
    counts = {str(folder.relative_to(ROOT)): len(list(folder.glob("[!_]*.py"))) for folder in folders}
    assert {folder: count for folder, count in counts.items() if count > MODULES_MAX} == {}


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [str(path) for path in SOURCES if path.stem in VAGUE_NAMES] == []


def test_every_module_begins_with_a_docstring() -> None:
    silent = [
        str(path) for path in SOURCES if not path.read_text(encoding="utf-8").lstrip().startswith(('"""', 'r"""'))
    ]
    assert silent == []


def test_compiled_modules_never_land_in_the_sources() -> None:
    """One there would make the pure run a compiled one."""
    assert [str(path) for path in (ROOT / "src").rglob("*.so")] == []


@pytest.mark.parametrize(
    "group", ["build", "runtime", "test", "check", "bench", "lake", "spark", "delta", "spark-test"]
)
def test_every_requirement_is_pinned(group: str) -> None:
    assert [name for name in map(bare, project()[group]) if name not in pins()] == []


def test_the_pins_name_no_index() -> None:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert not re.search(r"https?:|file:|--|@", text)


def test_relative_links_in_the_documentation_lead_somewhere() -> None:
    dead = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target and not (page.parent / target).exists():
                dead.append(f"{page.relative_to(ROOT)} -> {target}")
    assert dead == []


def test_every_test_file_that_the_documentation_names_exists() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    named = {
        (page.name, path)
        for page in pages
        for path in re.findall(r"\btests/[\w/]+\.py", page.read_text(encoding="utf-8"))
    }
    examples = {("export-test.md", "tests/test_lost_mail.py")}
    assert sorted((page, path) for page, path in named - examples if not (ROOT / path).exists()) == []


def test_no_folder_of_tests_is_about_a_package_that_is_gone() -> None:
    """A folder of tests has the name of what it tests in `src/dragoman`, or is one of the suites of the whole system."""
    suites = {"bench", "chaos", "crossings", "damage", "docs", "eventmq", "fuzz", "golden", "independent", "siege"}
    packages = {"lab", "spark"} | {path.name for path in (ROOT / "src" / "dragoman").iterdir() if path.is_dir()}
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/*") if path.suffix == ".py"}
    assert folders - suites - packages == set()


def test_the_build_under_test_is_the_one_that_was_asked_for() -> None:
    from_sources = Path(dragoman.__file__).is_relative_to(ROOT / "src")
    if from_sources:
        assert build_flavour() == "pure"
    else:
        probe = subprocess.run(
            [sys.executable, "setup.py", "probe"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert build_flavour() == ("compiled" if probe.stdout.strip() == "compiled" else "pure")
    assert version_line() == f"dragoman {VERSION} ({build_flavour()})"


def test_make_help_lists_every_door() -> None:
    shown = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    doors = "setup up demo pipeline quick test check format docs screenshot bench bench-pipeline clean"
    long_runs = "longest machines sim chaos fuzz damage siege soak"
    for door in f"{doors} {long_runs}".split():
        assert re.search(rf"^  make {door} +\S", shown, re.MULTILINE), door
