"""Job managers that crash, hang or leave, and a broker that is killed under them: the jobs are run all the same."""

from __future__ import annotations

import json

import pytest

from tests.eventmq.brokers import Dragoman, beyond_the_original
from tests.eventmq.conftest import OpenShop
from tests.eventmq.programs import Client, Program
from tests.eventmq.shops import Shop
from tests.eventmq.waiting import wait_for

pytestmark = [pytest.mark.eventmq, pytest.mark.timeout(300)]


def two_managers(shop: Shop, queue: str) -> dict[int, Program]:
    """Two job managers of one slot each on that queue, both known to the broker; by process id."""
    managers = [shop.job_manager([(10, queue)], slots=1) for _ in range(2)]
    wait_for("both job managers", lambda: len(shop.workers_of(queue)) == 2)
    return {manager.pid: manager for manager in managers}


@beyond_the_original
def test_the_job_of_a_killed_job_manager_runs_elsewhere(shop: Shop, client: Client) -> None:
    managers = two_managers(shop, "killed")
    gate = shop.gate()
    args = [str(shop.book), "orphan", str(gate)]
    message_id = client.defer("chores.hold", args=args, queue="killed", reply_requested=True)
    (first,) = shop.wait_notes("orphan begun")
    managers.pop(first["manager"]).kill_group()
    second = shop.wait_notes("orphan begun", 2)[1]
    assert second["manager"] in managers
    gate.touch()
    assert client.result(message_id) == {"value": "orphan"}


@beyond_the_original
def test_a_dead_job_manager_is_noticed_by_its_silence_though_its_forks_hold_the_connection(
    shop: Shop, client: Client
) -> None:
    managers = two_managers(shop, "silent")
    gate = shop.gate()
    args = [str(shop.book), "silenced", str(gate)]
    message_id = client.defer("chores.hold", args=args, queue="silent", reply_requested=True)
    (first,) = shop.wait_notes("silenced begun")
    managers.pop(first["manager"]).kill_alone()
    second = shop.wait_notes("silenced begun", 2)[1]
    assert second["manager"] in managers
    gate.touch()
    assert client.result(message_id) == {"value": "silenced"}


@beyond_the_original
def test_a_job_that_times_out_is_tried_again_as_often_as_its_retry_count_says(shop: Shop, client: Client) -> None:
    gate = shop.gate()
    args = [str(shop.book), "slow once", str(gate)]
    message_id = client.defer("chores.hold_the_first_time", args=args, timeout=1, retry_count=1, reply_requested=True)
    assert client.result(message_id) == {"value": "slow once"}
    assert len(shop.notes("slow once begun")) == 2
    gate.touch()


@beyond_the_original
def test_a_job_that_always_times_out_ends_when_its_tries_are_used_up(shop: Shop, client: Client) -> None:
    gate = shop.gate()
    args = [str(shop.book), "slow always", str(gate)]
    message_id = client.defer("chores.hold", args=args, timeout=1, retry_count=1, reply_requested=True)
    assert client.result(message_id) == {"value": "TimeoutError"}
    assert len(shop.notes("slow always begun")) == 2
    gate.touch()


@beyond_the_original
def test_a_job_whose_process_crashes_is_tried_again_when_its_timeout_has_passed(shop: Shop, client: Client) -> None:
    # The job manager survives its process, starts another and never answers: only the time tells.
    args = [str(shop.book), "crashed once"]
    message_id = client.defer("chores.crash_the_first_time", args=args, timeout=1, retry_count=1, reply_requested=True)
    assert client.result(message_id) == {"value": "crashed once"}
    assert len(shop.notes("crashed once begun")) == 2


@beyond_the_original
def test_a_job_manager_told_to_end_finishes_its_job_and_gets_no_other(shop: Shop, client: Client) -> None:
    managers = two_managers(shop, "leaving")
    gate = shop.gate()
    held = client.defer(
        "chores.hold", args=[str(shop.book), "last job", str(gate)], queue="leaving", reply_requested=True
    )
    (begun,) = shop.wait_notes("last job begun")
    leaving = managers.pop(begun["manager"])
    leaving.terminate()
    wait_for("KBYE", lambda: "Shutting down.." in leaving.log())
    for number in range(3):
        other = client.defer(
            "chores.mark", args=[str(shop.book), f"not for it {number}"], queue="leaving", reply_requested=True
        )
        assert client.result(other) == {"value": f"not for it {number}"}
        assert shop.notes(f"not for it {number}")[0]["manager"] in managers
    gate.touch()
    assert client.result(held) == {"value": "last job"}
    assert leaving.exit_code() == 0
    assert len(shop.notes("last job begun")) == 1


@beyond_the_original
def test_a_broker_killed_and_restarted_runs_what_it_had_accepted_and_its_job_managers_rejoin(
    open_shop: OpenShop,
) -> None:
    shop = open_shop()
    broker = shop.broker
    assert isinstance(broker, Dragoman)
    busy = shop.job_manager([(10, "busy")], slots=1)
    idle = shop.job_manager([(10, "idle")], slots=1)
    client, gate = shop.client(), shop.gate()
    first = client.defer("chores.mark", args=[str(shop.book), "idle before"], queue="idle")
    client.wait_handed_over(first)
    client.defer("chores.hold", args=[str(shop.book), "held", str(gate)], queue="busy")
    shop.wait_notes("held begun")
    for number in range(3):
        body = job("mark", str(shop.book), f"accepted {number}")
        client.wait_kept(client.send("REQUEST", "busy", "ack-requested", body))
    shop.wait_notes("idle before")

    broker.kill()
    gate.touch()  # the job ends while there is no broker: its answer waits in the job manager's socket
    wait_for("the answer", lambda: "'eMQP/1.0', 'REPLY'" in busy.log())
    broker.start()

    for number in range(3):
        (run,) = shop.wait_notes(f"accepted {number}", deadline_s=30.0)
        assert run["manager"] == busy.pid
    after = client.defer("chores.mark", args=[str(shop.book), "idle after"], queue="idle")
    (run,) = shop.wait_notes("idle after", deadline_s=30.0)
    assert run["manager"] == idle.pid
    client.wait_handed_over(after)
    assert len(shop.notes("held begun")) == 1, "its answer came late, but it named its job"


@beyond_the_original
def test_a_job_that_ends_in_a_long_outage_is_settled(open_shop: OpenShop) -> None:
    # The job manager gives the dead broker up and comes with a new identity, but its answer leaves by the old one,
    # so the job may be run again before that answer is there. Either way it is settled and its slot is free.
    shop = open_shop()
    broker = shop.broker
    assert isinstance(broker, Dragoman)
    manager = shop.job_manager([(10, "default")], slots=1, heartbeat_timeout=1, heartbeat_liveness=5)
    client, gate = shop.client(), shop.gate()
    client.defer("chores.hold", args=[str(shop.book), "outage", str(gate)])
    shop.wait_notes("outage begun")
    broker.kill()
    gate.touch()
    wait_for("the job manager to give up", lambda: "broker appears to have gone away" in manager.log())
    broker.start()
    after = client.defer("chores.add", args=[1, 1], reply_requested=True)
    assert client.result(after, 20.0) == {"value": 2}
    assert len(shop.notes("outage begun")) in (1, 2)

    def is_settled() -> bool:
        status = shop.ask("status")
        return not any(
            status[kind].get("default") for kind in ("waiting_messages_by_queue", "inflight_messages_by_queue")
        )

    assert wait_for("the outage's job to be settled", is_settled)


def job(name: str, *args: object) -> str:
    call = {"path": "chores", "callable": name, "args": args, "kwargs": {}, "class_args": [], "class_kwargs": {}}
    return json.dumps(["run", call])
