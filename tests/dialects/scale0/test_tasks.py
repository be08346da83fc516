"""TASK and TASKREPLY: the line, the wait table, and whose answer is whose."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.core.harness import InMemoryBroker
from tests.dialects.scale0.in_memory import new_client, new_worker, notes, pinged


def test_a_task_goes_to_a_worker_and_its_reply_comes_back_under_the_clients_own_id() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    client.task("job-1", body=b"\x00work")
    header, body = worker.one("TASK")
    assert body == b"\x00work"
    assert (header["service"], header["time"]) == ("mail", broker.now_ns / 1e9)
    assert header["config_version"] == broker.dialects.scale0.documents.version
    worker.reply(header["id"], b"done\xff")
    header, body = client.one("TASKREPLY")
    assert (header["id"], body) == ("job-1", b"done\xff")
    assert sorted(header) == ["config_version", "id", "time"]


@pytest.mark.parametrize("task_id", ["plain", 'quo"te', "ünïcode", "", 17, -1.5, 10**20, "\\", "\n", None])
def test_an_id_comes_back_exactly_as_it_was(task_id: Any) -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    client.task(task_id)
    ((given, _),) = worker.tasks()
    worker.reply(given)
    assert client.results() == [(task_id, b"done")]


def test_an_id_keeps_the_very_bytes_it_was_written_with() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    for token in (b'"\\u0041"', b"1.50", b"-0", b'"a"'):
        client.say(b"TASK", b'{"id": %s, "service": "mail"}' % token, b"")
        ((given, _),) = worker.tasks()
        worker.reply(given)
        ((_, header, _),) = client.hear()
        assert header.startswith(b'{"id":%s,' % token)
        worker.ping()
        worker.hear()


def test_the_id_towards_the_worker_names_origin_and_message() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker, b"shop-7")
    client.task("order-9")
    ((given, _),) = worker.tasks()
    number, origin, own = given.split(".")
    assert (len(number), origin, own) == (16, "shop-7", "order-9")


def test_one_ping_buys_one_task() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    client.task(1)
    client.task(2)
    assert len(worker.tasks()) == 1
    worker.ping()
    assert len(worker.tasks()) == 1


def test_a_second_ping_of_a_worker_in_the_line_buys_nothing_more() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    worker.ping()
    worker.ping()
    client.task(1)
    client.task(2)
    assert len(worker.tasks()) == 1


def test_a_worker_that_pings_again_on_receipt_works_on_several_at_once() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    client.task(1)
    ((first, _),) = worker.tasks()
    worker.ping()
    client.task(2)
    ((second, _),) = worker.tasks()
    worker.reply(second, b"two")
    worker.reply(first, b"one")
    assert client.results() == [(2, b"two"), (1, b"one")]


def test_a_reply_alone_does_not_put_a_worker_back_into_the_line() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    client.task(1)
    ((given, _),) = worker.tasks()
    worker.reply(given)
    client.task(2)
    assert worker.tasks() == []


def test_a_busy_ping_renews_and_does_not_join_the_line() -> None:
    broker = InMemoryBroker()
    worker, client = new_worker(broker), new_client(broker)
    worker.ping("mail", busy=True)
    assert worker.words() == ["PONG"]
    client.task(1)
    assert worker.tasks() == []
    worker.ping(busy=False)
    assert len(worker.tasks()) == 1


def test_a_clients_ping_is_answered_and_never_joins_a_line() -> None:
    broker = InMemoryBroker()
    other_client, client = new_client(broker, b"asker"), new_client(broker)
    other_client.ping("mail")
    assert other_client.words() == ["PONG"]
    client.task(1)
    assert other_client.hear() == []
    assert broker.facts("worker_joined") == []


def test_a_pong_tells_time_and_version() -> None:
    broker = InMemoryBroker()
    worker = new_worker(broker)
    worker.ping("mail", time=broker.now_ns / 1e9)
    header, _ = worker.one("PONG")
    assert header == {"time": broker.now_ns / 1e9, "config_version": broker.dialects.scale0.documents.version}


def test_a_task_without_a_worker_waits_for_one() -> None:
    broker = InMemoryBroker()
    client = new_client(broker)
    client.task(1)
    assert client.hear() == []
    worker = new_worker(broker)
    worker.ping("mail")
    assert [body for _, body in worker.tasks()] == [b"work"]


def test_workers_are_given_tasks_in_turn() -> None:
    broker = InMemoryBroker()
    workers = [pinged(broker, identity=b"w%d" % n) for n in range(3)]
    client = new_client(broker)
    for number in range(3):
        client.task(number)
    assert [len(worker.tasks()) for worker in workers] == [1, 1, 1]


def test_a_reply_whose_id_is_in_no_wait_table_is_discarded_and_recorded() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    for strange in ("nosuch", "0" * 16 + ".x.y", "f" * 16 + ".x.y", ""):
        worker.reply(strange)
    assert client.hear() == []
    assert len(broker.facts("late")) == 4


def test_a_late_answer_never_reaches_another_tasks_client() -> None:
    broker = InMemoryBroker()
    slow, first = pinged(broker), new_client(broker, b"first")
    first.task("same-id")
    ((given, _),) = slow.tasks()
    slow.reply(given)
    assert first.results() == [("same-id", b"done")]
    other, worker = new_client(broker, b"other"), pinged(broker, identity=b"w2")
    other.task("same-id")
    slow.reply(given, b"again")
    assert other.hear() == []
    assert first.hear() == []
    assert len(broker.facts("late")) == 1
    ((fresh, _),) = worker.tasks()
    worker.reply(fresh, b"its own")
    assert other.results() == [("same-id", b"its own")]


def test_a_reply_by_one_who_never_had_the_task_does_not_count_unless_it_knows_the_whole_id() -> None:
    broker = InMemoryBroker()
    worker, stranger, client = pinged(broker), pinged(broker, "other", identity=b"stranger"), new_client(broker)
    client.task(1)
    ((given, _),) = worker.tasks()
    stranger.reply(given[:16] + ".guess.guess", b"forged")
    assert client.hear() == []
    assert len(broker.facts("late")) == 1
    worker.reply(given)
    assert client.results() == [(1, b"done")]


def test_a_worker_that_came_back_may_answer_what_it_held_before() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    client.task(1)
    ((given, _),) = worker.tasks()
    worker.end.leave()
    again = new_worker(broker)
    again.ping("mail", busy=True)
    again.reply(given, b"finished")
    assert client.results() == [(1, b"finished")]


def test_a_worker_killed_mid_job_leaves_its_task_to_another() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    client.task(1)
    assert len(worker.tasks()) == 1
    worker.end.leave()
    broker.pass_time(1.5)
    other = new_worker(broker, b"other")
    other.ping("mail")
    ((given, _),) = other.tasks()
    other.reply(given)
    assert client.results() == [(1, b"done")]


def test_the_content_of_a_reply_is_not_judged() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    client.task(1)
    ((given, _),) = worker.tasks()
    worker.reply(given, b'{"error": "kaboom"}')
    assert client.results() == [(1, b'{"error": "kaboom"}')]


def test_large_bodies_pass_both_ways() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    client.task(1, body=b"b" * 100_000)
    ((given, body),) = worker.tasks()
    assert body == b"b" * 100_000
    worker.reply(given, b"r" * 200_000)
    assert client.results() == [(1, b"r" * 200_000)]


def test_a_long_service_and_a_long_id_pass() -> None:
    broker = InMemoryBroker()
    service, long_id = "s" * 255, "i" * 255
    worker, client = pinged(broker, service), new_client(broker)
    client.task(long_id, service)
    ((given, _),) = worker.tasks()
    worker.reply(given)
    assert client.results() == [(long_id, b"done")]


@pytest.mark.parametrize("header", [{"id": "i" * 256, "service": "mail"}, {"id": 1, "service": "s" * 256}])
def test_what_is_too_long_is_refused_with_its_id(header: dict[str, Any]) -> None:
    broker = InMemoryBroker()
    client = new_client(broker)
    client.send("TASK", b"", **header)
    said, _ = client.one("ERROR")
    assert (said["code"], said["id"]) == (501, header["id"])
    assert said["reason"].startswith("TOO_LONG: ")


def test_a_task_that_ends_without_an_answer_is_reported_with_its_id() -> None:
    broker = InMemoryBroker()
    client = new_client(broker)
    client.task("gone")
    (message,) = broker.core.open_messages(1)
    from dragoman.model.enums import BY_OPERATOR

    broker.core.cancel(message, BY_OPERATOR)
    said, _ = client.one("ERROR")
    assert said == {"code": 503, "reason": "BY_OPERATOR", "id": "gone"}


def test_services_may_be_named_with_commas() -> None:
    broker = InMemoryBroker()
    worker, client = new_worker(broker), new_client(broker)
    worker.send("PING", services="mail, thumbs")
    assert worker.words() == ["PONG"]
    client.task(1, "thumbs")
    assert len(worker.tasks()) == 1


def test_a_worker_that_offers_nothing_is_only_alive() -> None:
    broker = InMemoryBroker()
    worker = new_worker(broker)
    worker.say(b"PING")
    assert worker.words() == ["PONG"]
    assert notes(broker) == {"SCALE0_NO_SERVICES": 1}


def test_other_services_take_the_place_of_the_first_ones() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker, "mail"), new_client(broker)
    worker.ping("thumbs")
    worker.hear()
    client.task(1, "mail")
    assert worker.tasks() == []
    client.task(2, "thumbs")
    assert len(worker.tasks()) == 1


def test_a_peer_behind_a_delimiter_is_answered_behind_one() -> None:
    broker = InMemoryBroker()
    worker = new_worker(broker)
    worker.say(b"", b"PING", b'{"services":["mail"]}')
    ((empty, command, header),) = worker.hear()
    assert (empty, command) == (b"", b"PONG")
    assert json.loads(header)["config_version"]
    client = new_client(broker)
    client.task(1)
    ((empty, command, *_),) = worker.hear()
    assert (empty, command) == (b"", b"TASK")
