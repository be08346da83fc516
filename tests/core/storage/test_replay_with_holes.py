"""Replay of a journal that a salvage left without some of its facts: no message is lost for it, and nothing fails."""

from __future__ import annotations

import pytest

from dragoman.core.core import Core
from dragoman.core.storage.replay import Replay
from dragoman.model.facts.decode import decode_block
from tests.core.harness import FIRST_POSITION, InMemoryBroker
from tests.core.replaying import canonical, replayed


def worked() -> InMemoryBroker:
    """Messages that were leased, released, leased again, and one of them quarantined; others wait."""
    broker = InMemoryBroker()
    broker.core.settings.quarantine_after = 2
    client = broker.client()
    for number in range(4):
        client.request(b"mail", b'{"number": %d}' % number)
    for name in (b"first", b"second", b"third"):
        worker = broker.worker(name)
        worker.inform((10, b"mail"))
        worker.ready(2)
        if name != b"third":
            worker.leave()
        broker.pass_time(2)
    client.request(b"other", b'{"number": 9}')
    broker.commit()
    return broker


def replayed_without(broker: InMemoryBroker, index: int) -> Core:
    core = Core(broker.core.settings, broker.load)
    replay, position = Replay(core), FIRST_POSITION
    for at, (instant_ns, records) in enumerate(broker.blocks):
        if at != index:
            replay.block(records, position, instant_ns)
        position += len(records)
    return core


def numbers(core: Core) -> set[int]:
    return set(core.state.messages)


def test_any_one_block_may_be_missing_and_every_other_message_is_there() -> None:
    broker = worked()
    whole = replayed(broker)
    for index, (_, records) in enumerate(broker.blocks):
        core = replayed_without(broker, index)
        gone = {int(str(f["message_no"])) for f in decode_block(records) if f["fact"] == "accepted"}
        assert numbers(core) >= numbers(whole) - gone, f"block {index} missing"
        canonical(core)


def test_a_queue_whose_name_is_lost_keeps_its_messages_under_its_number() -> None:
    broker = InMemoryBroker()
    broker.client().request(b"mail", b"{}")
    broker.client(b"late").request(b"mail", b"{}")
    index = next(i for i, (_, records) in enumerate(broker.blocks) if b"mail" in records)
    core = replayed_without(broker, index)
    (queue,) = core.state.queues.values()
    assert (queue.name, queue.waiting) == (b"name-lost-1", 1)


def test_a_later_boot_gives_the_queue_its_name_back() -> None:
    broker = InMemoryBroker()
    broker.client().request(b"mail", b"{}")
    broker.client(b"late").request(b"mail", b"{}")
    broker.commit()
    index = next(i for i, (_, records) in enumerate(broker.blocks) if b"mail" in records)
    broker.core.start(2, b"0.1.0", bytes(16))
    broker.commit()
    core = replayed_without(broker, index)
    (queue,) = core.state.queues.values()
    assert (queue.name, queue.waiting) == (b"mail", 1)
    assert [m.queue for m in core.state.messages.values()] == [b"mail"]


def test_a_new_queue_never_takes_the_number_of_one_that_is_there() -> None:
    broker = InMemoryBroker()
    for name in (b"a", b"b", b"c"):
        broker.client(name).request(name, b"{}")
    index = next(
        i for i, (_, r) in enumerate(broker.blocks) if any(f["fact"] == "queue_named" for f in decode_block(r))
    )
    core = replayed_without(broker, index)
    taken = set(core.state.queues_by_no)
    assert core.roster.name_queue(b"new").number not in taken


@pytest.mark.parametrize("fact", ["leased", "released", "quarantined"])
def test_a_lost_lease_release_or_quarantine_is_made_up(fact: str) -> None:
    broker = worked()
    found = [i for i, (_, r) in enumerate(broker.blocks) if any(f["fact"] == fact for f in decode_block(r))]
    assert found, f"the story has no {fact}"
    for index in found:
        canonical(replayed_without(broker, index))
