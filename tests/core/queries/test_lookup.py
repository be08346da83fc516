"""What answers to an id that a person says."""

from __future__ import annotations

from dragoman.core.queries import lookup
from dragoman.model import phrases
from dragoman.model.enums import EMQP
from dragoman.model.message import Message
from tests.core.harness import InMemoryBroker
from tests.core.queries.explaining import serve


def test_a_message_is_found_by_number_in_both_forms_and_by_its_own_wire_id(broker: InMemoryBroker) -> None:
    client = broker.client()
    first = client.request(b"mail", message_id=b"twin")
    client.request(b"mail", message_id=b"twin")
    m = lookup.find_message(broker.core, first.decode())
    assert m is not None
    second = lookup.find_message(broker.core, str(m.number + 1))
    assert second is not None
    assert second is lookup.find_message(broker.core, phrases.number_text(m.number + 1))
    assert second is lookup.find_message(broker.core, broker.core.ids.of(second).decode())
    digits = broker.core.ids.digits(second.number).decode()
    assert second is lookup.find_message(broker.core, digits)
    assert second is lookup.find_message(broker.core, f"{digits}.origin.client's id")
    assert lookup.find_message(broker.core, f"{digits}and more") is None
    assert lookup.find_message(broker.core, "nobody") is None
    assert lookup.find_message(broker.core, "99.99") is None


def test_an_explicit_number_is_found_before_an_id_that_looks_like_it(broker: InMemoryBroker) -> None:
    first = broker.client().request(b"mail")
    m = lookup.find_message(broker.core, first.decode())
    assert m is not None
    number = phrases.number_text(m.number)
    twin = Message(EMQP, b"mail", number.encode(), b"")
    broker.core.submit(twin)
    assert lookup.find_message(broker.core, number) is twin
    assert lookup.find_message(broker.core, f"number:{number}") is m
    assert lookup.find_message(broker.core, f"number:{m.number}") is m
    assert lookup.find_message(broker.core, "number:1.999") is None
    named = Message(EMQP, b"mail", b"number:1.999", b"")
    broker.core.submit(named)
    assert lookup.find_message(broker.core, "number:1.999") is named


def test_workers_are_found_by_number_and_identity_and_binary_ones_by_hex(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 1, b"\x00\xff\x01")
    number = worker.session.number
    assert lookup.find_worker(broker.core, f"w{phrases.number_text(number)}") is worker.session
    assert lookup.find_worker(broker.core, str(number)) is worker.session
    assert lookup.find_worker(broker.core, "00ff01") is worker.session
    assert lookup.find_worker(broker.core, "\x00\\xff\x01") is worker.session, "as facts show it"
    assert lookup.find_worker(broker.core, "somebody") is None
