"""TASK and TASKREPLY: the line, the wait table, and whose answer is whose."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.core.harness import House
from tests.dialects.scale0.stall import client, notes, pinged, worker


def test_a_task_goes_to_a_worker_and_its_reply_comes_back_under_the_clients_own_id() -> None:
    house = House()
    servant, master = pinged(house), client(house)
    master.task("job-1", body=b"\x00work")
    header, body = servant.one("TASK")
    assert body == b"\x00work"
    assert (header["service"], header["time"]) == ("mail", house.now_ns / 1e9)
    assert header["config_version"] == house.dialects.scale0.documents.version
    servant.reply(header["id"], b"done\xff")
    header, body = master.one("TASKREPLY")
    assert (header["id"], body) == ("job-1", b"done\xff")
    assert sorted(header) == ["config_version", "id", "time"]


@pytest.mark.parametrize("task_id", ["plain", 'quo"te', "ünïcode", "", 17, -1.5, 10**20, "\\", "\n", None])
def test_an_id_comes_back_exactly_as_it_was(task_id: Any) -> None:
    house = House()
    servant, master = pinged(house), client(house)
    master.task(task_id)
    ((given, _),) = servant.tasks()
    servant.reply(given)
    assert master.results() == [(task_id, b"done")]


def test_an_id_keeps_the_very_bytes_it_was_written_with() -> None:
    house = House()
    servant, master = pinged(house), client(house)
    for token in (b'"\\u0041"', b"1.50", b"-0", b'"a"'):
        master.say(b"TASK", b'{"id": %s, "service": "mail"}' % token, b"")
        ((given, _),) = servant.tasks()
        servant.reply(given)
        ((_, header, _),) = master.hear()
        assert header.startswith(b'{"id":%s,' % token)
        servant.ping()
        servant.hear()


def test_the_id_towards_the_worker_names_origin_and_message() -> None:
    house = House()
    servant, master = pinged(house), client(house, b"shop-7")
    master.task("order-9")
    ((given, _),) = servant.tasks()
    number, origin, own = given.split(".")
    assert (len(number), origin, own) == (16, "shop-7", "order-9")


def test_one_ping_buys_one_task() -> None:
    house = House()
    servant, master = pinged(house), client(house)
    master.task(1)
    master.task(2)
    assert len(servant.tasks()) == 1
    servant.ping()
    assert len(servant.tasks()) == 1


def test_a_second_ping_of_a_worker_in_the_line_buys_nothing_more() -> None:
    house = House()
    servant, master = pinged(house), client(house)
    servant.ping()
    servant.ping()
    master.task(1)
    master.task(2)
    assert len(servant.tasks()) == 1


def test_a_worker_that_pings_again_on_receipt_works_on_several_at_once() -> None:
    house = House()
    servant, master = pinged(house), client(house)
    master.task(1)
    ((first, _),) = servant.tasks()
    servant.ping()
    master.task(2)
    ((second, _),) = servant.tasks()
    servant.reply(second, b"two")
    servant.reply(first, b"one")
    assert master.results() == [(2, b"two"), (1, b"one")]


def test_a_reply_alone_does_not_put_a_worker_back_into_the_line() -> None:
    house = House()
    servant, master = pinged(house), client(house)
    master.task(1)
    ((given, _),) = servant.tasks()
    servant.reply(given)
    master.task(2)
    assert servant.tasks() == []


def test_a_busy_ping_renews_and_does_not_join_the_line() -> None:
    house = House()
    servant, master = worker(house), client(house)
    servant.ping("mail", busy=True)
    assert servant.words() == ["PONG"]
    master.task(1)
    assert servant.tasks() == []
    servant.ping(busy=False)
    assert len(servant.tasks()) == 1


def test_a_clients_ping_is_answered_and_never_joins_a_line() -> None:
    house = House()
    asker, master = client(house, b"asker"), client(house)
    asker.ping("mail")
    assert asker.words() == ["PONG"]
    master.task(1)
    assert asker.hear() == []
    assert house.facts("worker_joined") == []


def test_a_pong_tells_time_and_version() -> None:
    house = House()
    servant = worker(house)
    servant.ping("mail", time=house.now_ns / 1e9)
    header, _ = servant.one("PONG")
    assert header == {"time": house.now_ns / 1e9, "config_version": house.dialects.scale0.documents.version}


def test_a_task_without_a_worker_waits_for_one() -> None:
    house = House()
    master = client(house)
    master.task(1)
    assert master.hear() == []
    servant = worker(house)
    servant.ping("mail")
    assert [body for _, body in servant.tasks()] == [b"work"]


def test_workers_are_given_tasks_in_turn() -> None:
    house = House()
    servants = [pinged(house, identity=b"w%d" % n) for n in range(3)]
    master = client(house)
    for number in range(3):
        master.task(number)
    assert [len(servant.tasks()) for servant in servants] == [1, 1, 1]


def test_a_reply_whose_id_is_in_no_wait_table_is_discarded_and_recorded() -> None:
    house = House()
    servant, master = pinged(house), client(house)
    for strange in ("nosuch", "0" * 16 + ".x.y", "f" * 16 + ".x.y", ""):
        servant.reply(strange)
    assert master.hear() == []
    assert len(house.facts("late")) == 4


def test_a_late_answer_never_reaches_another_tasks_client() -> None:
    house = House()
    slow, first = pinged(house), client(house, b"first")
    first.task("same-id")
    ((given, _),) = slow.tasks()
    slow.reply(given)
    assert first.results() == [("same-id", b"done")]
    other, servant = client(house, b"other"), pinged(house, identity=b"w2")
    other.task("same-id")
    slow.reply(given, b"again")
    assert other.hear() == []
    assert first.hear() == []
    assert len(house.facts("late")) == 1
    ((fresh, _),) = servant.tasks()
    servant.reply(fresh, b"its own")
    assert other.results() == [("same-id", b"its own")]


def test_a_reply_by_one_who_never_had_the_task_does_not_count_unless_it_knows_the_whole_id() -> None:
    house = House()
    servant, stranger, master = pinged(house), pinged(house, "other", identity=b"stranger"), client(house)
    master.task(1)
    ((given, _),) = servant.tasks()
    stranger.reply(given[:16] + ".guess.guess", b"forged")
    assert master.hear() == []
    assert len(house.facts("late")) == 1
    servant.reply(given)
    assert master.results() == [(1, b"done")]


def test_a_worker_that_came_back_may_answer_what_it_held_before() -> None:
    house = House()
    servant, master = pinged(house), client(house)
    master.task(1)
    ((given, _),) = servant.tasks()
    servant.end.leave()
    again = worker(house)
    again.ping("mail", busy=True)
    again.reply(given, b"finished")
    assert master.results() == [(1, b"finished")]


def test_a_worker_killed_mid_job_leaves_its_task_to_another() -> None:
    house = House()
    servant, master = pinged(house), client(house)
    master.task(1)
    assert len(servant.tasks()) == 1
    servant.end.leave()
    house.pass_time(1.5)
    other = worker(house, b"other")
    other.ping("mail")
    ((given, _),) = other.tasks()
    other.reply(given)
    assert master.results() == [(1, b"done")]


def test_the_content_of_a_reply_is_not_judged() -> None:
    house = House()
    servant, master = pinged(house), client(house)
    master.task(1)
    ((given, _),) = servant.tasks()
    servant.reply(given, b'{"error": "kaboom"}')
    assert master.results() == [(1, b'{"error": "kaboom"}')]


def test_large_bodies_pass_both_ways() -> None:
    house = House()
    servant, master = pinged(house), client(house)
    master.task(1, body=b"b" * 100_000)
    ((given, body),) = servant.tasks()
    assert body == b"b" * 100_000
    servant.reply(given, b"r" * 200_000)
    assert master.results() == [(1, b"r" * 200_000)]


def test_a_long_service_and_a_long_id_pass() -> None:
    house = House()
    service, long_id = "s" * 255, "i" * 255
    servant, master = pinged(house, service), client(house)
    master.task(long_id, service)
    ((given, _),) = servant.tasks()
    servant.reply(given)
    assert master.results() == [(long_id, b"done")]


@pytest.mark.parametrize("header", [{"id": "i" * 256, "service": "mail"}, {"id": 1, "service": "s" * 256}])
def test_what_is_too_long_is_refused_with_its_id(header: dict[str, Any]) -> None:
    house = House()
    master = client(house)
    master.send("TASK", b"", **header)
    said, _ = master.one("ERROR")
    assert (said["code"], said["id"]) == (501, header["id"])
    assert said["reason"].startswith("TOO_LONG: ")


def test_a_task_that_ends_without_an_answer_is_told_with_its_id() -> None:
    house = House()
    master = client(house)
    master.task("gone")
    (message,) = house.core.open_messages(1)
    from dragoman.model.words import BY_OPERATOR

    house.core.cancel(message, BY_OPERATOR)
    said, _ = master.one("ERROR")
    assert said == {"code": 503, "reason": "BY_OPERATOR", "id": "gone"}


def test_services_may_be_named_with_commas() -> None:
    house = House()
    servant, master = worker(house), client(house)
    servant.send("PING", services="mail, thumbs")
    assert servant.words() == ["PONG"]
    master.task(1, "thumbs")
    assert len(servant.tasks()) == 1


def test_a_worker_that_offers_nothing_is_only_alive() -> None:
    house = House()
    servant = worker(house)
    servant.say(b"PING")
    assert servant.words() == ["PONG"]
    assert notes(house) == {"SCALE0_NO_SERVICES": 1}


def test_other_services_take_the_place_of_the_first_ones() -> None:
    house = House()
    servant, master = pinged(house, "mail"), client(house)
    servant.ping("thumbs")
    servant.hear()
    master.task(1, "mail")
    assert servant.tasks() == []
    master.task(2, "thumbs")
    assert len(servant.tasks()) == 1


def test_a_peer_behind_a_delimiter_is_answered_behind_one() -> None:
    house = House()
    servant = worker(house)
    servant.say(b"", b"PING", b'{"services":["mail"]}')
    ((empty, command, header),) = servant.hear()
    assert (empty, command) == (b"", b"PONG")
    assert json.loads(header)["config_version"]
    master = client(house)
    master.task(1)
    ((empty, command, *_),) = servant.hear()
    assert (empty, command) == (b"", b"TASK")
