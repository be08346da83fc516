"""`/metrics`, `/livez` and `/readyz` of a real broker, read by Prometheus's own parsers."""

from __future__ import annotations

import json
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from dragoman.core.queries import stuck
from dragoman.limits import ADMIN_PAGE_MAX
from dragoman.runtime.config.listeners import LISTENERS
from dragoman.web.metrics.families import FINDINGS
from dragoman.web.metrics.metric_labels import OTHER
from tests.runtime.conftest import NewBroker, new_broker
from tests.runtime.daemon import FREE, Daemon
from tests.runtime.peers import Client, Worker
from tests.waiting import wait_for

__all__ = ["new_broker"]

PAGE_S = 60.0
WITH_PAGE = dict.fromkeys(LISTENERS, FREE) | {"http": FREE}
OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
pytestmark = pytest.mark.timeout(180)


def get(broker: Daemon, path: str, **headers: str) -> tuple[int, str, str]:
    """Status, content type and body."""
    request = urllib.request.Request(broker.card["listeners"]["http"] + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=PAGE_S) as response:
            return response.status, response.headers["Content-Type"], response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def samples(broker: Daemon) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample by name and labels; a series that came twice is a fault."""
    status, _, text = get(broker, "/metrics")
    assert status == 200
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for family in read_text(text):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


def value(broker: Daemon, name: str, **labels: str) -> float:
    return samples(broker)[name, tuple(sorted(labels.items()))]


def queues_shown(broker: Daemon) -> set[str]:
    return {dict(labels)["queue"] for name, labels in samples(broker) if name == "dragoman_queue_accepted_total"}


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Ten messages done, two waiting without a worker."""
    broker = Daemon(tmp_path_factory.mktemp("metrics") / "data", listen=WITH_PAGE).start()
    try:
        with Client(broker) as client, Worker(broker, b"mail", slots=10) as worker:
            for _ in range(10):
                client.request(b"mail", b"reply-requested")
            worker.serve(10)
            for _ in range(10):
                client.settled_id()
            client.keep(b"lonely")
            client.keep(b"lonely")
        yield broker
    finally:
        broker.kill()


def test_the_numbers_are_the_brokers(busy: Daemon) -> None:
    assert value(busy, "dragoman_up") == 1
    assert value(busy, "dragoman_messages_accepted_total") == 12
    assert value(busy, "dragoman_messages_done_total") == 10
    assert value(busy, "dragoman_messages", state="waiting") == 2
    assert value(busy, "dragoman_queue_messages", queue="lonely", state="waiting") == 2
    assert value(busy, "dragoman_queue_workers", queue="lonely") == 0
    assert value(busy, "dragoman_stuck", kind="queue_without_worker") == 1
    assert value(busy, "dragoman_crossings_total", client="emqp", worker="emqp") == 10
    assert value(busy, "dragoman_dialect_accepted_total", dialect="emqp") == 12
    assert value(busy, "dragoman_journal_max_bytes") == 10 * 2**30
    assert value(busy, "dragoman_index_trouble") == 0
    first_s = value(busy, "dragoman_queue_oldest_seconds", queue="lonely")
    wait_for("the oldest to grow older", lambda: value(busy, "dragoman_queue_oldest_seconds", queue="lonely") > first_s)


def test_histograms_count_every_message_and_only_rise_from_bound_to_bound(busy: Daemon) -> None:
    found = samples(busy)
    assert found["dragoman_message_wait_seconds_count", ()] == found["dragoman_message_total_seconds_count", ()] == 10
    assert found["dragoman_queue_total_seconds_count", (("queue", "mail"),)] == 10
    buckets = [
        (float(dict(labels)["le"]), count)
        for (name, labels), count in found.items()
        if name == "dragoman_message_total_seconds_bucket"
    ]
    assert buckets == sorted(buckets)
    assert [count for _, count in buckets] == sorted(count for _, count in buckets)
    assert buckets[-1] == (float("inf"), 10)
    assert 0 < found["dragoman_message_total_seconds_sum", ()] < 10 * 60


def test_both_formats_say_the_same(busy: Daemon) -> None:
    _, kind, text = get(busy, "/metrics", Accept=OPENMETRICS)
    assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    new = {family.name: family for family in read_openmetrics(text)}
    _, kind, text = get(busy, "/metrics", Accept="text/plain")
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    old = {family.name: family for family in read_text(text)}
    assert {name.removesuffix("_info") for name in old} == set(new)
    assert new["dragoman_build"].type == "info"
    for name, family in new.items():
        if family.type in ("counter", "histogram"):
            assert [sample.name for sample in family.samples] == [sample.name for sample in old[name].samples]
        assert family.documentation


def test_a_client_that_says_nothing_gets_plain_text(busy: Daemon) -> None:
    assert get(busy, "/metrics", Accept="*/*")[1].startswith("text/plain")
    assert get(busy, "/metrics", Accept="application/openmetrics-text;q=0")[1].startswith("text/plain")


def test_labels_are_bounded_words(busy: Daemon) -> None:
    names = {label for _, labels in samples(busy) for label, _ in labels}
    assert names == {
        "queue",
        "state",
        "dialect",
        "client",
        "worker",
        "reason",
        "kind",
        "le",
        "version",
        "build",
        "durability",
    }


def test_every_finding_there_is_has_a_series() -> None:
    assert set(FINDINGS) == {*stuck.KINDS, "lake_behind"}


def test_alive_and_ready(busy: Daemon) -> None:
    assert get(busy, "/livez")[0] == 200
    assert get(busy, "/readyz")[0] == 200


def test_the_busiest_queues_have_names_and_the_rest_is_one_sum(new_broker: NewBroker) -> None:
    broker = new_broker("web.metrics_queues_max=2", listen=WITH_PAGE).start()
    with Client(broker) as client:
        for count, queue in ((3, b"busy"), (1, b"rare"), (2, b"often"), (1, b"seldom")):
            for _ in range(count):
                client.keep(queue)
        assert queues_shown(broker) == {"busy", "often", OTHER}
        assert value(broker, "dragoman_queue_accepted_total", queue=OTHER) == 2
        assert value(broker, "dragoman_queue_messages", queue=OTHER, state="waiting") == 2
        for _ in range(9):
            client.keep(b"rare")
        assert queues_shown(broker) == {"busy", "often", OTHER}, "a series that came and went would look like a jump"
        assert value(broker, "dragoman_queue_accepted_total", queue=OTHER) == 11


def test_a_queue_keeps_its_series_when_a_thousand_others_are_deeper(new_broker: NewBroker) -> None:
    broker = new_broker("web.metrics_queues_max=1", listen=WITH_PAGE).start()
    with Client(broker) as client:
        with Worker(broker, b"done") as worker:
            client.request(b"done", b"reply-requested")
            worker.serve(1)
            client.settled_id()
        assert queues_shown(broker) == {"done"}
        for number in range(ADMIN_PAGE_MAX + 1):
            client.keep(b"deep %d" % number)
        page = broker.ask("queue_tallies", order="depth", limit=ADMIN_PAGE_MAX)["queues"]
        assert "done" not in [view["queue"] for view in page]
        assert queues_shown(broker) == {"done", OTHER}
        assert value(broker, "dragoman_queue_done_total", queue="done") == 1
        assert value(broker, "dragoman_queue_accepted_total", queue=OTHER) == ADMIN_PAGE_MAX + 1


def test_hostile_names_break_no_line_and_double_no_series(new_broker: NewBroker) -> None:
    broker = new_broker(listen=WITH_PAGE).start()
    names = [b'a"b\\c', b"new\nline", b"\xff", b"\\xff", OTHER.encode(), b"le"]
    with Client(broker) as client:
        for name in names:
            client.keep(name)
    found = {
        dict(labels)["queue"]: count
        for (name, labels), count in samples(broker).items()
        if name == "dragoman_queue_accepted_total"
    }
    assert found == {'a"b\\c': 1, "new\nline": 1, "\\xff": 1, "le": 1, OTHER: 2}
    _, _, text = get(broker, "/metrics", Accept=OPENMETRICS)
    assert any(family.name == "dragoman_queue_accepted" for family in read_openmetrics(text))


def test_a_broker_that_drains_is_alive_and_not_ready(new_broker: NewBroker) -> None:
    broker = new_broker("drain.limit_s=150", listen=WITH_PAGE).start()
    wait_for("the page", lambda: get(broker, "/livez")[0] == 200, PAGE_S)
    with Client(broker) as client, Worker(broker, b"mail") as worker:
        client.request(b"mail")
        worker.take()
        broker.send_signal(signal.SIGTERM)

        def answer() -> dict[str, Any] | None:
            status, _, text = get(broker, "/readyz")
            return json.loads(text) if status == 503 else None

        said = wait_for("the broker to say that it drains", answer)
        assert said["code"] == "DRAINING"
        assert "takes no new work" in said["words"]
        assert get(broker, "/livez")[0] == 200
        assert value(broker, "dragoman_refusing", reason="DRAINING") == 1


def test_a_broker_that_does_not_answer_is_down_and_its_page_says_so(new_broker: NewBroker) -> None:
    broker = new_broker(listen=WITH_PAGE).start()
    assert value(broker, "dragoman_up") == 1
    broker.send_signal(signal.SIGSTOP)
    try:
        _, _, text = get(broker, "/metrics")
        assert text.splitlines()[-1] == "dragoman_up 0"
        assert get(broker, "/livez")[0] == get(broker, "/readyz")[0] == 503
    finally:
        broker.send_signal(signal.SIGCONT)


def test_with_a_token_machines_show_it_as_a_bearer(new_broker: NewBroker) -> None:
    token = "the-token-of-those-who-read"
    broker = new_broker(listen=WITH_PAGE, env={"DRAGOMAN_WEB__READ_TOKEN": token}).start()
    assert get(broker, "/metrics")[0] == 401
    assert get(broker, "/metrics", Authorization="Bearer something-else-entirely")[0] == 401
    assert get(broker, "/metrics", Authorization=f"Bearer {token}")[0] == 200
    assert get(broker, "/readyz", Authorization=f"Bearer {token}")[0] == 200
