"""An original job manager that the operator dismisses, and an original router that our own programs talk to."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest

from dragoman.cli.admin_client import ask
from dragoman.client import address
from dragoman.errors import BrokerUnreachable
from dragoman.wire.zmtp.frames import encode_message
from tests.cli.raw_emqp import RawEmqp
from tests.eventmq.brokers import Original, beyond_the_original
from tests.eventmq.conftest import NewSystem
from tests.waiting import wait_for

pytestmark = [pytest.mark.eventmq, pytest.mark.timeout(300)]


@beyond_the_original
def test_a_dismissed_job_manager_finishes_once_and_gets_nothing_until_it_is_admitted(
    new_system: NewSystem, tmp_path: Path
) -> None:
    system = new_system()
    system.job_manager([(10, "default")], slots=2)
    client, data, gate = system.client(), tmp_path / "data", tmp_path / "gate"
    held = client.defer("chores.hold", args=[str(system.book), "held", str(gate)], reply_requested=True)
    system.wait_notes("held begun")
    (worker,) = ask(data, "workers")["workers"]
    assert ask(data, "dismiss", worker=worker["id"])["leased"] == 1
    later = client.defer("chores.mark", args=[str(system.book), "later"], reply_requested=True)
    gate.touch()
    assert client.result(held) == {"value": "held"}
    wait_for("its slots", lambda: ask(data, "worker", worker=worker["id"])["slots_free"] >= 2)
    assert ask(data, "worker", worker=worker["id"])["state"] == "dismissed"
    assert system.notes("later") == []
    ask(data, "admit", worker=worker["id"])
    assert client.result(later) == {"value": "later"}
    assert len(system.notes("held begun")) == len(system.notes("later")) == 1


def acknowledged(router: Original) -> bool:
    """Whether the router still answers a worker."""
    place = router.listeners["emqp.worker"].removeprefix("tcp://")
    with RawEmqp(address.parse(f"emqp://{place}"), "worker") as talk:
        inform = [b"INFORM", talk.ids.take(), b'[[10,"default"]]', b"worker"]
        talk.send(encode_message([b"", b"eMQP/1.0", *inform]))
        return any(b"ACK" in frames for frames in talk.messages(time.monotonic() + 10))


def test_the_original_router_outlives_our_command_line(environment: Path, tmp_path: Path) -> None:
    router = Original(environment, tmp_path / "data")
    try:
        place = router.listeners["emqp.client"].removeprefix("tcp://")

        def is_up() -> bool:
            with suppress(BrokerUnreachable), RawEmqp(address.parse(f"emqp://{place}"), "client") as talk:
                talk.request("default", "", b'["run", {}]')
                return True
            return False

        wait_for("the router", is_up)
        assert acknowledged(router), router.log()
        assert router.program.is_running(), router.log()
    finally:
        router.kill()
