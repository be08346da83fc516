"""Words that the project no longer uses, and what replaced each: `python -m tests.retired_words`, part of `make check`.

One word has one meaning in code, documentation, commands and page. A word comes onto this list with the commit that replaces it. Decisions
and the changelog keep the words of their day.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "docs", "bench", "contrib", "tests")
FILES = ("README.md", "Makefile", "setup.py", "pyproject.toml")
KINDS = {".py", ".md", ".html", ".js", ".toml"}
HISTORY = ROOT / "docs" / "decisions"
THIS = Path(__file__)

RETIRED = {
    "Tongue": "DialectDescription",
    "Wish": "CallOptions",
    "Berth": "WorkerConnection",
    "SidePost": "WorkerSession",
    "Hub": "Outboxes",
    "Stretch": "SegmentView",
    "NodeEar": "NodeHandler",
    "Accord": "NegotiatedSession",
    "Hands": "HeldIds",
    "Asker": "ClientRecord",
    "Sought": "Filter",
    "Listed": "RowFilter",
    "pickiness": "body_constraint",
    "sightings": "record_filter",
    "absentees": "departed_workers",
    "law": "invariant",
    "laws": "invariants",
    "inner rooms": "inner packages",
    "compiled rooms": "compiled packages",
    "House": "InMemoryBroker",
    "KeptHouse": "JournaledBroker",
    "new_house": "new_broker",
    "Hall": "BrokerWithPeers",
    "hall": "broker",
    "Servant": "FakeWorker",
    "servant": "worker",
    "Shop": "EventMqSystem",
    "Guest": "FakeConnection",
    "guest": "peer",
    "guests": "peers",
    "Shelf": "Tier",
    "shelf": "tier",
    "is_hungry": "is_unfed",
}
PATTERN = re.compile(r"\b(" + "|".join(RETIRED) + r")\b")


def found_in(path: Path) -> list[str]:
    """One line for each retired word in a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        f"{path.relative_to(ROOT)}:{number}: {word!r} is now {RETIRED[word]!r}"
        for number, line in enumerate(lines, 1)
        for word in PATTERN.findall(line)
    ]


def texts() -> list[Path]:
    found = [ROOT / name for name in FILES]
    for folder in FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*") if path.suffix in KINDS and HISTORY not in path.parents]
    return [path for path in found if "egg-info" not in str(path) and path != THIS]


def main() -> int:
    complaints = [line for path in sorted(texts()) for line in found_in(path)]
    print("\n".join(complaints) or "no retired words")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
