"""Every shell and Python block of the README and of docs/start runs as printed, and prints what the page says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import NOT_RUN, Block, Clone, blocks_of, plain, without_comment

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "start").glob("*.md"))]
LANGUAGES = {"sh", "python", "text", "toml", "json"}

pages = pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Clone]:
    made = Clone(tmp_path)
    yield made
    made.close()


@pages
@pytest.mark.timeout(300)
def test_the_blocks_of_a_page_run_as_printed(page: Path, clone: Clone) -> None:
    for block in blocks_of(page):
        if block.language in ("sh", "python"):
            clone.run(block)


@pages
def test_every_block_names_its_language(page: Path) -> None:
    assert [
        f"line {block.line}: {block.language!r}" for block in blocks_of(page) if block.language not in LANGUAGES
    ] == []


def test_every_line_that_is_not_run_is_on_a_page() -> None:
    shown = {
        without_comment(line)
        for page in PAGES
        for block in blocks_of(page)
        if block.language == "sh"
        for line in block.text.splitlines()
    }
    assert set(NOT_RUN) - shown == set()


@pages
def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert named - known == set()


def test_a_block_that_prints_something_else_is_found(clone: Clone) -> None:
    clone.run(Block("sh", "echo one\n", 1, "one\n"))
    with pytest.raises(AssertionError, match="line 7 prints something else"):
        clone.run(Block("sh", "echo two\n", 7, "three\n"))
    with pytest.raises(AssertionError, match="it failed"):
        clone.run(Block("sh", "false\n", 9))


def test_only_what_differs_between_runs_is_left_out_of_the_comparison() -> None:
    told = "message 1.1 (b012f5ed-b1e0-487b-a479-000000000001)  12:00:01.123   +5 ms\n"
    assert plain(told) == ["message 1.1 (ID) TIME SPAN"]


def test_the_picture_of_the_readme_is_light() -> None:
    assert (ROOT / "docs" / "images" / "overview.png").stat().st_size < 200_000
