"""Answers that came while their client was away."""

from __future__ import annotations

from dragoman import limits
from dragoman.model.units import SECOND_NS
from tests.core.harness import Client, House, Worker


def served(house: House, slots: int = 1) -> Worker:
    worker = house.worker()
    worker.inform((10, b"mail"))
    worker.ready(slots)
    return worker


def results(client: Client) -> list[bytes]:
    return [frames[2] for frames in client.take(b"REPLY") if len(frames) == 3]


def answered_while_away(house: House, name: bytes, headers: bytes = b"reply-requested") -> bytes:
    client = house.client(name)
    job = client.request(b"mail", headers=headers)
    client.leave()
    served(house).reply(job)
    return job


def test_a_client_that_comes_back_gets_the_answer_that_came_meanwhile_once() -> None:
    house = House()
    job = answered_while_away(house, b"kim")
    assert results(house.client(b"kim")) == [job]
    assert results(house.client(b"kim")) == []


def test_an_answer_is_left_for_nobody_else() -> None:
    house = House()
    job = answered_while_away(house, b"kim")
    assert results(house.client(b"lee")) == []
    assert results(house.client(b"kim")) == [job]


def test_an_answer_nobody_comes_for_is_given_up_in_time() -> None:
    house = House()
    answered_while_away(house, b"kim")
    house.pass_time(limits.ANSWERS_HELD_NS / SECOND_NS + 1)
    leftovers = house.core.settling.leftovers
    assert (leftovers.size, len(leftovers.by_address), len(leftovers.line)) == (0, 0, 0)
    assert results(house.client(b"kim")) == []


def test_answers_left_behind_are_bounded_in_bytes_the_oldest_go_first() -> None:
    house = House()
    client = house.client(b"kim")
    jobs = [client.request(b"mail", headers=b"reply-requested") for _ in range(3)]
    client.leave()
    worker = served(house, 3)
    for job in jobs:
        worker.reply(job, b"x" * (limits.ANSWERS_HELD_SIZE_MAX // 2))
    assert results(house.client(b"kim")) == jobs[1:]


def test_who_asks_for_the_state_of_what_ended_meanwhile_learns_how() -> None:
    house = House()
    job = answered_while_away(house, b"kim")
    assert house.core.settled_state(job) == "done"


def test_what_was_not_asked_for_is_not_left() -> None:
    house = House()
    answered_while_away(house, b"kim", headers=b"")
    assert house.core.settling.leftovers.size == 0


def test_nothing_is_left_for_an_anonymous_client_who_cannot_come_back() -> None:
    house = House()
    answered_while_away(house, b"")
    assert house.core.settling.leftovers.size == 0
