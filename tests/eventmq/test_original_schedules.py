"""Schedules sent by the original client fire: by dragoman's own clock, or by the original scheduler program behind it."""

from __future__ import annotations

import pytest

from tests.eventmq.brokers import ORIGINAL, beyond_the_original
from tests.eventmq.conftest import NewSystem
from tests.eventmq.programs import Client
from tests.eventmq.system import EventMqSystem
from tests.waiting import wait_for

pytestmark = [pytest.mark.eventmq, pytest.mark.timeout(300)]


@pytest.fixture(scope="module", autouse=True)
def clock(system: EventMqSystem) -> None:
    """EventMQ's router keeps no schedules of its own."""
    if ORIGINAL:
        system.scheduler()
        wait_for("the scheduler", lambda: system.ask("show_schedulers")["connected_schedulers"])


def test_an_interval_fires_at_once_and_again_until_it_is_unscheduled(system: EventMqSystem, client: Client) -> None:
    args = [str(system.book), "every second"]
    client.schedule("chores.mark", args=args, interval_secs=1)
    runs = system.wait_notes("every second", 3)
    assert runs[2]["at"] - runs[0]["at"] > 0.9
    client.schedule("chores.mark", args=args, unschedule=True)
    # A schedule of the same pace begun later and seen to fire a whole second on proves the silence of the first.
    client.schedule("chores.mark", args=[str(system.book), "the other pace"], interval_secs=1, headers=["run_count:3"])
    system.wait_notes("the other pace", 2)
    fired = len(system.notes("every second"))
    system.wait_notes("the other pace", 3)
    assert len(system.notes("every second")) == fired


def test_a_run_count_is_the_number_of_all_runs_and_nohaste_waits_for_the_first(
    system: EventMqSystem, client: Client
) -> None:
    pace = {"interval_secs": 1}
    client.schedule("chores.mark", args=[str(system.book), "twice"], headers=["run_count:2"], **pace)
    client.schedule("chores.mark", args=[str(system.book), "not at once"], headers=["run_count:1", "nohaste"], **pace)
    client.schedule("chores.mark", args=[str(system.book), "four times"], headers=["run_count:4"], **pace)
    system.wait_notes("four times", 4)
    assert len(system.notes("twice")) == 2
    late = system.notes("not at once")
    assert len(late) == 1
    assert late[0]["at"] - system.notes("four times")[0]["at"] > 0.5


@beyond_the_original
def test_a_schedule_is_known_by_its_job_not_by_its_bytes_or_its_queue(system: EventMqSystem, client: Client) -> None:
    book = str(system.book)
    client.schedule("chores.mark", args=[book, "same job"], interval_secs=1, queue="low")
    system.wait_notes("same job", 2)
    # The same call, its keys in another order, spelled with other spaces, named for another queue.
    body = f'["run",{{"kwargs":{{}},"class_kwargs":{{}},"class_args":[],"args":["{book}","same job"],"callable":"mark","path":"chores"}}]'
    client.send("UNSCHEDULE", "default", "", "-1", body, "")
    client.schedule("chores.mark", args=[book, "pace of same job"], interval_secs=1, headers=["run_count:3"])
    system.wait_notes("pace of same job", 2)
    fired = len(system.notes("same job"))
    system.wait_notes("pace of same job", 3)
    assert len(system.notes("same job")) == fired


def test_a_cron_schedule_is_accepted_and_runs_its_hasty_first_time(system: EventMqSystem, client: Client) -> None:
    # Once a year, so that nothing but haste can have run it.
    args = [str(system.book), "yearly"]
    client.schedule("chores.mark", args=args, cron="0 0 1 1 *")
    assert len(system.wait_notes("yearly")) == 1
    client.schedule("chores.mark", args=args, unschedule=True)


@beyond_the_original
def test_the_original_scheduler_keeps_the_clock_where_the_broker_is_set_so(new_system: NewSystem) -> None:
    system = new_system("emqp.scheduler=external")
    scheduler = system.scheduler()
    system.job_manager_by_flags("-J", "1", "-Q", "default")
    wait_for("the scheduler", lambda: system.ask("show_schedulers")["connected_schedulers"])
    client = system.client()
    args = [str(system.book), "by the original"]
    client.schedule("chores.mark", args=args, interval_secs=1)
    system.wait_notes("by the original", 2)
    assert scheduler.log().count("Received new SCHEDULE request") == 1
    client.schedule("chores.mark", args=args, unschedule=True)
    wait_for("UNSCHEDULE", lambda: "Received new UNSCHEDULE request" in scheduler.log())
    assert scheduler.is_running()
