"""What a client asks and what it is told."""

from __future__ import annotations

import pytest

from tests.dialects.ebus.in_memory import EbusBroker, unpack


def test_a_request_reaches_a_worker_and_its_reply_the_client() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1", b"question", b"2500")
    (frames,) = worker.take_all()
    assert frames[:2] == [b"EBC01", b"REQ"]
    assert frames[3:] == [b"question", b"2500"]
    worker.tell(b"REPLY", frames[2], b"answer")
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-1", b"answer"]]
    assert broker.facts("closed")[0]["reason"] == "answered"


def test_what_the_worker_does_not_get_is_null_and_the_default_expiry() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.tell(b"REQ", b"hello", b"rid-1")
    (frames,) = worker.take_all()
    assert frames[3:] == [b"null", b"3000"]


@pytest.mark.parametrize("text", [b"", b"null", b"soon", b"-5", b"0", b"2.5", b"\xff", b"9" * 300])
def test_a_stales_that_is_no_number_of_milliseconds_means_the_default(text: bytes) -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1", b"data", text)
    assert worker.take_all()[0][4] == b"3000"


def test_a_stales_of_years_is_bounded() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1", b"data", b"9" * 20)
    client.leave()
    worker.leave()
    broker.pass_time(60)
    again = broker.ebus_worker(identity=b"second")
    (frames,) = again.take_all()
    assert frames[4] == b"%d" % (2**31 - 1 - 60_000)


def test_a_worker_gets_the_remaining_time_of_a_waiting_request() -> None:
    broker = EbusBroker()
    client = broker.ebus_client()
    client.ask(b"hello", b"rid-1", b"data", b"2500")
    broker.pass_time(1)
    assert broker.ebus_worker().take_all()[0][4] == b"1500"


def test_a_workers_reject_is_final_and_carries_its_data() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    broker.ebus_worker(identity=b"idle")
    client.ask(b"hello", b"rid-1")
    rid, _ = worker.job()
    worker.tell(b"REJECT", rid, b"why")
    assert client.take_all() == [[b"", b"EBW01", b"REJECT", b"rid-1", b"why"]]
    assert [fact["reason"] for fact in broker.facts("closed")] == ["refused_by_worker"]


def test_a_request_that_expires_while_it_waits_is_rejected_without_a_reason() -> None:
    broker = EbusBroker()
    client = broker.ebus_client()
    client.ask(b"hello", b"rid-1", b"data", b"2500")
    broker.pass_time(2.4)
    assert client.take_all() == []
    broker.pass_time(0.3)
    assert client.take_all() == [[b"", b"EBW01", b"REJECT", b"rid-1"]]


def test_a_request_that_expires_while_it_runs_is_rejected_and_its_worker_notified() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1", b"data", b"2500")
    rid, _ = worker.job()
    for _ in range(6):
        worker.tell(b"HEARTBEAT")
        broker.pass_time(0.5)
    assert client.take_all() == [[b"", b"EBW01", b"REJECT", b"rid-1"]]
    assert worker.take_all() == [[b"EBC01", b"CANCEL", rid]]
    worker.tell(b"REPLY", rid, b"too late")
    assert client.take_all() == []
    assert len(broker.facts("late")) == 1


def test_cancel_withdraws_a_waiting_request() -> None:
    broker = EbusBroker()
    client = broker.ebus_client()
    client.ask(b"hello", b"rid-1")
    client.tell(b"CANCEL", b"hello", b"rid-1")
    (frames,) = client.take_all()
    assert frames[:4] == [b"", b"EBW01", b"REJECT", b"rid-1"]
    assert unpack(frames[4]) == "BY_CLIENT: by client"
    assert broker.ebus_worker().jobs() == []


def test_cancel_of_a_running_request_reaches_its_worker_and_rejects_it_to_the_client() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1")
    rid, _ = worker.job()
    client.tell(b"CANCEL", b"hello", b"rid-1")
    assert worker.take_all() == [[b"EBC01", b"CANCEL", rid]]
    assert client.take_all()[0][2:4] == [b"REJECT", b"rid-1"]
    worker.tell(b"REPLY", rid, b"late")
    assert client.take_all() == []


def test_cancel_of_what_is_not_there_changes_nothing() -> None:
    broker = EbusBroker()
    client, other = broker.ebus_client(), broker.ebus_client(b"other")
    client.ask(b"hello", b"rid-1")
    other.tell(b"CANCEL", b"hello", b"rid-1")
    other.tell(b"CANCEL")
    client.tell(b"CANCEL", b"hello", b"rid-2")
    assert other.take_all() == []
    assert client.take_all() == []
    assert len(broker.ebus_worker().jobs()) == 1


def test_a_clients_reject_cancels_what_runs_and_is_not_answered() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1")
    rid, _ = worker.job()
    client.tell(b"REJECT", b"rid-1", b"no longer wanted")
    assert worker.take_all() == [[b"EBC01", b"CANCEL", rid]]
    assert client.take_all() == []


def test_a_clients_reject_of_what_has_ended_or_never_was_is_ignored() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1")
    worker.tell(b"REPLY", worker.job()[0], b"answer")
    client.take_all()
    client.tell(b"REJECT", b"rid-1", b"no request with rid-1")
    client.tell(b"REJECT", b"rid-9", b"no request with rid-9")
    client.tell(b"REJECT")
    assert client.take_all() == []
    assert not broker.is_finished(client.session)


def test_services_and_workers_name_every_worker_whatever_it_speaks() -> None:
    broker = EbusBroker()
    client = broker.ebus_client()
    client.tell(b"SERVICES")
    (frames,) = client.take_all()
    assert frames[:4] == [b"", b"EBW01", b"SERVICES", b""]
    assert unpack(frames[4]) == []
    broker.ebus_worker(b"mail", b"W/mail/1")
    worker = broker.ebus_worker(b"hello", b"W/hello/1")
    broker.ebus_worker(b"hello", b"")
    broker.worker(b"job manager").inform((10, b"report"))
    client.ask(b"hello", b"rid-1")
    client.tell(b"SERVICES")
    client.tell(b"WORKERS")
    services, workers = client.take_all()
    assert unpack(services[4]) == ["hello", "mail", "report"]
    assert workers[:4] == [b"", b"EBW01", b"WORKERS", b""]
    described = unpack(workers[4])
    assert [entry["service"] for entry in described] == ["hello", "hello", "mail", "report"]
    assert [entry["id"] for entry in described][::2] == ["W/hello/1", "W/mail/1"]
    assert described[1]["id"].startswith("W/hello/")
    assert [entry["load"] for entry in described] == [len(worker.jobs()), 0, 0, 0]


def test_the_brokers_own_data_is_json_if_the_operator_says_so() -> None:
    broker = EbusBroker()
    broker.ebus.settings.is_json = True
    broker.ebus.reconfigured()
    client = broker.ebus_client()
    broker.ebus_worker()
    client.tell(b"SERVICES")
    assert client.take_all()[0][4] == b'["hello"]'


def test_a_ping_is_answered_at_once_on_both_ports_without_waiting_for_the_disk() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.raw(b"", b"EBC01", b"PING")
    worker.raw(b"EBW01", b"PING")
    assert client.heard == [[b"", b"EBW01", b"HEARTBEAT"]]
    assert worker.heard == [[b"EBC01", b"HEARTBEAT"]]


def test_a_request_refused_at_the_door_is_rejected_with_the_code_and_may_be_sent_again() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    broker.core.refusing = 1
    client.ask(b"hello", b"rid-1")
    (frames,) = client.take_all()
    assert frames[2:4] == [b"REJECT", b"rid-1"]
    assert unpack(frames[4]).startswith("DRAINING: ")
    broker.core.refusing = 0
    client.ask(b"hello", b"rid-1")
    assert len(worker.jobs()) == 1


def test_a_rid_or_a_service_longer_than_its_limit_is_rejected() -> None:
    broker = EbusBroker()
    client = broker.ebus_client()
    client.ask(b"hello", b"r" * 256)
    client.ask(b"s" * 256, b"rid")
    assert [unpack(frames[4]).partition(":")[0] for frames in client.take_all()] == ["TOO_LONG", "TOO_LONG"]


def test_bodies_of_any_size_cross_untouched() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    for size in (0, 1, 255, 256, 16_384, 16_385, 1_000_000):
        data = bytes(range(256)) * (size // 256) + b"\xff" * (size % 256)
        client.ask(b"hello", b"rid-%d" % size, data)
        rid, heard = worker.job()
        assert heard == data
        worker.tell(b"REPLY", rid, data[::-1])
        assert client.take_all()[0][4] == data[::-1]


def test_an_ebus_client_is_served_by_a_worker_of_another_dialect() -> None:
    broker = EbusBroker()
    worker, client = broker.worker(), broker.ebus_client()
    worker.inform((10, b"hello"))
    worker.ready(1)
    client.ask(b"hello", b"rid-1", b"question")
    ((request_id, queue, _, body),) = worker.take(b"REQUEST")
    assert (queue, body) == (b"hello", b"question")
    worker.say(b"REPLY", b"id", b"answer", request_id)
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-1", b"answer"]]


def test_an_ebus_worker_serves_a_client_of_another_dialect() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.client()
    client.request(b"hello", b"question", b"reply-requested,timeout:7", b"job-1")
    (frames,) = worker.take_all()
    assert frames[3:] == [b"question", b"7000"]
    worker.tell(b"REPLY", frames[2], b'{"value":1}')
    assert client.take(b"REPLY")[-1][1:] == [b'{"value":1}', b"job-1"]


def test_a_client_of_another_dialect_without_a_time_bound_does_not_expire_at_an_ebus_worker() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.client()
    client.request(b"hello", b"question", b"reply-requested", b"job-1")
    (frames,) = worker.take_all()
    for _ in range(20):
        worker.tell(b"HEARTBEAT")
        broker.pass_time(0.5)
    worker.tell(b"REPLY", frames[2], b'{"value":1}')
    assert client.take(b"REPLY")[-1][1:] == [b'{"value":1}', b"job-1"]


def test_a_worker_gets_no_time_longer_than_its_timers_know() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1", b"data", b"99999999999")
    (frames,) = worker.take_words(b"REQ")
    assert frames[4] == b"2147483647"
