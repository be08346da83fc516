"""`dragoman queues forget`, and the broker's own forgetting, with a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.broker import BrokerProcess, Commands, wait_for


def fill(dragoman: Commands, *queues: str) -> None:
    """One message in each queue, purged again."""
    for queue in queues:
        assert dragoman("send", queue, "{}").code == 0
        assert dragoman("queues", "purge", queue, "--yes").code == 0


def names(dragoman: Commands) -> list[str]:
    return [queue["queue"] for queue in dragoman("queues", "--json").json["queues"]]


def test_a_queue_is_forgotten_by_name_and_stays_so_over_a_restart(broker: BrokerProcess, dragoman: Commands) -> None:
    fill(dragoman, "one", "two")
    done = dragoman("queues", "forget", "one")
    assert (done.code, done.out) == (0, "one is forgotten\n")
    assert names(dragoman) == ["two"]
    broker.end()
    broker.start()
    assert names(dragoman) == ["two"]
    refused = dragoman("queues", "forget", "one")
    assert refused.code != 0
    assert "there is no queue 'one'" in refused.err


def test_one_that_is_in_use_is_refused_with_the_reason(dragoman: Commands) -> None:
    fill(dragoman, "mail")
    dragoman("queues", "pause", "mail")
    refused = dragoman("queues", "forget", "mail")
    assert refused.code != 0
    assert "mail is in use: it is paused" in refused.err
    assert names(dragoman) == ["mail"]


def test_many_are_forgotten_by_prefix_or_all_and_those_in_use_are_counted(dragoman: Commands) -> None:
    fill(dragoman, "job-1", "job-2", "mail", "orders")
    dragoman("queues", "pause", "mail")
    assert dragoman("queues", "forget", "--prefix", "job-", "--yes").out == "2 queues forgotten\n"
    assert dragoman("queues", "forget", "--all", "--yes").out == "1 queue forgotten, 1 queue in use\n"
    assert names(dragoman) == ["mail"]
    assert dragoman("queues", "forget").code == 2
    assert dragoman("queues", "forget", "mail", "--all").code == 2


def test_the_broker_forgets_by_itself_what_is_not_used(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    broker = BrokerProcess(tmp_path / "data", "--set=queues.forget_s=0.5")
    try:
        dragoman = Commands(broker.data, capfd)
        fill(dragoman, "once")
        wait_for("forgetting", lambda: not names(dragoman))
        counters = dragoman("status", "--json").json["counters"]
        assert (counters["accepted"], counters["failed"]) == (1, 1), "what it counted is still counted"
    finally:
        broker.end()
