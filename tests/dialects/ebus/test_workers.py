"""Workers arrive, are fed, fall silent and leave."""

from __future__ import annotations

import pytest

from tests.core.harness import End
from tests.dialects.ebus.in_memory import EbusBroker, EbusPeer, EbusWorker, unpack


def disconnects(end: EbusPeer) -> list[bytes]:
    """The reasons of the DISCONNECTs heard."""
    return [frames[-1] for frames in end.take_words(b"DISCONNECT")]


def test_the_least_loaded_worker_comes_first() -> None:
    broker = EbusBroker()
    client = broker.ebus_client()
    workers = [broker.ebus_worker(identity=b"worker %d" % number) for number in range(3)]
    for number in range(9):
        client.ask(b"hello", b"rid-%d" % number)
    jobs = [worker.jobs() for worker in workers]
    assert [len(found) for found in jobs] == [3, 3, 3]
    for rid, _ in jobs[1]:
        workers[1].tell(b"REPLY", rid, b"answer")
    for number in range(9, 12):
        client.ask(b"hello", b"rid-%d" % number)
    assert [len(worker.jobs()) for worker in workers] == [0, 3, 0]


def test_a_worker_has_no_more_requests_out_than_the_bound() -> None:
    broker = EbusBroker()
    broker.ebus.settings.worker_requests_max = 3
    worker, client = broker.ebus_worker(), broker.ebus_client()
    for number in range(5):
        client.ask(b"hello", b"rid-%d" % number)
    jobs = worker.jobs()
    assert len(jobs) == 3
    worker.tell(b"REPLY", jobs[1][0], b"answer")
    worker.tell(b"REJECT", jobs[0][0], b"why")
    assert len(worker.jobs()) == 2
    worker.tell(b"REPLY", b"nonsense", b"answer")
    worker.tell(b"REPLY", jobs[1][0], b"again")
    client.ask(b"hello", b"rid-5")
    assert worker.jobs() == []


def test_the_bound_is_1005_unless_the_operator_says_otherwise() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    for number in range(1010):
        client.ask(b"hello", b"rid-%d" % number)
    assert len(worker.jobs()) == 1005


def test_a_worker_may_ask_for_less_and_for_more_services_in_its_ready() -> None:
    broker = EbusBroker()
    worker = broker.ebus_worker(b"hello", b"worker", b"2", b"mail")
    client = broker.ebus_client()
    for number in range(3):
        client.ask(b"hello", b"rid-%d" % number)
        client.ask(b"mail", b"mail-%d" % number)
    assert len(worker.jobs()) == 2


def test_the_slot_of_a_withdrawn_request_is_free_again() -> None:
    broker = EbusBroker()
    broker.ebus.settings.worker_requests_max = 1
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1")
    client.ask(b"hello", b"rid-2")
    rid, _ = worker.job()
    client.tell(b"CANCEL", b"hello", b"rid-1")
    broker.pass_time(0.2)
    fresh, _ = worker.job()
    assert fresh != rid
    worker.tell(b"REPLY", rid, b"answer to the cancelled one")
    assert worker.jobs() == []
    client.ask(b"hello", b"rid-3")
    worker.tell(b"REPLY", fresh, b"answer")
    assert len(worker.jobs()) == 1


def test_a_worker_that_dies_mid_job_has_it_run_elsewhere_under_the_same_rid() -> None:
    broker = EbusBroker()
    first, client = broker.ebus_worker(identity=b"first"), broker.ebus_client()
    client.ask(b"hello", b"rid-1")
    rid, _ = first.job()
    second = broker.ebus_worker(identity=b"second")
    first.leave()
    assert second.job() == (rid, b"data")
    second.tell(b"REPLY", rid, b"answer")
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-1", b"answer"]]


def test_the_first_answer_of_any_holder_wins_and_the_present_holder_is_notified() -> None:
    broker = EbusBroker()
    first, client = broker.ebus_worker(identity=b"first"), broker.ebus_client()
    client.ask(b"hello", b"rid-1")
    rid, _ = first.job()
    first.leave()
    second = broker.ebus_worker(identity=b"second")
    assert second.job()[0] == rid
    again = broker.ebus_worker(identity=b"first again")
    again.tell(b"REPLY", rid, b"from the first")
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-1", b"from the first"]]
    assert second.take_all() == [[b"EBC01", b"CANCEL", rid]]
    second.tell(b"REPLY", rid, b"from the second")
    assert client.take_all() == []


def test_an_answer_to_what_no_worker_was_ever_given_is_late() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(b"other"), broker.ebus_client()
    client.ask(b"hello", b"rid-1")
    number = broker.core.open_messages(4)[0].number
    worker.tell(b"REPLY", b"%x" % number, b"forged")
    assert client.take_all() == []
    assert len(broker.facts("late")) == 1


def test_a_silent_worker_is_pinged_each_second_five_times_then_sent_away_and_its_requests_run_elsewhere() -> None:
    broker = EbusBroker()
    broker.ebus.settings.heartbeat_ns = 0
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1", b"data", b"60000")
    rid, _ = worker.job()
    for _ in range(5):
        assert worker.take_words(b"PING") == []
        broker.pass_time(1)
        assert worker.take_words(b"PING") == [[b"EBC01", b"PING"]]
    assert disconnects(worker) == []
    broker.pass_time(1)
    assert disconnects(worker) == [b"no heartbeat"]
    assert worker.take_words(b"PING") == []
    assert [fact["reason"] for fact in broker.facts("worker_left")] == ["heartbeat_lost"]
    assert broker.is_finished(worker.session)
    assert broker.ebus_worker(identity=b"second").job()[0] == rid


@pytest.mark.parametrize("word", [b"HEARTBEAT", b"PING"])
def test_any_message_is_a_sign_of_life(word: bytes) -> None:
    broker = EbusBroker()
    worker = broker.ebus_worker()
    for _ in range(10):
        broker.pass_time(4)
        worker.tell(word)
    assert disconnects(worker) == []
    broker.pass_time(7)
    assert disconnects(worker) == [b"no heartbeat"]


def test_workers_hear_a_heartbeat_every_half_second_and_clients_none() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.tell(b"HEARTBEAT")
    broker.pass_time(0.9)
    worker.hear()
    client.hear()
    assert worker.heard == [[b"EBC01", b"HEARTBEAT"]]
    assert client.heard == []


def test_a_silent_broker_holds_nobodys_silence_against_them() -> None:
    broker = EbusBroker()
    worker = broker.ebus_worker()
    broker.now_ns += 20_000_000_000
    broker.core.set_time(broker.now_ns)
    broker.ebus.excuse(20_000_000_000)
    broker.pass_time(0.5)
    assert disconnects(worker) == []


@pytest.mark.parametrize(
    "frames",
    [
        [b"REPLY", b"1", b"x"],
        [b"REJECT", b"1"],
        [b"HEARTBEAT"],
        [b"PING"],
        [b"DISCONNECT", b"hello", b"why"],
        [b"SERVICES"],
    ],
)
def test_anything_before_ready_is_answered_with_disconnect(frames: list[bytes]) -> None:
    """A worker that outlived a restart of the broker shows up so: DISCONNECT makes it say READY again."""
    broker = EbusBroker()
    worker = EbusWorker(broker, "ebus.worker", b"worker")
    worker.tell(*frames)
    assert disconnects(worker) == [b"not ready: say READY first"]
    assert broker.is_finished(worker.session)


def test_ready_twice_is_answered_with_disconnect_and_the_requests_run_elsewhere() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1")
    rid, _ = worker.job()
    worker.tell(b"READY", b"null", b"hello")
    assert disconnects(worker) == [b"READY was said already"]
    assert broker.is_finished(worker.session)
    assert broker.ebus_worker(identity=b"second").job()[0] == rid


def test_a_worker_sent_away_is_not_listened_to_any_more() -> None:
    broker = EbusBroker()
    worker = broker.ebus_worker()
    worker.tell(b"NONSENSE")
    worker.tell(b"READY", b"null", b"hello")
    assert disconnects(worker) == [b"unknown message type"]
    assert broker.core.workers == {}


@pytest.mark.parametrize("frames", [[], [b"null"], [b""], [b"null", b""]])
def test_ready_without_a_service_is_answered_with_disconnect(frames: list[bytes]) -> None:
    broker = EbusBroker()
    worker = EbusWorker(broker, "ebus.worker", b"worker")
    worker.tell(b"READY", *frames)
    assert disconnects(worker) == [b"READY needs a service"]


def test_ready_for_a_service_whose_name_is_too_long_is_answered_with_the_reason() -> None:
    broker = EbusBroker()
    worker = EbusWorker(broker, "ebus.worker", b"worker")
    worker.tell(b"READY", b"null", b"s" * 300)
    (reason,) = disconnects(worker)
    assert b"longer than its limit" in reason


def test_a_ready_of_three_frames_is_accepted() -> None:
    broker = EbusBroker()
    worker = EbusWorker(broker, "ebus.worker", b"worker")
    worker.tell(b"READY", b"hello")
    broker.ebus_client().ask(b"hello", b"rid-1")
    assert len(worker.jobs()) == 1


def test_a_worker_that_leaves_gets_nothing_new_but_may_still_answer() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1")
    rid, _ = worker.job()
    worker.tell(b"DISCONNECT", b"hello", b"undefined")
    client.ask(b"hello", b"rid-2")
    assert worker.jobs() == []
    worker.tell(b"HEARTBEAT")
    worker.tell(b"REPLY", rid, b"answer")
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-1", b"answer"]]
    worker.tell(b"READY", b"null", b"hello")
    assert len(worker.jobs()) == 1


def test_a_worker_that_leaves_and_comes_back_for_less_has_no_more_than_that_in_the_end() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    for number in range(6):
        client.ask(b"hello", b"rid-%d" % number)
    jobs = worker.jobs()
    worker.tell(b"DISCONNECT", b"hello", b"undefined")
    worker.tell(b"READY", b"null", b"hello", b"2")
    for number in range(6, 12):
        client.ask(b"hello", b"rid-%d" % number)
    for rid, _ in jobs[:4]:
        worker.tell(b"REPLY", rid, b"answer")
        assert worker.jobs() == []
    worker.tell(b"REPLY", jobs[4][0], b"answer")
    assert len(worker.jobs()) == 1
    assert len(worker.session.work.leases) == 2


def test_what_a_leaving_worker_held_goes_back_without_counting_as_a_death() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1")
    worker.tell(b"DISCONNECT", b"hello", b"undefined")
    worker.leave()
    assert [fact["reason"] for fact in broker.facts("released")] == ["worker_left"]


def test_a_request_that_times_out_and_comes_straight_back_to_the_same_worker_is_cancelled_first() -> None:
    broker = EbusBroker()
    broker.core.settings.backoff_initial_ns = 0
    broker.ebus.settings.worker_requests_max = 3
    worker, client = broker.ebus_worker(), broker.client()
    client.request(b"hello", b"question", b"reply-requested,timeout:1,retry-count:1", b"job-1")
    rid, _ = worker.job()
    broker.pass_time(1.2)
    worker.tell(b"HEARTBEAT")
    heard = [frames[1:3] for frames in worker.heard if frames[1] in (b"REQ", b"CANCEL")]
    assert heard == [[b"CANCEL", rid], [b"REQ", rid]]
    worker.tell(b"REPLY", rid, b'{"value":1}')
    assert client.take(b"REPLY")[-1][1:] == [b'{"value":1}', b"job-1"]
    assert worker.session.work.slots == 3
    assert worker.session.work.leases == {}


def test_a_worker_that_does_not_read_gets_no_new_requests() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    worker.session.set_socket_full(True)
    client.ask(b"hello", b"rid-1")
    assert worker.jobs() == []
    worker.session.set_socket_full(False)
    broker.go_on()
    assert len(worker.jobs()) == 1


def test_the_brokers_channels_tell_of_its_start_its_workers_and_its_end() -> None:
    broker = EbusBroker()
    broker.ebus.listening()
    subscriber = broker.subscriber(b"ebus")
    broker.pass_time(2)
    worker = broker.ebus_worker()
    broker.pass_time(0.2)
    broker.ebus_worker(b"mail", b"second")
    broker.worker(b"job manager").inform((10, b"report"))
    broker.pass_time(0.2)
    worker.leave()
    broker.pass_time(0.2)
    broker.ebus.closing()
    subscriber.hear()
    assert [(frames[0], unpack(frames[1])) for frames in subscriber.heard] == [
        (b"ebus/started", {"ebusmessage": "broker starting"}),
        (b"ebus/workers", {"ebusmessage": "active workers", "workers": ["hello"]}),
        (b"ebus/workers", {"ebusmessage": "active workers", "workers": ["hello", "mail", "report"]}),
        (b"ebus/workers", {"ebusmessage": "active workers", "workers": ["mail", "report"]}),
        (b"ebus/shutdown", {"ebusmessage": "broker stopping"}),
    ]


def test_a_stopping_broker_disconnects_its_workers_and_clients() -> None:
    broker = EbusBroker()
    worker, client, silent = broker.ebus_worker(), broker.ebus_client(), End(broker, "ebus.client", b"silent")
    client.tell(b"HEARTBEAT")
    broker.ebus.closing()
    assert worker.take_words(b"DISCONNECT") == [[b"EBC01", b"DISCONNECT", b"broker is stopping"]]
    assert client.take_words(b"DISCONNECT") == [[b"", b"EBW01", b"DISCONNECT", b"broker is stopping"]]
    silent.hear()
    assert silent.heard == []


def test_a_worker_answers_for_its_own_services_only() -> None:
    broker = EbusBroker()
    worker, stranger, client = broker.ebus_worker(), broker.ebus_worker(b"other", b"stranger"), broker.ebus_client()
    client.ask(b"hello", b"rid-1")
    rid, _ = worker.job()
    stranger.tell(b"REPLY", rid, b"forged")
    stranger.tell(b"REJECT", rid, b"forged")
    assert client.take_all() == []
    worker.tell(b"REPLY", rid, b"answer")
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-1", b"answer"]]
    assert len(broker.facts("late")) == 2
