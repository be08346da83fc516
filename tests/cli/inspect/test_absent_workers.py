"""`dragoman explain` of a worker: by its number without a prefix, and when it has gone."""

from __future__ import annotations

from tests.cli.broker import BrokerProcess, Commands, wait_for


def test_a_worker_is_explained_by_its_number_also_when_it_has_gone(dragoman: Commands, broker: BrokerProcess) -> None:
    fake_worker = broker.serve(b"mail", None, slots=2)
    worker = wait_for("the worker", lambda: dragoman("workers", "--json").json["workers"])[0]["id"]
    assert dragoman("explain", worker).out.startswith("has 2 free slots")
    assert dragoman("explain", "mail").out.startswith("nothing waits; 1 worker")
    fake_worker.vanish()
    left = wait_for("its end", lambda: dragoman("explain", worker).out if not is_here(dragoman) else "")
    assert left.startswith("left ")
    assert "(its connection ended without a goodbye)" in left
    assert "joined " in left
    assert "and served `mail`" in left
    assert dragoman("explain", f"worker:{worker}").out.splitlines()[1] == left.splitlines()[1]
    broker.end()
    assert dragoman("explain", worker).out.startswith("left ")
    assert dragoman("explain", "w7.7").code == 3


def is_here(dragoman: Commands) -> bool:
    return bool(dragoman("workers", "--json").json["workers"])
