"""The original's `emq-cli` asks the broker about itself and can shut it down."""

from __future__ import annotations

import pytest

from tests.eventmq.brokers import beyond_the_original
from tests.eventmq.conftest import OpenShop
from tests.eventmq.programs import Client
from tests.eventmq.shops import Shop
from tests.eventmq.waiting import wait_for

pytestmark = [pytest.mark.eventmq, pytest.mark.timeout(300)]


def test_status_counts_messages_by_queue(shop: Shop, client: Client) -> None:
    # The second one meets a free slot: the original counts no job that had to wait.
    for word in ("counting", "counted"):
        client.defer("chores.mark", args=[str(shop.book), word], queue="low")
        shop.wait_notes(word)
    status = shop.ask("status")
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


def test_show_workers_names_each_job_manager_with_its_weighted_queues(shop: Shop, client: Client) -> None:
    client.defer("chores.mark", args=[str(shop.book), "worker is here"])
    shop.wait_notes("worker is here")
    shown = shop.ask("show_workers")
    mine = {
        name: worker
        for name, worker in shown["connected_workers"].items()
        if worker["queues"] == [[30, "low"], [10, "default"]]
    }
    assert len(mine) == 1
    (name,) = mine
    assert [30, name] in shown["connected_queues"]["low"]
    assert [10, name] in shown["connected_queues"]["default"]


def test_show_schedulers_answers(shop: Shop) -> None:
    assert set(shop.ask("show_schedulers")) == {"connected_schedulers"}


@beyond_the_original
def test_shutdown_is_answered_with_the_setting_that_would_allow_it(open_shop: OpenShop) -> None:
    shop = open_shop()
    assert "emqp.remote_stop = true" in shop.admin("shutdown")
    assert "waiting_messages_by_queue" in shop.ask("status")


@beyond_the_original
def test_shutdown_is_acknowledged_and_ends_a_broker_that_allows_it(open_shop: OpenShop) -> None:
    shop = open_shop("emqp.remote_stop=true")
    printed = shop.admin("shutdown")
    assert "'ACK'" in printed
    assert wait_for("the broker's end", lambda: not shop.broker.program.is_running())
    assert shop.broker.program.exit_code() == 0
