"""The facts tell a life whole: what ends an attempt says when it began and who had it, over restarts and checkpoints, too."""

from __future__ import annotations

from dragoman.core.core import Core
from dragoman.model.facts.decode import decode_block
from dragoman.model.units import SECOND_NS
from tests.core.harness import START_NS, InMemoryBroker
from tests.core.replaying import canonical, from_checkpoint, replayed


def held_by_one_worker() -> tuple[InMemoryBroker, int]:
    """A broker with one message leased to a worker; the worker's number."""
    broker = InMemoryBroker()
    worker = broker.worker()
    worker.inform((10, b"mail"))
    worker.ready()
    broker.client().request(b"mail")
    leased = broker.facts("leased")
    assert len(leased) == 1
    number = leased[0]["worker_no"]
    assert isinstance(number, int)
    return broker, number


def facts_of_a_start(core: Core, now_ns: int) -> list[dict[str, object]]:
    core.set_time(now_ns)
    core.start(core.state.boot_no + 1, b"0.1.0", bytes(16))
    return decode_block(core.log.take())


def test_a_start_says_of_every_lease_it_breaks_who_had_it_and_since_when() -> None:
    broker, worker_no = held_by_one_worker()
    core = replayed(broker)
    facts = facts_of_a_start(core, broker.now_ns + SECOND_NS)
    assert [fact["fact"] for fact in facts] == ["started", "released", "queue_named"]
    released = facts[1]
    assert (released["worker_no"], released["attempt"]) == (worker_no, 1)
    assert (released["reason"], released["leased_ns"], released["worker_dialect"]) == ("broker_started", START_NS, "")
    assert facts[2]["queue"] == "mail"


def test_a_checkpoint_remembers_who_has_what() -> None:
    broker, worker_no = held_by_one_worker()
    core = from_checkpoint(broker)
    assert canonical(core) == canonical(broker.core)
    assert facts_of_a_start(core, broker.now_ns + SECOND_NS)[1]["worker_no"] == worker_no


def test_a_replay_does_what_started_says_once() -> None:
    broker, _ = held_by_one_worker()
    broker.core.set_time(broker.now_ns + SECOND_NS)
    broker.core.start(2, b"0.1.0", bytes(16))
    broker.commit()
    core = replayed(broker)
    queue = core.state.queues[b"mail"]
    assert (queue.waiting, queue.leased, queue.released) == (1, 0, 0)
    assert len(core.state.queues_by_no) == 1


def test_the_end_of_a_delayed_and_retried_message_tells_what_its_client_asked() -> None:
    broker = InMemoryBroker()
    first, second = broker.worker(b"first"), broker.worker(b"second")
    first.inform((10, b"mail"))
    first.ready()
    broker.client().request(b"mail", headers=b"delay:2")
    broker.pass_time(2.5)
    assert len(first.jobs()) == 1
    first.leave()
    second.inform((10, b"mail"))
    second.ready()
    broker.pass_time(2)
    second.reply(second.jobs()[0])
    closed = broker.facts("closed")
    assert [(fact["attempt"], fact["due_ns"]) for fact in closed] == [(2, START_NS + 2 * SECOND_NS)]
    assert [fact["leased_ns"] for fact in broker.facts("released")] == [closed[0]["first_leased_ns"]]


def test_a_message_cancelled_in_a_workers_hands_names_the_holder() -> None:
    broker, worker_no = held_by_one_worker()
    message = next(iter(broker.core.state.messages.values()))
    broker.core.cancel(message, 9)
    closed = broker.facts("closed")[0]
    assert (closed["worker_no"], closed["holder_no"], closed["leased_ns"]) == (0, worker_no, START_NS)


def test_a_message_cancelled_while_it_waits_ends_no_attempt() -> None:
    broker = InMemoryBroker()
    broker.client().request(b"mail")
    message = next(iter(broker.core.state.messages.values()))
    broker.core.cancel(message, 9)
    closed = broker.facts("closed")[0]
    assert "holder_no" not in closed
    assert closed["leased_ns"] == 0
