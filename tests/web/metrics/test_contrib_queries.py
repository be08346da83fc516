"""The alerts and the dashboard in contrib/ ask only for what `/metrics` really prints."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.otel.receiver import receiver
from tests.runtime.daemon import Daemon
from tests.runtime.peers import Client, Worker
from tests.web.metrics.test_metrics import WITH_PAGE, get

CONTRIB = Path(__file__).parents[3] / "contrib"
ALERTS = (CONTRIB / "prometheus/alerts.yml").read_text(encoding="utf-8")
DASHBOARD = json.loads((CONTRIB / "grafana/dragoman.json").read_text(encoding="utf-8"))
OWN_LABELS = {"instance", "job"}  # Prometheus adds them
SELECTOR = re.compile(r"(dragoman_\w+)(?:\{([^}]*)\})?")
pytestmark = pytest.mark.timeout(180)


def alert_queries() -> list[str]:
    return re.findall(r"^ +expr: (.+)$", ALERTS, re.MULTILINE)


def dashboard_queries(node: Any = DASHBOARD) -> Iterator[str]:
    """Every `expr` and `query` anywhere in it."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("expr", "query") and isinstance(value, str) and "dragoman_" in value:
                yield value
            else:
                yield from dashboard_queries(value)
    elif isinstance(node, list):
        for item in node:
            yield from dashboard_queries(item)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, set[str]]]]:
    """By metric and label, the values that a broker with everything on prints."""
    with receiver() as collector:
        settings = ("lake.mode=on", f"otel.endpoint={collector.endpoint}")
        broker = Daemon(tmp_path_factory.mktemp("contrib") / "data", *settings, listen=WITH_PAGE).start()
        try:
            with Client(broker) as client, Worker(broker, b"mail") as worker:
                request_id = client.request(b"mail", b"reply-requested")
                worker.serve(1)
                client.result(request_id)
            found: dict[str, dict[str, set[str]]] = {}
            for family in text_string_to_metric_families(get(broker, "/metrics")[2]):
                for sample in family.samples:
                    labels = found.setdefault(sample.name, {})
                    for label, value in sample.labels.items():
                        labels.setdefault(label, set()).add(value)
            yield found
        finally:
            broker.kill()


@pytest.mark.parametrize("query", [*alert_queries(), *dashboard_queries()])
def test_a_query_asks_for_metrics_labels_and_words_that_exist(
    printed: dict[str, dict[str, set[str]]], query: str
) -> None:
    asked = SELECTOR.findall(query)
    assert asked
    for metric, matchers in asked:
        assert metric in printed, f"{metric} is not printed"
        for label, operator, text in re.findall(r'(\w+)(=~|=)"([^"]*)"', matchers):
            assert label in printed[metric] or label in OWN_LABELS, f"{metric} has no label {label}"
            if not text.startswith("$") and label not in OWN_LABELS:
                assert set(text.split("|") if operator == "=~" else [text]) <= printed[metric][label]
    for labels in re.findall(r"\bby \(([^)]*)\)", query):
        known = {label for metric, _ in asked for label in printed[metric]}
        assert set(labels.replace(" ", "").split(",")) <= known


def test_the_alerts_are_those_that_the_manual_promises() -> None:
    rules = re.split(r"\n +- alert: ", ALERTS)[1:]
    assert len(rules) == len(alert_queries())
    names = [rule.splitlines()[0] for rule in rules]
    assert {
        "DragomanDown",
        "DragomanRefusing",
        "DragomanQueueWithoutWorkers",
        "DragomanOldMessage",
        "DragomanQuarantineGrows",
        "DragomanJournalNearFull",
        "DragomanLakeBehind",
    } <= set(names)
    assert len(set(names)) == len(names)
    for rule in rules:
        assert "severity:" in rule
        assert "summary:" in rule


def test_one_broker_of_several_that_vanishes_is_down() -> None:
    """`absent` tells only of the last one: a target that cannot be scraped has nothing but Prometheus's own `up`."""
    down = next(rule for rule in re.split(r"\n +- alert: ", ALERTS) if rule.startswith("DragomanDown"))
    assert re.search(r"expr: .*\bor \(up == 0 and on \(job\) dragoman_up\)$", down, re.MULTILINE)


def test_panels_have_titles_and_lie_beside_each_other() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert panel["title"]
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, f"{panel['title']} lies over another"
        taken |= cells
