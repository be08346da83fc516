"""The same rid again: never a second run, never somebody else's answer."""

from __future__ import annotations

import pytest

from tests.dialects.ebus.in_memory import EbusBroker, EbusClient, unpack


def test_a_rid_sent_again_attaches_to_the_running_request() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1")
    client.ask(b"hello", b"rid-1")
    rid, _ = worker.job()
    worker.tell(b"REPLY", rid, b"answer")
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-1", b"answer"]]


def test_a_rid_sent_again_after_its_answer_gets_the_remembered_one() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1", b"data", b"2500")
    worker.tell(b"REPLY", worker.job()[0], b"answer")
    for _ in range(2):
        client.ask(b"hello", b"rid-1", b"data", b"2500")
        worker.tell(b"HEARTBEAT")
        broker.pass_time(3)
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-1", b"answer"]] * 3
    assert worker.jobs() == []


@pytest.mark.parametrize(("stales_ms", "kept_s"), [(b"100", 5.0), (b"2500", 7.5)])
def test_an_answer_is_remembered_for_5_s_or_three_times_its_stales(stales_ms: bytes, kept_s: float) -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1", b"data", stales_ms)
    worker.tell(b"REPLY", worker.job()[0], b"answer")
    while kept_s > 0.3:
        worker.tell(b"HEARTBEAT")
        broker.pass_time(0.2)
        kept_s -= 0.2
    client.ask(b"hello", b"rid-1")
    assert worker.jobs() == []
    broker.pass_time(kept_s + 0.2)
    client.ask(b"hello", b"rid-1")
    assert len(worker.jobs()) == 1


@pytest.mark.parametrize("how", ["rejected", "expired", "cancelled"])
def test_a_request_that_ended_badly_is_not_run_again_either(how: str) -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1", b"data", b"1000")
    rid, _ = worker.job()
    if how == "rejected":
        worker.tell(b"REJECT", rid, b"why")
    elif how == "expired":
        broker.pass_time(1.2)
    else:
        client.tell(b"CANCEL", b"hello", b"rid-1")
    first = client.take_all()
    client.ask(b"hello", b"rid-1", b"data", b"1000")
    assert client.take_all() == first
    assert worker.jobs() == []


def test_two_clients_may_use_one_rid_and_each_gets_its_own_answer() -> None:
    broker = EbusBroker()
    worker, ana, ben = broker.ebus_worker(), broker.ebus_client(b"ana"), broker.ebus_client(b"ben")
    ana.ask(b"hello", b"1", b"from ana")
    ben.ask(b"hello", b"1", b"from ben")
    (first, data), (second, _) = worker.jobs()
    assert data == b"from ana"
    assert first != second
    worker.tell(b"REPLY", second, b"for ben")
    worker.tell(b"REPLY", first, b"for ana")
    assert ana.take_all() == [[b"", b"EBW01", b"REPLY", b"1", b"for ana"]]
    assert ben.take_all() == [[b"", b"EBW01", b"REPLY", b"1", b"for ben"]]


def test_ebus_rid_collision_a_late_answer_never_reaches_the_client_with_the_same_rid() -> None:
    """The first one's request expired in its worker's hands; the worker answers when another client asks under that rid."""
    broker = EbusBroker()
    worker, ana = broker.ebus_worker(), broker.ebus_client(b"ana")
    ana.ask(b"hello", b"1", b"same data", b"500")
    stale, _ = worker.job()
    broker.pass_time(1)
    assert ana.take_all() == [[b"", b"EBW01", b"REJECT", b"1"]]
    ben = broker.ebus_client(b"ben")
    ben.ask(b"hello", b"1", b"same data", b"500")
    fresh, _ = worker.job()
    worker.tell(b"REPLY", stale, b"for ana")
    assert ben.take_all() == []
    worker.tell(b"REPLY", fresh, b"for ben")
    assert ben.take_all() == [[b"", b"EBW01", b"REPLY", b"1", b"for ben"]]
    assert ana.take_all() == []


def test_a_stranger_with_the_same_rid_and_data_does_not_get_the_answer_of_one_who_is_still_there() -> None:
    broker = EbusBroker()
    worker, ana, ben = broker.ebus_worker(), broker.ebus_client(b"ana"), broker.ebus_client(b"ben")
    ana.ask(b"hello", b"1")
    worker.tell(b"REPLY", worker.job()[0], b"for ana")
    ben.ask(b"hello", b"1")
    assert ben.take_all() == []
    assert len(worker.jobs()) == 1


def come_back(broker: EbusBroker, client: EbusClient, identity: bytes) -> EbusClient:
    client.leave()
    return broker.ebus_client(identity)


@pytest.mark.parametrize("identity", [b"client", b"another", b""])
def test_a_client_that_comes_back_and_sends_again_attaches_to_what_runs(identity: bytes) -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client(b"client")
    client.ask(b"hello", b"rid-1")
    rid, _ = worker.job()
    client = come_back(broker, client, identity)
    client.ask(b"hello", b"rid-1")
    assert worker.jobs() == []
    worker.tell(b"REPLY", rid, b"answer")
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-1", b"answer"]]


@pytest.mark.parametrize("identity", [b"another", b""])
@pytest.mark.parametrize("size", [0, 512, 513, 20_000])
def test_a_client_that_comes_back_under_a_new_name_gets_what_was_answered_meanwhile(identity: bytes, size: int) -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client(b"")
    client.ask(b"hello", b"rid-1", b"x" * size)
    rid, _ = worker.job()
    client.leave()
    worker.tell(b"REPLY", rid, b"answer")
    client = broker.ebus_client(identity)
    assert client.take_all() == []
    client.ask(b"hello", b"rid-1", b"x" * size)
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-1", b"answer"]]
    assert worker.jobs() == []
    client.leave()
    stranger = broker.ebus_client(b"stranger")
    stranger.ask(b"hello", b"rid-1", b"y" * size + b"y")
    assert stranger.take_all() == []
    assert len(worker.jobs()) == 1


def test_a_client_that_comes_back_under_its_name_is_notified_what_ended_meanwhile_once() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1")
    client.ask(b"hello", b"rid-2")
    (first, _), (second, _) = worker.jobs()
    client.leave()
    worker.tell(b"REPLY", first, b"answer")
    worker.tell(b"REJECT", second, b"why")
    client = broker.ebus_client()
    assert client.take_all() == [
        [b"", b"EBW01", b"REPLY", b"rid-1", b"answer"],
        [b"", b"EBW01", b"REJECT", b"rid-2", b"why"],
    ]
    client.leave()
    assert broker.ebus_client().take_all() == []


@pytest.mark.parametrize(("service", "data"), [(b"hello", b"other data"), (b"other", b"data")])
def test_what_a_stranger_sends_with_another_service_or_data_is_a_request_of_its_own(
    service: bytes, data: bytes
) -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client(b"client")
    other = broker.ebus_worker(b"other", b"other worker")
    client.ask(b"hello", b"rid-1", b"data")
    rid, _ = worker.job()
    client.leave()
    stranger = broker.ebus_client(b"stranger")
    stranger.ask(service, b"rid-1", data)
    assert len(worker.jobs() + other.jobs()) == 1
    worker.tell(b"REPLY", rid, b"not for the stranger")
    assert stranger.take_all() == []


def test_a_client_that_is_its_own_worker_learns_what_became_of_its_request() -> None:
    """Its connection ends as both at once: the request that it held itself is quarantined with its end."""
    broker = EbusBroker()
    broker.core.settings.quarantine_after = 1
    both = broker.ebus_worker(identity=b"both")
    both.raw(b"", b"EBC01", b"REQ", b"hello", b"rid-1", b"data", b"60000")
    both.job()
    both.leave()
    again = broker.ebus_client(b"both", "ebus.worker")
    (frames,) = again.take_all()
    assert frames[2:4] == [b"REJECT", b"rid-1"]
    assert unpack(frames[4]) == "WORKERS_DIED: workers died"


def test_a_request_on_disk_whose_outcome_went_to_a_twin_connection_has_ended() -> None:
    broker = EbusBroker()
    broker.core.settings.head_max = 1
    first, newest = broker.ebus_client(b"twin"), broker.ebus_client(b"twin")
    for number in range(3):
        first.ask(b"hello", b"rid-%d" % number, b"data", b"500")
    broker.pass_time(1)
    told = first.take_all() + newest.take_all()
    assert sorted(frames[3] for frames in told) == [b"rid-0", b"rid-1", b"rid-2"]
    assert broker.ebus.requests.count == 3
    assert broker.ebus.requests.client_records[first.session.address].open == {}


def test_the_requests_of_a_client_that_disconnects_go_on_until_they_expire() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1", b"data", b"2000")
    client.tell(b"DISCONNECT")
    assert broker.is_finished(client.session)
    rid, _ = worker.job()
    broker.pass_time(1)
    assert worker.take_words(b"CANCEL") == []
    worker.tell(b"HEARTBEAT")
    broker.pass_time(1.2)
    assert worker.take_words(b"CANCEL") == [[b"EBC01", b"CANCEL", rid]]


def test_of_two_connections_with_one_name_the_one_that_sent_last_is_answered() -> None:
    broker = EbusBroker()
    worker, first, second = broker.ebus_worker(), broker.ebus_client(b"twin"), broker.ebus_client(b"twin")
    first.ask(b"hello", b"rid-1")
    second.ask(b"hello", b"rid-1")
    rid, _ = worker.job()
    worker.tell(b"REPLY", rid, b"answer")
    assert first.take_all() == []
    assert second.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-1", b"answer"]]


def test_when_one_of_two_connections_with_one_name_ends_the_other_is_answered() -> None:
    broker = EbusBroker()
    worker, first, second = broker.ebus_worker(), broker.ebus_client(b"twin"), broker.ebus_client(b"twin")
    first.ask(b"hello", b"rid-1")
    second.ask(b"hello", b"rid-2")
    first.leave()
    for rid, _ in worker.jobs():
        worker.tell(b"REPLY", rid, b"answer")
    assert [frames[3] for frames in second.take_all()] == [b"rid-1", b"rid-2"]


@pytest.mark.parametrize("identity", [b"client", b"another", b""])
def test_a_rid_sent_again_right_after_a_restart_of_the_broker_does_not_run_twice(identity: bytes) -> None:
    broker = EbusBroker()
    client = broker.ebus_client(b"client")
    client.ask(b"hello", b"rid-1", b"data", b"9000")
    broker = broker.restarted()
    client = broker.ebus_client(identity)
    client.ask(b"hello", b"rid-1", b"data", b"9000")
    worker = broker.ebus_worker()
    rid, _ = worker.job()
    worker.tell(b"REPLY", rid, b"answer")
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-1", b"answer"]]


def test_a_stranger_with_the_same_rid_after_a_restart_must_have_the_same_data_to_take_a_request_over() -> None:
    broker = EbusBroker()
    broker.core.settings.head_max = 1
    client = broker.ebus_client(b"client")
    for number in range(3):
        client.ask(b"hello", b"rid-%d" % number, b"data %d" % number, b"9000")
    broker = broker.restarted()
    stranger, returned = broker.ebus_client(b"stranger"), broker.ebus_client(b"")
    for number in range(3):
        stranger.ask(b"hello", b"rid-%d" % number, b"else %d" % number, b"9000")
        returned.ask(b"hello", b"rid-%d" % number, b"data %d" % number, b"9000")
    worker = broker.ebus_worker()
    for rid, data in worker.jobs():
        worker.tell(b"REPLY", rid, b"for " + data)
    assert sorted(frames[4] for frames in stranger.take_all()) == [b"for else 0", b"for else 1", b"for else 2"]
    assert sorted(frames[4] for frames in returned.take_all()) == [b"for data 0", b"for data 1", b"for data 2"]


def test_what_a_worker_answers_after_a_restart_waits_for_its_client() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client(b"")
    client.ask(b"hello", b"rid-1", b"data", b"9000")
    rid, _ = worker.job()
    broker = broker.restarted()
    worker = broker.ebus_worker()
    assert worker.job()[0] == rid, "a rid stays the same over redeliveries"
    worker.tell(b"REPLY", rid, b"answer")
    client = broker.ebus_client(b"")
    client.ask(b"hello", b"rid-1", b"data", b"9000")
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-1", b"answer"]]
    assert worker.jobs() == []


def test_as_many_answers_are_remembered_as_the_settings_allow_the_latest_first() -> None:
    broker = EbusBroker()
    broker.ebus.settings.answers_max = 2
    broker.ebus.reconfigured()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    for number in range(4):
        client.ask(b"hello", b"rid-%d" % number)
        worker.tell(b"REPLY", worker.job()[0], b"answer")
    client.take_all()
    for number in range(4):
        client.ask(b"hello", b"rid-%d" % number)
    assert [frames[3] for frames in client.take_all()] == [b"rid-2", b"rid-3"]
    assert len(worker.jobs()) == 2


def test_the_bytes_of_remembered_answers_are_bounded() -> None:
    broker = EbusBroker()
    broker.ebus.settings.answers_size_max = 3000
    broker.ebus.reconfigured()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    for number in range(20):
        client.ask(b"hello", b"rid-%d" % number, b"q" * 600)
        worker.tell(b"REPLY", worker.job()[0], b"a" * 400)
    requests = broker.ebus.requests
    assert 1500 <= requests.size <= 3000
    assert requests.size == requests.count * 1000


def test_nothing_is_left_of_clients_that_have_gone_once_their_answers_are_old() -> None:
    broker = EbusBroker()
    worker = broker.ebus_worker()
    for number in range(20):
        client = broker.ebus_client(b"")
        client.ask(b"hello", b"same rid", b"data %d" % number)
        rid, _ = worker.job()
        if number % 2:
            worker.tell(b"REPLY", rid, b"answer")
        client.leave()
    requests = broker.ebus.requests
    assert len(requests.client_records) == 20
    broker.pass_time(30)
    assert (requests.client_records, requests.orphans, len(requests.batches)) == ({}, {}, 0)
    assert (requests.count, requests.size) == (0, 0)
    assert not broker.core.routes.peers.keys() - {worker.session.address}


def test_a_request_quarantined_for_killing_its_workers_is_rejected_and_stays_so() -> None:
    broker = EbusBroker()
    client = broker.ebus_client()
    client.ask(b"hello", b"rid-1", b"data", b"60000")
    for number in range(broker.core.settings.quarantine_after):
        broker.ebus_worker(identity=b"worker %d" % number).leave()
        broker.pass_time(2)
    (frames,) = client.take_all()
    assert frames[2:4] == [b"REJECT", b"rid-1"]
    assert unpack(frames[4]) == "WORKERS_DIED: workers died"
    after = broker.restarted()
    assert after.ebus.requests.client_records == {}


def test_a_rid_is_free_again_once_its_outcome_is_old_whatever_else_is_remembered() -> None:
    broker = EbusBroker()
    worker, patient, client = broker.ebus_worker(), broker.ebus_client(b"patient"), broker.ebus_client()
    for end, stales_ms in ((patient, b"2147483647"), (client, b"2147483647"), (client, b"1000")):
        end.ask(b"hello", b"rid-" + stales_ms, b"data", stales_ms)
        worker.tell(b"REPLY", worker.job()[0], b"old")
    client.take_all()
    broker.pass_time(4.5)
    client.ask(b"hello", b"rid-1000")
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-1000", b"old"]]
    for _ in range(2):
        broker.pass_time(1)
        worker.tell(b"HEARTBEAT")
    client.ask(b"hello", b"rid-1000")
    worker.tell(b"REPLY", worker.job()[0], b"new")
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-1000", b"new"]]
    client.ask(b"hello", b"rid-1000")
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-1000", b"new"]]
    client.leave()
    broker.pass_time(30)
    requests = broker.ebus.requests
    assert requests.count == sum(len(batch.ended) for batch in requests.batches)
    assert requests.size == sum(len(ended.value) for batch in requests.batches for ended in batch.ended.values())


def test_a_client_whose_answers_are_kept_for_long_has_a_few_batches_of_them() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    for number in range(200):
        client.ask(b"hello", b"rid-%d" % number, b"data", b"100000" if number % 2 else b"1000")
        worker.tell(b"REPLY", worker.job()[0], b"answer")
        broker.pass_time(2)
    assert len(broker.ebus.requests.client_records[client.session.address].batches) < 30
