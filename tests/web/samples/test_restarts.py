"""What was before a start is on the page again after it: the same numbers, and what is new on top of them, nothing twice."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from typing import Any

import psutil
import pytest

from dragoman.client.app import App
from dragoman.journal.tools.backup import restore
from dragoman.model.units import SECOND_NS
from dragoman.web.samples.history import SLOT_NS
from tests.cli.broker import FakeWorker
from tests.runtime.daemon import Daemon
from tests.waiting import wait_for
from tests.web.conftest import NewBroker
from tests.web.load import all_dialects
from tests.web.visitor import Visitor

PAGE_S = 60.0
pytestmark = pytest.mark.timeout(180)


# -- what a page says -------------------------------------------------------------------------------------------------------


def matrix(visitor: Visitor) -> list[list[str]]:
    rows = re.findall(r'<tr><th scope="row">(\w+)</th>(.*?)</tr>', visitor.page("/crossings"))
    return [[name, *re.findall(r"<td[^>]*>(.*?)</td>", cells)] for name, cells in rows]


def mix(visitor: Visitor) -> dict[str, str]:
    found = re.findall(r'<div class="mix"><span>(\w+)</span>.*?<span class="n">(.*?)</span>', visitor.page("/"))
    return dict(found)


def times(visitor: Visitor, queue: str) -> list[list[str]]:
    html = visitor.page(f"/queue?name={queue}")
    return [
        re.findall(r'<td class="n">(.*?)</td>', row)
        for row in re.findall(r'<th scope="row">(?:wait|total)</th>(.*?)</tr>', html)
    ]


def since(visitor: Visitor) -> str:
    """The same instant on every page that tells one."""
    found: set[str] = {
        instant
        for path in ("/", "/crossings", "/queue?name=work")
        for instant in re.findall(r"since ([0-9 :-]+ UTC)", visitor.page(path))
    }
    assert len(found) == 1, found
    return found.pop()


def shown(visitor: Visitor) -> list[Any]:
    return [matrix(visitor), mix(visitor), times(visitor, "work"), times(visitor, "to-ebus")]


def call(broker: Daemon, count: int) -> None:
    fake_worker = FakeWorker(broker.data, b"work", lambda body: body)
    with App(f"file:{broker.data}") as app:
        for number in range(count):
            app.call_sync("work", b"%d" % number)
    fake_worker.vanish()


def is_idle(broker: Daemon) -> bool:
    tallies = broker.ask("tallies")
    return bool(tallies["waiting"] == tallies["leased"] == tallies["delayed"] == 0)


# -- a real broker ----------------------------------------------------------------------------------------------------------


def test_crossings_mix_and_times_are_the_same_after_any_restart_and_count_on(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    call(broker, 20)
    with all_dialects(broker.data) as tally:
        wait_for("every crossing", lambda: not tally.missing_cells, PAGE_S)
    wait_for("the end of the work", lambda: is_idle(broker), PAGE_S)
    visitor = Visitor(broker)
    counted = Counter({(one["client"], one["worker"]): one["count"] for one in broker.ask("tallies")["crossings"]})
    wait_for("a look at the end", lambda: settled_of(shown(visitor)) == counted, PAGE_S)
    first, began = shown(visitor), since(visitor)
    assert all(cell not in ("", "·") for row in first[0] for cell in row)

    broker.kill()
    broker.start()
    wait_for("the past after kill -9", lambda: shown(visitor) == first, PAGE_S)
    assert since(visitor) == began
    assert broker.ask("tallies")["crossings"] == [], "the broker's own counts begin anew, as /metrics does"
    assert "dragoman_crossings_total{" not in visitor.page("/metrics")

    call(broker, 7)
    seven = settled_of(first) + Counter({("emqp", "emqp"): 7})
    wait_for("what is new", lambda: settled_of(shown(visitor)) == seven, PAGE_S)
    second = shown(visitor)
    assert broker.stop() == 0
    broker.start()
    wait_for("the past of two boots", lambda: shown(visitor)[:2] == second[:2], PAGE_S)
    assert since(visitor) == began

    page = next(child for child in psutil.Process(broker.pid).children() if "dragoman.web.process" in child.cmdline())
    call(broker, 3)
    third = settled_of(second) + Counter({("emqp", "emqp"): 3})
    wait_for("what is new", lambda: settled_of(shown(visitor)) == third, PAGE_S)
    page.kill()
    page.wait(PAGE_S)
    wait_for("the same after the page's own death", lambda: settled_of(shown(visitor)) == third, PAGE_S)


def settled_of(page: list[Any]) -> Counter[tuple[str, str]]:
    dialects = ["scale0", "pingpong", "emqp", "ebus", "rq"]
    return Counter(
        {
            (row[0], worker): int(re.sub(r"\D", "", cell) or 0)
            for row in page[0]
            if row[0] in dialects
            for worker, cell in zip(dialects, row[1:], strict=False)
        }
    )


def test_without_a_past_the_page_begins_with_the_broker(new_broker: NewBroker) -> None:
    broker = new_broker("web.past_s=0").start()
    call(broker, 5)
    wait_for("a look at it", lambda: matrix(Visitor(broker))[-1][-1] == "5", PAGE_S)
    broker.kill()
    broker.start()
    assert not (broker.data / "web.samples").exists()
    visitor = Visitor(broker)
    assert matrix(visitor)[-1][-1] == "0"
    began = since(visitor)
    call(broker, 2)
    wait_for("what is new", lambda: matrix(visitor)[-1][-1] == "2", PAGE_S)
    assert since(visitor) == began


def test_the_line_of_a_queue_is_drawn_right_after_a_restart(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    with App(f"file:{broker.data}") as app:
        app.send_sync("left", b"x")
        sent_ns = broker.ask("tallies")["now_ns"]
    wait_for("three seconds", lambda: broker.ask("tallies")["now_ns"] > sent_ns + 3 * SECOND_NS)
    broker.kill()
    broker.start()
    visitor = Visitor(broker)

    def points(path: str) -> int:
        drawn = re.search(
            r'aria-label="depth of the queue, last two minutes".*?class="line" d="([^"]*)"', visitor.page(path)
        )
        return drawn[1].count("L") + 1 if drawn else 0

    paths = ("/", "/queues", "/queue?name=left")
    wait_for("the line on each page", lambda: min(points(path) for path in paths) >= 3, PAGE_S)


def highest_rate(visitor: Visitor) -> str:
    found = re.search(r"highest ([^/]+)/s", visitor.page("/"))
    assert found is not None
    return found[1]


def test_after_a_kill_the_last_hour_is_drawn_again(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    call(broker, 30)
    visitor = Visitor(broker)
    traffic_slot = time.time_ns() // SLOT_NS
    wait_for("these ten seconds to be over", lambda: time.time_ns() // SLOT_NS > traffic_slot, PAGE_S)
    wait_for("the rate in the last hour", lambda: highest_rate(visitor) not in ("–", "0"), PAGE_S)
    drawn = highest_rate(visitor)
    broker.kill()
    broker.start()
    assert highest_rate(visitor) == drawn


def test_a_broker_that_stops_leaves_no_count_behind(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    Visitor(broker).page("/")
    call(broker, 9)
    assert broker.stop() == 0
    broker.start()
    assert matrix(Visitor(broker))[-1][-1] == "9"


def test_a_kill_costs_at_most_what_nobody_has_looked_at_yet(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    call(broker, 9)
    settled_ns = time.time_ns()
    path = broker.data / "web.samples"
    wait_for("the next look", lambda: path.exists() and path.stat().st_mtime_ns > settled_ns + SECOND_NS // 10, PAGE_S)
    broker.kill()
    broker.start()
    assert matrix(Visitor(broker))[-1][-1] == "9"


def test_a_broker_that_keeps_nothing_has_no_past(new_broker: NewBroker) -> None:
    broker = new_broker(durability="memory").start()
    call(broker, 2)
    wait_for("what the broker counted", lambda: matrix(Visitor(broker))[-1][-1] == "2", PAGE_S)
    assert broker.stop() == 0
    assert not (broker.data / "web.samples").exists()


def test_damaged_samples_are_set_aside_with_one_line_and_the_page_begins_anew(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    call(broker, 5)
    visitor = Visitor(broker)
    wait_for("a look at it", lambda: matrix(visitor)[-1][-1] == "5", PAGE_S)
    broker.kill()
    path = broker.data / "web.samples"
    path.write_bytes(os.urandom(1000))
    broker.start()
    assert matrix(visitor)[-1][-1] == "0"
    complaints = wait_for("a line in the log", lambda: broker.lines("the web page complains"))
    assert len(complaints) == 1
    assert "the page begins anew" in complaints[0]["line"]
    assert (broker.data / "web.samples.damaged").exists()
    call(broker, 2)
    wait_for("what is new", lambda: matrix(visitor)[-1][-1] == "2", PAGE_S)


def test_backup_and_restore_leave_samples_alone(new_broker: NewBroker) -> None:
    broker = new_broker().start()
    call(broker, 5)
    wait_for("a look at it", lambda: matrix(Visitor(broker))[-1][-1] == "5", PAGE_S)
    backup = broker.data.parent / "backup"
    broker.ask("backup", target=str(backup))
    assert not list(backup.rglob("web.samples*"))
    restored = new_broker()
    restore(str(backup), str(restored.data))
    restored.start()
    assert matrix(Visitor(restored))[-1][-1] == "0", "totals are not part of a backup, messages are"
    assert broker.ask("tallies")["settled"] == restored.ask("tallies")["settled"] == 5
