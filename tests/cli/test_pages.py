"""The reference pages say what the code does: the command line's is generated, the others are checked word by word."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click

from dragoman.cli.root import dragoman
from dragoman.model.enums import DIALECT_NAMES, FLAG_NAMES, REASON_NAMES, REFUSAL_CODES, STATE_NAMES
from dragoman.model.facts import layout
from dragoman.model.facts.layout import FACT_NAMES
from dragoman.runtime.admin.socket import OPERATIONS
from tests.docs.reference_pages import render

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_the_command_line_is_current() -> None:
    """`make docs` rewrites it."""
    page = (DOCS / "reference/cli.md").read_text(encoding="utf-8")
    assert page == render("cli.md", page)


def test_every_command_that_help_lists_is_there_under_its_name() -> None:
    """Help is shown without importing the commands."""
    context = click.Context(dragoman)
    names = {name: dragoman.get_command(context, name) for name in dragoman.list_commands(context)}
    assert {name: command.name if command else None for name, command in names.items()} == {
        name: name for name in names
    }


def test_help_and_version_import_nothing_heavy() -> None:
    heavy = ["asyncio", "msgspec", "rich", "structlog", "uvloop", "dragoman.core.core", "dragoman.client.app"]
    code = f"from dragoman.cli.root import run; import sys; run([sys.argv[1]]); print([m for m in {heavy} if m in sys.modules])"
    for flag in ("--help", "--version"):
        found = subprocess.run([sys.executable, "-c", code, flag], capture_output=True, text=True, check=True)
        assert found.stdout.splitlines()[-1] == "[]", flag


def test_the_page_of_facts_is_current() -> None:
    """`make docs` rewrites it."""
    page = (DOCS / "reference/facts.md").read_text(encoding="utf-8")
    assert page == render("facts.md", page)
    assert f"`boot_no << {layout.BOOT_SHIFT} | count`" in page
    assert f"Their kinds begin at {layout.CHECKPOINT}." in page
    assert f"{layout.NUMBER:>3}  i64  number\n{layout.SMALL:>3}  i64  small\n{layout.TEXT:>3}       text\n" in page


def explained(title: str) -> list[tuple[int, str]]:
    """The number and the word of each row in a section of the page of facts; each row has a meaning."""
    page = (DOCS / "reference/facts.md").read_text(encoding="utf-8")
    section = page.partition(f"### {title}\n")[2].partition("\n#")[0]
    return [
        (int(number), name) for number, name in re.findall(r"^\| (\d+) \| `(\w+)` \| .+ \|$", section, re.MULTILINE)
    ]


def test_the_page_of_facts_explains_no_word_that_does_not_exist() -> None:
    assert explained("Flags of an accepted message") == [(1 << bit, name) for bit, name in enumerate(FLAG_NAMES)]
    assert explained("Reasons") == list(enumerate(REASON_NAMES))
    assert explained("Refusals") == list(enumerate(REFUSAL_CODES[1:], 1))


def test_the_page_of_facts_has_every_word() -> None:
    page = (DOCS / "reference/facts.md").read_text(encoding="utf-8")
    for number, name in enumerate(FACT_NAMES[1:], 1):
        assert f"### `{name}` (kind {number})" in page or f"| {number} | `{name}` |" in page, name
    for number, name in enumerate(REASON_NAMES):
        assert f"| {number} | `{name}` |" in page, name
    for number, name in enumerate(REFUSAL_CODES[1:], 1):
        assert f"| {number} | `{name}` |" in page, name
    for number, name in enumerate(DIALECT_NAMES):
        assert f"| {number} | `{name}`" in page, name
    for bit, name in enumerate(FLAG_NAMES):
        assert f"| {1 << bit} | `{name}` |" in page, name
    for name in STATE_NAMES:
        assert f"`{name}`" in page, name


def test_the_page_of_the_admin_socket_has_every_operation_with_its_arguments() -> None:
    page = (DOCS / "reference/admin.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    for name, operation in OPERATIONS.items():
        for argument in operation.arguments.__struct_fields__:
            assert f"`{argument}`" in rows[name], (name, argument)
