"""The original's `emq-cli` asks the broker about itself and can shut it down."""

from __future__ import annotations

import pytest

from tests.eventmq.brokers import beyond_the_original
from tests.eventmq.conftest import NewSystem
from tests.eventmq.programs import Client
from tests.eventmq.system import EventMqSystem
from tests.waiting import wait_for

pytestmark = [pytest.mark.eventmq, pytest.mark.timeout(300)]


def test_status_counts_messages_by_queue(system: EventMqSystem, client: Client) -> None:
    # The second one meets a free slot: the original counts no job that had to wait.
    for word in ("counting", "counted"):
        client.defer("chores.mark", args=[str(system.book), word], queue="low")
        system.wait_notes(word)
    status = system.ask("status")
    assert set(status) == {
        "inflight_messages_by_queue",
        "latency_messages_by_queue",
        "max_latency_messages_by_queue",
        "waiting_messages_by_queue",
        "processed_messages_by_queue",
        "processed_messages_by_worker",
    }
    assert status["processed_messages_by_queue"]["low"] >= 1
    assert sum(status["processed_messages_by_worker"].values()) >= 1


def test_show_workers_names_each_job_manager_with_its_weighted_queues(system: EventMqSystem, client: Client) -> None:
    client.defer("chores.mark", args=[str(system.book), "worker is here"])
    system.wait_notes("worker is here")
    shown = system.ask("show_workers")
    mine = {
        name: worker
        for name, worker in shown["connected_workers"].items()
        if worker["queues"] == [[30, "low"], [10, "default"]]
    }
    assert len(mine) == 1
    (name,) = mine
    assert [30, name] in shown["connected_queues"]["low"]
    assert [10, name] in shown["connected_queues"]["default"]


def test_show_schedulers_answers(system: EventMqSystem) -> None:
    assert set(system.ask("show_schedulers")) == {"connected_schedulers"}


@beyond_the_original
def test_shutdown_is_answered_with_the_setting_that_would_allow_it(new_system: NewSystem) -> None:
    system = new_system()
    assert "emqp.remote_stop = true" in system.admin("shutdown")
    assert "waiting_messages_by_queue" in system.ask("status")


@beyond_the_original
def test_shutdown_is_acknowledged_and_ends_a_broker_that_allows_it(new_system: NewSystem) -> None:
    system = new_system("emqp.remote_stop=true")
    printed = system.admin("shutdown")
    assert "'ACK'" in printed
    assert wait_for("the broker's end", lambda: not system.broker.program.is_running())
    assert system.broker.program.exit_code() == 0
