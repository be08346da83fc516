"""ebus clients that come and go with very many requests: none of them is walked over, and none is forgotten."""

from __future__ import annotations

import pytest

from dragoman.dialects.ebus.requests import WALKED_MAX
from tests.dialects.ebus.in_memory import EbusBroker, EbusClient

LONG_MS = b"600000"


def say_all(ebus_client: EbusClient) -> None:
    """What was put off has its turns."""
    while ebus_client.session.has_waiting():
        ebus_client.session.go_on()


def ask_many(ebus_client: EbusClient, service: bytes, count: int) -> None:
    for number in range(count):
        ebus_client.ask(service, b"%s%d" % (service, number), b"d", LONG_MS)
        say_all(ebus_client)


@pytest.mark.parametrize("others", [10, WALKED_MAX + 100])
def test_what_was_taken_over_from_another_client_is_answered_however_much_else_is_asked(others: int) -> None:
    broker = EbusBroker()
    first = broker.ebus_client(b"first")
    first.ask(b"hello", b"taken over", b"d", LONG_MS)
    broker.commit()
    first.leave()
    second = broker.ebus_client(b"second")
    second.ask(b"hello", b"taken over", b"d", LONG_MS)
    second.leave()
    second = broker.ebus_client(b"second")
    ask_many(second, b"other", others)
    second.leave()
    worker = broker.ebus_worker()
    [(rid, _)] = worker.jobs()
    worker.tell(b"REPLY", rid, b"answer")
    broker.commit()
    back = broker.ebus_client(b"second")
    say_all(back)
    assert [frames[3:] for frames in back.take_words(b"REPLY")] == [[b"taken over", b"answer"]]


def test_outcomes_that_a_connection_did_not_get_before_it_ended_go_to_the_next() -> None:
    broker, count = EbusBroker(), WALKED_MAX + 500
    client = broker.ebus_client(b"client")
    ask_many(client, b"hello", count)
    broker.commit()
    client.leave()
    worker = broker.ebus_worker()
    while jobs := worker.jobs():
        for rid, _ in jobs:
            worker.tell(b"REPLY", rid, b"ok")
        broker.go_on()
    told = 0
    back = broker.ebus_client(b"client")
    told += len(back.take_words(b"REPLY"))
    assert 0 < told < count, "the rest is put off"
    back.leave()
    back = broker.ebus_client(b"client")
    say_all(back)
    assert told + len(back.take_words(b"REPLY")) == count


def test_a_request_whose_outcome_no_connection_could_get_is_no_longer_open() -> None:
    broker = EbusBroker()
    client = broker.ebus_client(b"client")
    client.ask(b"hello", b"rid", b"d", LONG_MS)
    [ebus_client] = broker.ebus.requests.client_records.values()
    ebus_client.open[b"lost"] = ebus_client.open[b"rid"] + 1000
    worker = broker.ebus_worker()
    worker.jobs()
    client.ask(b"hello", b"lost", b"d", LONG_MS)
    assert len(worker.jobs()) == 1, "it is asked anew"
