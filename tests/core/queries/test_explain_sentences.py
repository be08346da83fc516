"""Every sentence `explain` can say is provoked by one of its tests."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

from tests.core.harness import InMemoryBroker
from tests.core.queries import (
    test_explain_last_workers,
    test_explain_messages,
    test_explain_queues,
    test_explain_workers,
)
from tests.core.queries.explaining import HEARD

ROOT = Path(__file__).parents[3]
ASKING = (test_explain_last_workers, test_explain_messages, test_explain_queues, test_explain_workers)


def sentence_parts() -> set[str]:
    """The constant parts of every text in core/queries/explain.py that has a word in it; docstrings and names of nothing left out."""
    tree = ast.parse(Path(ROOT, "src/dragoman/core/queries/explain.py").read_text(encoding="utf-8"))
    prose = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and isinstance(node.body[0], ast.Expr)
    }
    texts = {
        node.value.strip()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    }
    return {text for text in texts if re.search(r"[a-z]{3}", text)}


def test_every_sentence_of_explain_is_provoked_by_a_test() -> None:
    HEARD.clear()
    for module in ASKING:
        for name, test in list(vars(module).items()):
            if not name.startswith("test_"):
                continue
            parameters = list(inspect.signature(test).parameters)
            if parameters == ["broker"]:
                test(InMemoryBroker())
            elif not parameters:
                test()
    said = "\n".join(HEARD)
    assert [part for part in sorted(sentence_parts()) if part not in said] == []
