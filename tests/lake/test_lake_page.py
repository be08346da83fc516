"""docs/reference/lake.md says what the schema and the splitter say."""

from __future__ import annotations

import re
from pathlib import Path

from dragoman import limits
from dragoman.lake import schema
from dragoman.lake.store import Lake
from dragoman.lake.writer import LakeWriter
from dragoman.model.facts.layout import FACT_NAMES, WORKER_JOINED
from dragoman.model.facts.records import FactLog
from tests.docs.reference_pages import render
from tests.lake.journals import BROKER_ID, NOON_NS, read_all
from tests.model.facts.test_columns import every_fact, facts_of

PAGE = Path(__file__).parents[2] / "docs/reference/lake.md"


def test_the_page_is_current() -> None:
    """`make docs` rewrites it."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == render("lake.md", page)
    for limit in (
        f"a file {limits.LAKE_INTERVAL_S:g} s after",
        f"or at {limits.LAKE_FILE_ROWS:,} rows",
        f"they make {limits.LAKE_FILE_ROWS:,} rows, when there are {limits.LAKE_PARTS_MAX} of them",
        f"most {limits.LAKE_HISTORY_ROWS_MAX:,} rows",
        f"stay for {limits.LAKE_INCOMING_KEEP_S / 3600:g} hours",
        f"schema version **{schema.VERSION}**",
    ):
        assert limit in page


def listed() -> dict[str, set[str]]:
    """The columns of each kind, as the page lists them."""
    names = {column.name for column in schema.COLUMNS}
    rows: dict[str, set[str]] = {}
    section = PAGE.read_text(encoding="utf-8").partition("## What each kind says")[2].partition("\n## ")[0]
    for kinds, columns in re.findall(r"^\| (`.+?`) \| (.+) \|$", section, re.MULTILINE):
        said = set(re.findall(r"\w+", re.sub(r"\(.*?\)|\..*", "", columns))) & names
        rows |= dict.fromkeys(re.findall(r"`(\w+)`", kinds), said)
    return rows


def test_the_page_lists_for_each_kind_the_columns_that_its_facts_fill(tmp_path: Path) -> None:
    block = every_fact()
    log = FactLog()
    log.numbered(WORKER_JOINED, 9, 1, b"listener\tremote\tid\t1 q")
    count = len(facts_of(block))
    w = LakeWriter(Lake(str(tmp_path)), BROKER_ID, "full")
    w.add(block, 1, count, NOON_NS)
    w.add(log.take(), count + 1, 1, NOON_NS)
    w.flush()
    filled: dict[str, set[str]] = {}
    for row in read_all(w.lake).to_pylist():
        said = {name for name, value in row.items() if value is not None} - {"broker_id", "lsn", "kind", "at"}
        filled.setdefault(FACT_NAMES[row["kind"]], set()).update(said)
    assert set(filled) == set(FACT_NAMES) - {""}
    assert listed() == filled
