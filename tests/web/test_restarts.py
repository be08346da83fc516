"""What was before a start is on the page again after it: the same numbers, and what is new on top of them, nothing twice."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from dragoman.client.app import App
from dragoman.journal import JournalReader
from dragoman.journal.format import Block
from dragoman.journal.journal import Journal
from dragoman.journal.settings import JournalSettings
from dragoman.limits import SEGMENT_SIZE_MIN
from dragoman.model.decode import decode_block
from dragoman.model.past import Past
from dragoman.model.units import SECOND_NS
from dragoman.web.before import NOTHING, Before, Times, before_of
from dragoman.web.history import SLOT_NS, SLOT_S, SLOTS_KEPT, Look, look_of
from dragoman.web.refill import Found, Now, Reading, read_past
from tests.cli.broker import Servant
from tests.eventmq.waiting import wait_for
from tests.model.lives import BEGIN_NS, TICK_NS, World, lived
from tests.runtime.daemon import Daemon
from tests.web.conftest import NewHouse
from tests.web.load import all_dialects, set_aside
from tests.web.visitor import Visitor

PAGE_S = 60.0
HOUR_S = 3600.0
MINUTE_NS = 60 * SECOND_NS
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
    servant = Servant(broker.data, b"work", lambda body: body)
    with App(f"file:{broker.data}") as app:
        for number in range(count):
            app.call_sync("work", b"%d" % number)
    servant.vanish()


def is_idle(broker: Daemon) -> bool:
    tallies = broker.ask("tallies")
    return bool(tallies["waiting"] == tallies["leased"] == tallies["delayed"] == 0)


# -- a real broker ----------------------------------------------------------------------------------------------------------


def test_crossings_mix_and_times_are_the_same_after_any_restart_and_count_on(new_house: NewHouse) -> None:
    broker = new_house().start()
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

    page = next(child for child in psutil.Process(broker.pid).children() if "dragoman.web" in child.cmdline())
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


def test_without_a_past_the_page_begins_with_the_broker(new_house: NewHouse) -> None:
    broker = new_house("web.past_s=0").start()
    call(broker, 5)
    broker.kill()
    broker.start()
    visitor = Visitor(broker)
    assert matrix(visitor)[-1][-1] == "0"
    began = since(visitor)
    call(broker, 2)
    wait_for("what is new", lambda: matrix(visitor)[-1][-1] == "2", PAGE_S)
    assert since(visitor) == began


def asked(broker: Daemon) -> Now:
    tallies = broker.ask("tallies")
    queues = broker.ask("queue_tallies", order="depth")["queues"]
    return Now(look_of(tallies), tallies["started_ns"], queues, broker.ask("messages", state="leased")["messages"])


def read(broker: Daemon, now: Now, past_s: float = HOUR_S) -> Found:
    return asyncio.run(read_past(broker.data / "journal", now, past_s))


def test_the_depth_of_a_queue_is_known_for_the_time_before_the_start(new_house: NewHouse) -> None:
    broker = new_house("queues.quarantine_after=1").start()
    began_ns = broker.ask("tallies")["now_ns"]
    with App(f"file:{broker.data}") as app:
        broker.ask("cancel", id=set_aside(broker, app, b"left", b"x"))
        for _ in range(6):
            app.send_sync("left", b"x")
        holder = Servant(broker.data, b"left", None)
        wait_for("a lease", lambda: broker.ask("tallies")["leased"] == 1)
    filled_ns = broker.ask("tallies")["now_ns"]
    broker.kill()
    holder.vanish()
    broker.start()
    second = Servant(broker.data, b"left", None)
    wait_for("a lease", lambda: broker.ask("tallies")["leased"] == 1)
    last_ns = broker.ask("tallies")["now_ns"]
    wait_for("the next second", lambda: broker.ask("tallies")["now_ns"] // SECOND_NS > last_ns // SECOND_NS + 1)
    now = asked(broker)
    second.vanish()
    queue = now.queues[0]
    trail = read(broker, now).trails[queue["queue_no"]]
    before = [waiting for at_ns, waiting in trail.depths if at_ns < began_ns]
    assert set(before) <= {0}
    assert trail.depths[-1][1] == queue["waiting"]
    assert trail.depths[-1][0] // SECOND_NS == now.look.at_ns // SECOND_NS - 1
    at_the_kill = next(waiting for at_ns, waiting in trail.depths if filled_ns <= at_ns)
    assert at_the_kill in (queue["waiting"], queue["waiting"] + 1), "with the lease that the kill ended, or without"
    assert trail.in_rate is not None
    assert trail.in_rate > 0


def test_the_line_of_a_queue_is_drawn_right_after_a_restart(new_house: NewHouse) -> None:
    broker = new_house().start()
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


def test_only_the_time_asked_for_is_counted(new_house: NewHouse) -> None:
    broker = new_house().start()
    call(broker, 5)
    broker.kill()
    broker.start()
    now = asked(broker)
    whole = read(broker, now).before
    assert whole.crossings == {("emqp", "emqp"): 5}
    assert whole.settled["emqp"] == whole.accepted["emqp"] == 5
    assert sum(whole.queues[now.queues[0]["queue_no"]].wait.values()) == 5
    part = read(broker, now, 0.001).before
    assert (part.crossings, part.since_ns) == ({}, now.started_ns - SECOND_NS // 1000)
    assert read(broker, now, 0.0) == Found()


def test_without_the_start_among_the_facts_nothing_is_taken_for_the_past(new_house: NewHouse) -> None:
    broker = new_house().start()
    call(broker, 5)
    tallies = broker.ask("tallies")
    look = Look(tallies["now_ns"], tallies["boot_no"] + 1, 0, 0, 0, 0, {}, {})
    assert read(broker, Now(look, tallies["now_ns"])).before == NOTHING


def test_a_broker_that_keeps_nothing_has_no_past(new_house: NewHouse) -> None:
    broker = new_house(durability="memory").start()
    call(broker, 2)
    assert read(broker, asked(broker)).before == NOTHING
    wait_for("what the broker counted", lambda: matrix(Visitor(broker))[-1][-1] == "2", PAGE_S)


def test_a_journal_that_cannot_be_read_is_no_fault_of_the_page(new_house: NewHouse, tmp_path: Path) -> None:
    broker = new_house().start()
    now = asked(broker)
    assert asyncio.run(read_past(tmp_path / "nowhere", now, HOUR_S)).before == NOTHING
    assert JournalReader(str(broker.data / "journal")).segments()


# -- which part of a journal is read ----------------------------------------------------------------------------------------


class Noting(JournalReader):
    """Notes where reading begins, and what was handed out."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.begun: list[int] = []
        self.lsns: list[int] = []

    def read(self, from_lsn: int, behind: Block | None = None) -> Iterator[Block]:
        self.begun.append(from_lsn)
        for block in super().read(from_lsn, behind):
            self.lsns.append(block.first_lsn)
            yield block


def written(directory: Path, world: World) -> list[int]:
    """A segment for each minute; the lsn each begins with."""
    journal = Journal.open(JournalSettings(str(directory), "os", segment_size=SEGMENT_SIZE_MIN), now_ns=BEGIN_NS)
    minute, begins = 0, [1]
    for records, time_ns in world.blocks:
        while (time_ns - BEGIN_NS) // MINUTE_NS > minute:
            minute += 1
            journal.roll()
            begins.append(journal.next_lsn)
        journal.append(records, len(decode_block(records)), time_ns)
    journal.close()
    return begins


def noted(directory: Path, now: Now, past_s: float) -> tuple[Noting, Found]:
    reader, reading = Noting(str(directory)), Reading(now, past_s)
    asyncio.run(reading.read(reader))
    return reader, reading.found()


def test_of_a_broker_that_runs_for_long_only_the_last_hour_and_the_time_before_its_start_are_read(
    tmp_path: Path,
) -> None:
    world = lived(5, 5 * 60, 20, 2 * 3600)  # boot 3 begins in the sixth minute
    begins = written(tmp_path, world)
    started_ns = BEGIN_NS + 5 * MINUTE_NS + 20 * SECOND_NS + 2 * TICK_NS
    now_ns = world.levels[-1][0]
    look = Look(now_ns, 3, 0, 0, len(world.waiting), len(world.leased), {}, {})
    reader, found = noted(tmp_path, Now(look, started_ns), 100.0)
    assert len(reader.begun) == 2
    assert reader.begun[0] == begins[3], "100 s before the start are in the fourth minute"
    assert begins[-63] <= reader.begun[1] <= begins[-60]
    past = Past(3)
    for records, time_ns in world.blocks:
        if time_ns >= started_ns - 100 * SECOND_NS:
            past.add(records, time_ns)
    assert found.before == before_of(past, started_ns - 100 * SECOND_NS)
    assert sum(found.before.accepted.values()) > 100
    assert 355 <= len(found.points) <= 361
    assert not any(begins[8] < lsn < reader.begun[1] for lsn in reader.lsns)


def test_a_hole_in_the_journal_ends_the_past(tmp_path: Path) -> None:
    world = lived(6, 5 * 60, 60)
    written(tmp_path, world)
    segments = JournalReader(str(tmp_path)).segments()
    Path(segments[2].path).unlink()
    look = Look(world.levels[-1][0], 2, 0, 0, 0, 0, {}, {})
    found = noted(tmp_path, Now(look, BEGIN_NS + 5 * MINUTE_NS + TICK_NS), HOUR_S)[1]
    assert BEGIN_NS + 3 * MINUTE_NS <= found.before.since_ns < BEGIN_NS + 3 * MINUTE_NS + 2 * SECOND_NS
    kept = [(records, at_ns) for records, at_ns in world.blocks if at_ns >= found.before.since_ns]
    past = Past(2)
    for records, at_ns in kept:
        past.add(records, at_ns)
    assert found.before == before_of(past, found.before.since_ns)


def test_a_start_that_the_journal_no_longer_keeps_is_not_looked_for_to_its_end(tmp_path: Path) -> None:
    world = lived(7, 60, 3 * 3600)
    written(tmp_path, world)
    for segment in JournalReader(str(tmp_path)).segments()[1:30]:
        Path(segment.path).unlink()
    look = Look(world.levels[-1][0], 2, 0, 0, 0, 0, {}, {})
    reader, found = noted(tmp_path, Now(look, BEGIN_NS + MINUTE_NS + TICK_NS), HOUR_S)
    assert found.before == NOTHING
    assert len(reader.begun) == 2
    assert len(found.points) >= 355


def test_an_hour_without_facts_is_known_as_well(tmp_path: Path) -> None:
    world = lived(8, 60)
    written(tmp_path, world)
    for idle_s in (1200, 3 * 3600):
        look = Look(world.levels[-1][0] + idle_s * SECOND_NS, 1, 0, 0, 12, 3, {}, {})
        points = noted(tmp_path, Now(look, BEGIN_NS), HOUR_S)[1].points
        slots = [point.at_ns // SLOT_NS for point in points]
        assert slots == list(range(max(BEGIN_NS // SLOT_NS, slots[-1] - SLOTS_KEPT + 1), look.at_ns // SLOT_NS))
        quiet = [point for point in points if point.at_ns > world.levels[-1][0] + MINUTE_NS]  # all has come due by then
        assert len(quiet) >= min(idle_s // SLOT_S, SLOTS_KEPT) - 8
        assert {(point.accepted_rate, point.waiting, point.leased) for point in quiet} == {(0.0, 12, 3)}


@pytest.mark.parametrize("seed", range(5))
def test_what_is_delayed_does_not_wait_before_it_is_due(tmp_path: Path, seed: int) -> None:
    world = lived(seed, 200, 100)
    written(tmp_path, world)
    look = Look(world.levels[-1][0], 2, 0, 0, len(world.waiting), len(world.leased), {}, {})
    points = noted(tmp_path, Now(look, BEGIN_NS), HOUR_S)[1].points
    levels = {at_ns // SLOT_NS: sum(depths.values()) for at_ns, depths in world.levels}
    assert len(points) >= 25
    assert [point.waiting for point in points] == [levels[point.at_ns // SLOT_NS] for point in points]


# -- adding up --------------------------------------------------------------------------------------------------------------


def test_a_queue_that_was_one_too_many_counts_from_the_start_on() -> None:
    before = Before(2, 100, {}, {}, {}, {1: Times({3: 4}, {5: 6})}, is_cut=True)
    tallies = {"started_ns": 900}
    known = {"queue_no": 1, "wait": [[3, 1]], "total_time": [[7, 1]]}
    assert before.times_with(known) == Times({3: 5}, {5: 6, 7: 1})
    assert before.since_of_queue(tallies, known) == 100
    assert before.since_of_queue(tallies, {"queue_no": 2}) == 900
    assert NOTHING.since_of(tallies) == 900
