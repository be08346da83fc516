"""A peer that presents a message's id was given it: no worker can count to another worker's request, in ebus or in Scale0."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from librt.strings import read_i32_le

from dragoman.model.facts.layout import KEYED
from tests.core.harness import InMemoryBroker
from tests.core.replaying import check_replay, restart
from tests.dialects.ebus.in_memory import EbusClient, EbusWorker
from tests.dialects.scale0 import in_memory as scale0

GUESSES = 300


def near(digits: str) -> Iterator[str]:
    """What one that has seen an id tries: the numbers around it, and the numbers that a broker counts by."""
    value = int(digits, 16)
    for step in range(1, GUESSES):
        for guess in (value + step, value - step, (1 << 40) + step, (2 << 40) + step, step):
            yield f"{guess & (1 << 64) - 1:016x}"
            yield f"{guess & (1 << 64) - 1:x}"


def without_key(broker: InMemoryBroker) -> InMemoryBroker:
    """The same past as an earlier version would have written it."""
    for number, (instant_ns, records) in enumerate(broker.blocks):
        kept, at = b"", 0
        while at < len(records):
            size = read_i32_le(records, at)
            if records[at + 4] != KEYED:
                kept += records[at : at + size]
            at += size
        broker.blocks[number] = (instant_ns, kept)
    broker.records = b"".join(records for _, records in broker.blocks)
    broker.core.ids.key = b""
    broker.core.ids.first = (1 << 63) - 1
    return broker


# -- ebus ---------------------------------------------------------------------------------------------------------------


def ebus_worker(broker: InMemoryBroker, identity: bytes) -> EbusWorker:
    server = EbusWorker(broker, "ebus.worker", identity)
    server.tell(b"READY", b"null", b"hello")
    return server


def ebus_client(broker: InMemoryBroker) -> EbusClient:
    return EbusClient(broker, "ebus.client", b"client")


def test_an_ebus_worker_cannot_count_to_the_rid_of_anothers_request() -> None:
    broker = InMemoryBroker()
    honest, client = ebus_worker(broker, b"honest"), ebus_client(broker)
    client.ask(b"hello", b"mine", b"a", b"60000")
    [(rid, _)] = honest.jobs()
    thief = ebus_worker(broker, b"thief")
    client.ask(b"hello", b"other", b"b", b"60000")
    [(own, _)] = thief.jobs()
    assert len(rid) == len(own) == 16
    for guess in near(own.decode()):
        thief.tell(b"REPLY", guess.encode(), b"forged")
        thief.tell(b"REJECT", guess.encode(), b"forged")
    assert client.take_all() == []
    honest.tell(b"REPLY", rid, b"true")
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"mine", b"true"]]


def test_a_rid_survives_redelivery_and_counts_after_a_reconnect() -> None:
    broker = InMemoryBroker()
    first, client = ebus_worker(broker, b"first"), ebus_client(broker)
    client.ask(b"hello", b"mine", b"a", b"60000")
    [(rid, _)] = first.jobs()
    first.leave()
    second = ebus_worker(broker, b"second")
    assert second.jobs() == [(rid, b"a")]
    again = ebus_worker(broker, b"first")
    again.tell(b"REPLY", rid, b"late but true")
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"mine", b"late but true"]]


@pytest.mark.parametrize("by_checkpoint", [False, True])
def test_a_rid_counts_after_a_restart(by_checkpoint: bool) -> None:
    broker = InMemoryBroker()
    worker, client = ebus_worker(broker, b"worker"), ebus_client(broker)
    client.ask(b"hello", b"mine", b"a", b"60000")
    [(rid, _)] = worker.jobs()
    after = restart(broker, by_checkpoint=by_checkpoint)
    after.dialects.ebus.listening()
    again = ebus_worker(after, b"anybody")
    again.jobs()
    again.tell(b"REPLY", rid, b"true")
    client = ebus_client(after)
    client.ask(b"hello", b"mine", b"a", b"60000")
    assert client.take_all()[0] == [b"", b"EBW01", b"REPLY", b"mine", b"true"]
    check_replay(after)


def test_rids_from_before_the_upgrade_stay_valid_and_their_holder_is_asked_for() -> None:
    broker = without_key(InMemoryBroker())
    worker, client = ebus_worker(broker, b"worker"), ebus_client(broker)
    client.ask(b"hello", b"mine", b"a", b"60000")
    [(rid, _)] = worker.jobs()
    assert rid == b"10000000002"
    after = restart(broker, by_checkpoint=False)
    after.dialects.ebus.listening()
    holder = ebus_worker(after, b"holder")
    assert holder.jobs() == [(rid, b"a")], "the rid is unchanged over redeliveries"
    other, client = ebus_worker(after, b"other"), ebus_client(after)
    other.tell(b"REPLY", rid, b"forged")
    client.ask(b"hello", b"mine", b"a", b"60000")
    assert client.take_all() == []
    holder.tell(b"REPLY", rid, b"true")
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"mine", b"true"]]
    client.ask(b"hello", b"next", b"b", b"60000")
    [(rid, _)] = holder.jobs() or other.jobs()
    assert len(rid) == 16
    check_replay(after)


def test_a_late_answer_is_recorded_by_the_messages_number() -> None:
    broker = InMemoryBroker()
    worker, client = ebus_worker(broker, b"worker"), ebus_client(broker)
    client.ask(b"hello", b"mine")
    [(rid, _)] = worker.jobs()
    worker.tell(b"REPLY", rid, b"once")
    worker.tell(b"REPLY", rid, b"twice")
    worker.tell(b"REPLY", b"nonsense", b"twice")
    [closed] = broker.facts("closed")
    number = closed["message_no"]
    assert isinstance(number, int)
    digits = f"{number:016x}"
    named = [fact["wire_id"] for fact in broker.facts("late")]
    assert named == [f"00000000-0000-0000-{digits[:4]}-{digits[4:]}", "nonsense"]


# -- scale0 -------------------------------------------------------------------------------------------------------------


def test_a_scale0_worker_cannot_count_to_the_id_of_anothers_task() -> None:
    broker = InMemoryBroker()
    honest, client = scale0.pinged(broker, identity=b"honest"), scale0.new_client(broker)
    client.task("mine")
    [(task_id, _)] = honest.tasks()
    thief = scale0.pinged(broker, identity=b"thief")
    client.task("other")
    [(own, _)] = thief.tasks()
    digits, dot, rest = own.partition(".")
    assert (len(digits), dot) == (16, ".")
    for guess in near(digits):
        for tail in (task_id.partition(".")[2], rest, ""):
            thief.reply(f"{guess}.{tail}", b"forged")
    assert client.results() == []
    honest.reply(task_id, b"true")
    assert client.results() == [("mine", b"true")]


@pytest.mark.parametrize("by_checkpoint", [False, True])
def test_a_task_id_counts_after_a_reconnect_and_after_a_restart(by_checkpoint: bool) -> None:
    broker = InMemoryBroker()
    worker, client = scale0.pinged(broker), scale0.new_client(broker)
    client.task("first")
    client.task("second")
    [(first, _)] = worker.tasks()
    worker.end.leave()
    again = scale0.new_worker(broker, b"again")
    again.ping("mail", busy=True)
    again.reply(first, b"after a reconnect")
    assert client.results() == [("first", b"after a reconnect")]
    again.ping("mail")
    [(second, _)] = again.tasks()
    after = restart(broker, by_checkpoint=by_checkpoint)
    client = scale0.new_client(after)
    last = scale0.new_worker(after, b"last")
    last.ping("mail", busy=True)
    last.reply(second, b"after a restart")
    assert client.results() == [("second", b"after a restart")]
    check_replay(after)


def test_task_ids_from_before_the_upgrade_stay_valid() -> None:
    broker = without_key(InMemoryBroker())
    worker, client = scale0.pinged(broker), scale0.new_client(broker)
    client.task("mine")
    [(task_id, _)] = worker.tasks()
    assert task_id.startswith("0000010000000002.")
    after = restart(broker, by_checkpoint=False)
    client, last = scale0.new_client(after), scale0.new_worker(after, b"last")
    last.ping("mail", busy=True)
    last.reply(task_id, b"true")
    assert client.results() == [("mine", b"true")]


# -- emqp ---------------------------------------------------------------------------------------------------------------


def test_an_emqp_worker_is_given_a_permuted_id_where_the_clients_own_cannot_serve() -> None:
    broker = InMemoryBroker()
    client, worker = broker.client(), broker.worker()
    worker.inform((10, b"mail"))
    worker.ready(2)
    client.request(b"mail", message_id=b"twin", headers=b"reply-requested")
    client.request(b"mail", message_id=b"twin", headers=b"reply-requested")
    first, second = worker.jobs()
    assert first == b"twin"
    [number] = [n for n in broker.core.state.messages if broker.core.ids.of(broker.core.state.messages[n]) == second]
    plain = f"00000000-0000-0000-{number >> 48:04x}-{number & (1 << 48) - 1:012x}".encode()
    assert second.startswith(b"00000000-0000-0000-")
    assert second != plain
    worker.reply(plain)
    assert len(broker.core.state.messages) == 2, "the number itself is no id"
    worker.reply(second)
    assert len(broker.core.state.messages) == 1
