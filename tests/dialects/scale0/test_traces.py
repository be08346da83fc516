"""`traceparent` of a TASK: kept where it is one, told to workers that can be told, and no part of the id."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects.traceparent import is_traceparent, leading, traceparent_of, without_traceparent
from dragoman.model.enums import EMQP, SCALE0
from dragoman.model.message import Message
from tests.core.harness import InMemoryBroker
from tests.dialects.scale0.in_memory import new_client, new_worker, pinged

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"
NONE_AT_ALL: list[Any] = [
    "",
    "what",
    7,
    None,
    [TRACEPARENT],
    f"00-{TRACE}-{SPAN}-01-more",
    f"01-{TRACE}-{SPAN}-01",
    f"00-{TRACE.upper()}-{SPAN}-01",
    f"00-{TRACE}_{SPAN}-01",
    f"00-{TRACE}-{SPAN}_01",
    f"00-{TRACE}-{SPAN}-0g",
    f"00-{'0' * 32}-{SPAN}-01",
    f"00-{TRACE}-{'0' * 16}-01",
]


@pytest.mark.parametrize("task_id", ["plain", 'quo"te', 17, "ünïcode", "a,b", None])
@pytest.mark.parametrize("socket_type", [b"DEALER", b"REQ"])
def test_it_reaches_the_worker_and_the_id_comes_back_as_it_was(task_id: Any, socket_type: bytes) -> None:
    broker = InMemoryBroker()
    client, worker = new_client(broker), new_worker(broker, socket_type=socket_type)
    client.task(task_id, traceparent=TRACEPARENT)
    worker.ping("mail")
    (header,) = [json.loads(frames[1]) for frames in worker.hear() if frames[0] == b"TASK"]
    assert header["traceparent"] == TRACEPARENT
    assert header["service"] == "mail"
    worker.reply(header["id"])
    assert client.results() == [(task_id, b"done")]


@pytest.mark.parametrize("said", NONE_AT_ALL)
def test_what_is_none_is_ignored_and_no_error(said: Any) -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    client.task("job-1", traceparent=said)
    header, _ = worker.one("TASK")
    assert "traceparent" not in header
    worker.reply(header["id"])
    assert client.results() == [("job-1", b"done")]


def test_each_task_has_its_own() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    told = [TRACEPARENT, None, TRACEPARENT.replace("-01", "-00"), TRACEPARENT]
    found = []
    for number, traceparent in enumerate(told):
        client.task(f"job-{number}", **({"traceparent": traceparent} if traceparent else {}))
        header, _ = worker.one("TASK")
        found.append(header.get("traceparent"))
        worker.ping()
        worker.hear()
    assert found == told


def test_it_is_not_guessed_at_inside_an_id() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    task_id = f"é,traceparent:{TRACEPARENT}"
    client.task(task_id)
    header, _ = worker.one("TASK")
    assert "traceparent" not in header
    worker.reply(header["id"])
    assert client.results() == [(task_id, b"done")]


@pytest.mark.parametrize("said", [b"traceparent:%s", b"retry-count:1, TraceParent : %s ,shop:7"])
def test_the_traceparent_of_an_emqp_client_is_in_the_task(said: bytes) -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), broker.client()
    client.request(b"mail", headers=b"reply-requested," + said % TRACEPARENT.encode())
    header, _ = worker.one("TASK")
    assert header["traceparent"] == TRACEPARENT


def test_an_emqp_worker_has_it_among_its_headers() -> None:
    broker = InMemoryBroker()
    worker, client = broker.worker(), new_client(broker)
    worker.inform((1, b"mail"))
    worker.ready()
    client.task(17, traceparent=TRACEPARENT)
    ((_, _, headers, _),) = worker.take(b"REQUEST")
    assert headers == f"reply-requested,traceparent:{TRACEPARENT}".encode()


@pytest.mark.parametrize("text", [TRACEPARENT, f"00-{TRACE}-{SPAN}-ff"])
def test_what_is_one_is_known_as_one(text: str) -> None:
    assert is_traceparent(text.encode())


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        (f"traceparent:{TRACEPARENT}", ""),
        (f"traceparent:{TRACEPARENT},17", "17"),
        (f'traceparent:{TRACEPARENT},"a,traceparent:b"', '"a,traceparent:b"'),
    ],
)
def test_what_is_kept_can_be_taken_apart(headers: str, token: str) -> None:
    m = Message(SCALE0, b"mail", b"id", b"")
    m.headers = headers.encode()
    assert (traceparent_of(m), leading(m.headers)) == (TRACEPARENT.encode(), TRACEPARENT.encode())
    assert without_traceparent(m.headers) == token.encode()


def test_of_two_among_emqps_headers_the_first_counts() -> None:
    m = Message(EMQP, b"mail", b"id", b"")
    m.headers = f"traceparent:nonsense,traceparent:{TRACEPARENT}".encode()
    assert traceparent_of(m) == b"", "as the exporter of traces reads them"
