"""Expiries are taken when they are due, each once, however few at a time."""

from __future__ import annotations

from dragoman.core.state.expiries import STEP_NS, Expiries


def numbers(taken: list[int]) -> list[int]:
    assert set(taken[1::2]) <= {-1}, "all of them are in memory"
    return taken[::2]


def test_the_last_of_a_step_are_taken_first_and_in_their_order() -> None:
    expiries = Expiries()
    for number in range(1, 6):
        expiries.watch(number, STEP_NS)
    assert numbers(expiries.take(2 * STEP_NS, 2)) == [4, 5]
    assert numbers(expiries.take(2 * STEP_NS, 2)) == [2, 3]
    assert expiries.watched == 1
    assert numbers(expiries.take(2 * STEP_NS, 2)) == [1]
    assert expiries.take(2 * STEP_NS, 2) == []
    assert expiries.next_ns() == 0


def test_a_step_takes_more_after_some_of_it_were_taken() -> None:
    expiries = Expiries()
    for number in range(1, 5):
        expiries.watch(number, STEP_NS)
    assert numbers(expiries.take(2 * STEP_NS, 3)) == [2, 3, 4]
    for number in range(5, 10):
        expiries.watch(number, STEP_NS)
    assert numbers(expiries.take(2 * STEP_NS, 100)) == [1, 5, 6, 7, 8, 9]
    assert expiries.watched == 0


def test_a_step_that_was_taken_whole_begins_anew() -> None:
    expiries = Expiries()
    expiries.watch(1, STEP_NS)
    assert numbers(expiries.take(2 * STEP_NS, 10)) == [1]
    expiries.watch(2, STEP_NS)
    assert expiries.next_ns() == 2 * STEP_NS
    assert numbers(expiries.take(2 * STEP_NS, 10)) == [2]


def test_after_all_are_cleared_a_step_begins_anew() -> None:
    expiries = Expiries()
    expiries.watch(1, STEP_NS)
    expiries.clear()
    expiries.watch(2, STEP_NS)
    assert numbers(expiries.take(2 * STEP_NS, 10)) == [2]


def test_what_is_given_back_is_due_again_with_what_came_meanwhile() -> None:
    expiries = Expiries()
    for number in range(1, 4):
        expiries.watch(number, STEP_NS)
    due = expiries.take(2 * STEP_NS, 10)
    expiries.give_back(2 * STEP_NS, due, 2)
    expiries.watch(4, STEP_NS)
    assert sorted(numbers(expiries.take(2 * STEP_NS, 10))) == [2, 3, 4]
    assert expiries.watched == 0


def test_messages_of_several_steps_in_turn_are_due_each_at_its_time() -> None:
    expiries = Expiries()
    for number in range(6):
        expiries.watch(number, STEP_NS * (1 + number % 3))
    assert numbers(expiries.take(2 * STEP_NS, 10)) == [0, 3]
    assert numbers(expiries.take(4 * STEP_NS, 10)) == [1, 4, 2, 5]
