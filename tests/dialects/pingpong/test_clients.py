"""Clients of the ping-pong dialogue: every order is answered once, and in the order of asking."""

from __future__ import annotations

import msgspec
import pytest

from dragoman.core.operator import set_paused
from dragoman.core.settings import CoreSettings
from dragoman.limits import EARLY_ANSWERS_SIZE_MAX
from dragoman.model.enums import DRAINING, JOURNAL_FAILING
from tests.dialects.pingpong.in_memory import FakeClient, PingpongBroker, json_worker, ready_worker


@pytest.fixture
def broker() -> PingpongBroker:
    return PingpongBroker()


def test_results_come_in_the_order_of_asking_though_the_second_is_done_first(broker: PingpongBroker) -> None:
    first, second, client = ready_worker(broker), ready_worker(broker), FakeClient(broker)
    client.order(b"one")
    client.order(b"two")
    second.result(b"2")
    assert client.results() == []
    first.result(b"1")
    assert client.results() == [b"1", b"2"]
    assert broker.pingpong.early_size == 0


def test_two_clients_do_not_wait_for_each_other(broker: PingpongBroker) -> None:
    first, second = ready_worker(broker), ready_worker(broker)
    slow, quick = FakeClient(broker, b"slow"), FakeClient(broker, b"quick")
    slow.order(b"one")
    quick.order(b"two")
    second.result(b"2")
    assert quick.results() == [b"2"]
    first.result(b"1")
    assert slow.results() == [b"1"]


def test_an_order_waits_when_no_worker_is_free(broker: PingpongBroker) -> None:
    client = FakeClient(broker)
    client.order(b"job")
    client.send_json({"order": 1})
    assert client.said() == []
    assert ready_worker(broker).jobs() == [[b"", b"job"]]


def test_a_refusal_keeps_its_place_in_the_order(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(b"one")
    client.order(b"PONG")
    assert client.said() == []
    worker.result(b"1")
    answers = client.said()
    assert answers[0] == [b"", b"1"]
    assert answers[1][:2] == [b"", b"ERROR"]


def test_a_plain_refusal_names_its_reason(broker: PingpongBroker) -> None:
    client = FakeClient(broker)
    broker.core.refusing = DRAINING
    client.order(b"job")
    ((empty, error, reason),) = client.said()
    assert (empty, error) == (b"", b"ERROR")
    assert reason.startswith(b"DRAINING: ")


def test_a_json_client_is_answered_in_json(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    client.send(b'{"order": {"price":100}}')
    assert worker.jobs() == [[b"", b'{"price":100}']]
    worker.result(b"ORDER_STORED")
    assert client.said() == [[b'{"msg":"ORDER_STORED"}']]


def test_json_orders_and_results_pass_between_json_peers_as_they_are(broker: PingpongBroker) -> None:
    worker, client = json_worker(broker), FakeClient(broker)
    client.send(b'{"order":{"price":1.50,"side":"sell"}}')
    (frame,) = worker.said()[-1]
    assert b'"job":{"price":1.50,"side":"sell"}' in frame
    token = msgspec.json.decode(frame)["token"]
    worker.send_json({"status": "SUCCESS", "token": token, "result": {"stored": True}})
    assert client.said() == [[b'{"msg":{"stored":true}}']]


def test_full_is_reported_only_when_new_work_is_refused(broker: PingpongBroker) -> None:
    client = FakeClient(broker)
    broker.core.refusing = DRAINING
    client.send_json({"order": 1})
    assert client.said() == [[b'{"msg":"FULL"}']]


def test_full_is_reported_when_the_queue_is_at_its_limit() -> None:
    settings = CoreSettings()
    settings.queue_messages_max = 1
    broker = PingpongBroker(settings)
    client, other = FakeClient(broker), FakeClient(broker, b"other")
    client.send_json({"order": 1})
    other.send_json({"order": 2})
    assert client.said() == []
    assert other.said() == [[b'{"msg":"FULL"}']]


def test_a_refusal_does_not_wait_for_a_journal_that_can_keep_nothing(broker: PingpongBroker) -> None:
    client = FakeClient(broker)
    broker.core.refusing = JOURNAL_FAILING
    client.session.receive(b"\x01\x00\x00\x03job")
    assert b"JOURNAL_FAILING" in client.session.take_free()


def test_a_result_that_is_no_text_is_an_error_to_a_json_client(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    client.send_json({"order": 1})
    worker.result(b"\xff")
    ((frame,),) = client.said()
    assert msgspec.json.decode(frame)["msg"] == "ERROR"
    assert "INEXPRESSIBLE" in msgspec.json.decode(frame)["reason"]


@pytest.mark.parametrize("frames", [[b"", b"a", b"b"], [b"x", b"y"], [b"", b"", b"", b"z"]])
def test_a_message_of_no_known_shape_is_answered_with_an_error(broker: PingpongBroker, frames: list[bytes]) -> None:
    client = FakeClient(broker)
    client.send(*frames)
    (said,) = client.said()
    assert b"ERROR" in said
    assert said[-1].startswith(b"BAD_ORDER")
    assert broker.notes() == {"PINGPONG_SHAPE": 1}


def test_json_without_an_order_is_answered_with_an_error(broker: PingpongBroker) -> None:
    client = FakeClient(broker)
    client.send_json({"status": "PING"})
    ((frame,),) = client.said()
    assert msgspec.json.decode(frame)["msg"] == "ERROR"


def test_a_client_without_the_empty_frame_is_answered_without_it(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    client.send(b"bare order")
    worker.result(b"done")
    assert client.said() == [[b"done"]]


def test_a_req_client_with_an_empty_frame_of_its_own_is_answered_in_kind(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker, b"", b"REQ")
    client.send(b"", b"", b"order")
    worker.result(b"done")
    assert client.said() == [[b"", b"", b"done"]]


def test_a_client_that_comes_back_gets_its_answers_in_the_order_it_asked(broker: PingpongBroker) -> None:
    first, second, client = ready_worker(broker), ready_worker(broker), FakeClient(broker)
    client.order(b"one")
    client.order(b"two")
    client.leave()
    second.result(b"2")  # while it is away
    again = FakeClient(broker)
    again.order(b"three")
    assert again.said() == []
    first.result(b"1")
    second.result(b"3")
    broker.pass_time(0.2)
    assert again.results() == [b"1", b"2", b"3"]


def test_an_answer_that_waited_for_an_earlier_one_survives_a_reconnect(broker: PingpongBroker) -> None:
    first, second, client = ready_worker(broker), ready_worker(broker), FakeClient(broker)
    client.order(b"one")
    client.order(b"two")
    second.result(b"2")
    client.leave()
    again = FakeClient(broker)
    first.result(b"1")
    assert again.results() == [b"1", b"2"]
    assert broker.pingpong.early_size == 0


def test_what_failed_while_its_client_was_away_does_not_hold_up_the_rest(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(b"one")
    client.order(b"two")
    client.leave()
    message = next(iter(worker.broker_side.work.leases.values()))
    broker.core.cancel(message, 10)
    again = FakeClient(broker)
    worker.result(b"late")
    worker.result(b"2")
    broker.pass_time(0.2)
    assert again.said() == [[b"", b"ERROR", b"REPLY_UNDELIVERABLE"], [b"", b"2"]]


def test_an_anonymous_client_gets_nothing_that_another_connection_asked(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker, b"")
    client.order(b"one")
    client.leave()
    other = FakeClient(broker, b"")
    worker.result(b"1")
    broker.pass_time(0.2)
    assert other.said() == []


def test_places_of_clients_that_stay_away_are_forgotten(broker: PingpongBroker) -> None:
    first, second, client = ready_worker(broker), ready_worker(broker), FakeClient(broker)
    client.order(b"one")
    client.order(b"two")
    second.result(b"2")
    client.leave()
    assert len(broker.pingpong.departed) == 1
    assert broker.pingpong.early_size > 0
    broker.pass_time(31.0)
    assert len(broker.pingpong.departed) == 0
    assert broker.pingpong.early_size == 0
    first.result(b"1")


def test_orders_are_refused_while_too_many_answers_wait_for_earlier_ones(broker: PingpongBroker) -> None:
    first, second, client = ready_worker(broker), ready_worker(broker), FakeClient(broker)
    client.order(b"one")
    client.order(b"two")
    second.result(b"2")
    broker.pingpong.early_size += EARLY_ANSWERS_SIZE_MAX
    client.order(b"three")
    first.result(b"1")
    assert client.said()[2][2].startswith(b"QUEUE_FULL")


def test_a_req_client_that_came_back_never_gets_an_earlier_result_for_its_new_order(broker: PingpongBroker) -> None:
    first = FakeClient(broker, b"me", b"REQ")
    first.order(b"one")
    first.leave()
    again = FakeClient(broker, b"me", b"REQ")
    again.order(b"two")
    worker = ready_worker(broker)
    worker.result(b"1")
    assert again.said() == []
    worker.result(b"2")
    assert again.results() == [b"2"]
    assert broker.notes()["PINGPONG_PLACE_FORGOTTEN"] == 1


def test_a_client_that_is_back_before_its_old_connection_ends_gets_all_answers_in_order(broker: PingpongBroker) -> None:
    first, second, client = ready_worker(broker), ready_worker(broker), FakeClient(broker)
    client.order(b"one")
    again = FakeClient(broker)
    again.order(b"two")
    client.leave()
    second.result(b"2")
    assert again.said() == []
    first.result(b"1")
    assert again.results() == [b"1", b"2"]
    again.order(b"three")
    second.result(b"3")
    assert again.results() == [b"3"]


def test_a_result_whose_place_is_forgotten_is_not_taken_for_that_of_another_order(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(b"one")
    client.leave()
    broker.pass_time(31.0)
    again = FakeClient(broker)
    again.order(b"two")
    worker.result(b"1")
    worker.result(b"2")
    assert again.results() == [b"2"]


def test_a_json_client_that_came_back_is_notified_in_json_what_ended_meanwhile(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    client.send_json({"order": 1})
    client.leave()
    broker.core.cancel(next(iter(worker.broker_side.work.leases.values())), 10)
    again = FakeClient(broker)
    broker.pass_time(0.2)
    assert again.said() == [[b'{"msg":"ERROR","reason":"REPLY_UNDELIVERABLE"}']]


def test_an_order_of_a_client_that_came_back_may_wait_on_disk_for_as_long_as_it_takes() -> None:
    settings = CoreSettings()
    settings.head_max = 1
    broker = PingpongBroker(settings)
    worker, client = ready_worker(broker), FakeClient(broker)
    for number in range(4):
        client.order(b"%d" % number)
    client.leave()
    again = FakeClient(broker)
    worker.result(b"done 0")
    set_paused(broker.core, b"pingpong", True)
    worker.result(b"done 1")  # the next one is on disk only, and stays there
    broker.pass_time(1.0)
    set_paused(broker.core, b"pingpong", False)
    for number in range(2, 4):
        worker.result(b"done %d" % number)
    assert again.results() == [b"done 0", b"done 1", b"done 2", b"done 3"]


def test_a_client_that_lets_no_result_wait_does_not_suffer_for_those_that_do(broker: PingpongBroker) -> None:
    broker.pingpong.early_size = EARLY_ANSWERS_SIZE_MAX + 1
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(b"job")
    worker.result(b"done")
    assert client.results() == [b"done"]


def test_a_client_that_lets_too_much_wait_is_cut_off(broker: PingpongBroker) -> None:
    client = FakeClient(broker)
    client.order(b"never done")
    client.broker_side.early_size = broker.pingpong.early_size = (
        EARLY_ANSWERS_SIZE_MAX + broker.outboxes.message_size_max
    )
    client.send(b"no", b"known", b"shape")
    assert client.broker_side.is_finished
    assert broker.pingpong.early_size == 0
    assert broker.notes()["PINGPONG_TOO_MUCH_WAITS"] == 1
