"""ebus clients that come and go with very many requests: none of them is walked over, and none is forgotten."""

from __future__ import annotations

import pytest

from dragoman.dialects.ebus.requests import WALKED_MAX
from tests.dialects.ebus.hall import Asker, Hall

LONG_MS = b"600000"


def say_all(asker: Asker) -> None:
    """What was put off has its turns."""
    while asker.session.has_waiting():
        asker.session.go_on()


def ask_many(asker: Asker, service: bytes, count: int) -> None:
    for number in range(count):
        asker.ask(service, b"%s%d" % (service, number), b"d", LONG_MS)
        say_all(asker)


@pytest.mark.parametrize("others", [10, WALKED_MAX + 100])
def test_what_was_taken_over_from_another_client_is_answered_however_much_else_is_asked(others: int) -> None:
    hall = Hall()
    first = hall.asker(b"first")
    first.ask(b"hello", b"taken over", b"d", LONG_MS)
    hall.commit()
    first.leave()
    second = hall.asker(b"second")
    second.ask(b"hello", b"taken over", b"d", LONG_MS)
    second.leave()
    second = hall.asker(b"second")
    ask_many(second, b"other", others)
    second.leave()
    worker = hall.server()
    [(rid, _)] = worker.jobs()
    worker.tell(b"REPLY", rid, b"answer")
    hall.commit()
    back = hall.asker(b"second")
    say_all(back)
    assert [frames[3:] for frames in back.take_words(b"REPLY")] == [[b"taken over", b"answer"]]


def test_outcomes_that_a_connection_was_not_told_before_it_ended_are_told_to_the_next() -> None:
    hall, count = Hall(), WALKED_MAX + 500
    client = hall.asker(b"client")
    ask_many(client, b"hello", count)
    hall.commit()
    client.leave()
    worker = hall.server()
    while jobs := worker.jobs():
        for rid, _ in jobs:
            worker.tell(b"REPLY", rid, b"ok")
        hall.go_on()
    told = 0
    back = hall.asker(b"client")
    told += len(back.take_words(b"REPLY"))
    assert 0 < told < count, "the rest is put off"
    back.leave()
    back = hall.asker(b"client")
    say_all(back)
    assert told + len(back.take_words(b"REPLY")) == count


def test_a_request_whose_end_nobody_could_be_told_is_no_longer_open() -> None:
    hall = Hall()
    client = hall.asker(b"client")
    client.ask(b"hello", b"rid", b"d", LONG_MS)
    [asker] = hall.ebus.requests.client_records.values()
    asker.open[b"lost"] = asker.open[b"rid"] + 1000
    worker = hall.server()
    worker.jobs()
    client.ask(b"hello", b"lost", b"d", LONG_MS)
    assert len(worker.jobs()) == 1, "it is asked anew"
