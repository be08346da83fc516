"""Job managers that crash, hang or leave, and a broker that is killed under them: the jobs are run all the same."""

from __future__ import annotations

import json

import pytest

from tests.eventmq.brokers import Dragoman, beyond_the_original
from tests.eventmq.conftest import NewSystem
from tests.eventmq.programs import Client, Program
from tests.eventmq.system import EventMqSystem
from tests.waiting import wait_for

pytestmark = [pytest.mark.eventmq, pytest.mark.timeout(300)]


def two_managers(system: EventMqSystem, queue: str) -> dict[int, Program]:
    """Two job managers of one slot each on that queue, both known to the broker; by process id."""
    managers = [system.job_manager([(10, queue)], slots=1) for _ in range(2)]
    wait_for("both job managers", lambda: len(system.workers_of(queue)) == 2)
    return {manager.pid: manager for manager in managers}


@beyond_the_original
def test_the_job_of_a_killed_job_manager_runs_elsewhere(system: EventMqSystem, client: Client) -> None:
    managers = two_managers(system, "killed")
    gate = system.gate()
    args = [str(system.book), "orphan", str(gate)]
    message_id = client.defer("chores.hold", args=args, queue="killed", reply_requested=True)
    (first,) = system.wait_notes("orphan begun")
    managers.pop(first["manager"]).kill_group()
    second = system.wait_notes("orphan begun", 2)[1]
    assert second["manager"] in managers
    gate.touch()
    assert client.result(message_id) == {"value": "orphan"}


@beyond_the_original
def test_a_dead_job_manager_is_noticed_by_its_silence_though_its_forks_hold_the_connection(
    system: EventMqSystem, client: Client
) -> None:
    managers = two_managers(system, "silent")
    gate = system.gate()
    args = [str(system.book), "silenced", str(gate)]
    message_id = client.defer("chores.hold", args=args, queue="silent", reply_requested=True)
    (first,) = system.wait_notes("silenced begun")
    managers.pop(first["manager"]).kill_alone()
    second = system.wait_notes("silenced begun", 2)[1]
    assert second["manager"] in managers
    gate.touch()
    assert client.result(message_id) == {"value": "silenced"}


@beyond_the_original
def test_a_job_that_times_out_is_tried_again_as_often_as_its_retry_count_says(
    system: EventMqSystem, client: Client
) -> None:
    gate = system.gate()
    args = [str(system.book), "slow once", str(gate)]
    message_id = client.defer("chores.hold_the_first_time", args=args, timeout=1, retry_count=1, reply_requested=True)
    assert client.result(message_id) == {"value": "slow once"}
    assert len(system.notes("slow once begun")) == 2
    gate.touch()


@beyond_the_original
def test_a_job_that_always_times_out_ends_when_its_tries_are_used_up(system: EventMqSystem, client: Client) -> None:
    gate = system.gate()
    args = [str(system.book), "slow always", str(gate)]
    message_id = client.defer("chores.hold", args=args, timeout=1, retry_count=1, reply_requested=True)
    assert client.result(message_id) == {"value": "TimeoutError"}
    assert len(system.notes("slow always begun")) == 2
    gate.touch()


@beyond_the_original
def test_a_job_whose_process_crashes_is_tried_again_when_its_timeout_has_passed(
    system: EventMqSystem, client: Client
) -> None:
    # The job manager survives its process, starts another and never answers: only the time tells.
    args = [str(system.book), "crashed once"]
    message_id = client.defer("chores.crash_the_first_time", args=args, timeout=1, retry_count=1, reply_requested=True)
    assert client.result(message_id) == {"value": "crashed once"}
    assert len(system.notes("crashed once begun")) == 2


@beyond_the_original
def test_a_job_manager_that_is_terminated_finishes_its_job_and_gets_no_other(
    system: EventMqSystem, client: Client
) -> None:
    managers = two_managers(system, "leaving")
    gate = system.gate()
    held = client.defer(
        "chores.hold", args=[str(system.book), "last job", str(gate)], queue="leaving", reply_requested=True
    )
    (begun,) = system.wait_notes("last job begun")
    leaving = managers.pop(begun["manager"])
    leaving.terminate()
    wait_for("KBYE", lambda: "Shutting down.." in leaving.log())
    for number in range(3):
        other = client.defer(
            "chores.mark", args=[str(system.book), f"not for it {number}"], queue="leaving", reply_requested=True
        )
        assert client.result(other) == {"value": f"not for it {number}"}
        assert system.notes(f"not for it {number}")[0]["manager"] in managers
    gate.touch()
    assert client.result(held) == {"value": "last job"}
    assert leaving.exit_code() == 0
    assert len(system.notes("last job begun")) == 1


@beyond_the_original
def test_a_broker_killed_and_restarted_runs_what_it_had_accepted_and_its_job_managers_rejoin(
    new_system: NewSystem,
) -> None:
    system = new_system()
    broker = system.broker
    assert isinstance(broker, Dragoman)
    busy = system.job_manager([(10, "busy")], slots=1)
    idle = system.job_manager([(10, "idle")], slots=1)
    client, gate = system.client(), system.gate()
    first = client.defer("chores.mark", args=[str(system.book), "idle before"], queue="idle")
    client.wait_handed_over(first)
    client.defer("chores.hold", args=[str(system.book), "held", str(gate)], queue="busy")
    system.wait_notes("held begun")
    for number in range(3):
        body = job("mark", str(system.book), f"accepted {number}")
        client.wait_kept(client.send("REQUEST", "busy", "ack-requested", body))
    system.wait_notes("idle before")

    broker.kill()
    gate.touch()  # the job ends while there is no broker: its answer waits in the job manager's socket
    wait_for("the answer", lambda: "'eMQP/1.0', 'REPLY'" in busy.log())
    broker.start()

    for number in range(3):
        (run,) = system.wait_notes(f"accepted {number}", deadline_s=30.0)
        assert run["manager"] == busy.pid
    after = client.defer("chores.mark", args=[str(system.book), "idle after"], queue="idle")
    (run,) = system.wait_notes("idle after", deadline_s=30.0)
    assert run["manager"] == idle.pid
    client.wait_handed_over(after)
    assert len(system.notes("held begun")) == 1, "its answer came late, but it named its job"


@beyond_the_original
def test_a_job_that_ends_in_a_long_outage_is_settled(new_system: NewSystem) -> None:
    # The job manager gives the dead broker up and comes with a new identity, but its answer leaves by the old one,
    # so the job may be run again before that answer is there. Either way it is settled and its slot is free.
    system = new_system()
    broker = system.broker
    assert isinstance(broker, Dragoman)
    manager = system.job_manager([(10, "default")], slots=1, heartbeat_timeout=1, heartbeat_liveness=5)
    client, gate = system.client(), system.gate()
    client.defer("chores.hold", args=[str(system.book), "outage", str(gate)])
    system.wait_notes("outage begun")
    broker.kill()
    gate.touch()
    wait_for("the job manager to give up", lambda: "broker appears to have gone away" in manager.log())
    broker.start()
    after = client.defer("chores.add", args=[1, 1], reply_requested=True)
    assert client.result(after, 20.0) == {"value": 2}
    assert len(system.notes("outage begun")) in (1, 2)

    def is_settled() -> bool:
        status = system.ask("status")
        return not any(
            status[kind].get("default") for kind in ("waiting_messages_by_queue", "inflight_messages_by_queue")
        )

    assert wait_for("the outage's job to be settled", is_settled)


def job(name: str, *args: object) -> str:
    call = {"path": "chores", "callable": name, "args": args, "kwargs": {}, "class_args": [], "class_kwargs": {}}
    return json.dumps(["run", call])
