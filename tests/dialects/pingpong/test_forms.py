"""The three forms: how each is recognised, and what each cannot say."""

from __future__ import annotations

import msgspec
import pytest

from dragoman.dialects.pingpong import texts
from dragoman.dialects.pingpong.commands import JSON, PACKAGE, PLAIN, UNKNOWN
from tests.dialects.pingpong.in_memory import (
    PONG,
    FakeClient,
    FakePeer,
    FakeWorker,
    PingpongBroker,
    json_worker,
    ready_worker,
)


@pytest.fixture
def broker() -> PingpongBroker:
    return PingpongBroker()


def work(worker: FakePeer) -> dict[str, object]:
    """The one WORK a json worker was given."""
    frames = [frames for frames in worker.said() if frames != [b'{"status":"PONG"}']]
    assert len(frames) == 1
    assert len(frames[0]) == 1
    found: dict[str, object] = msgspec.json.decode(frames[0][0])
    assert found["status"] == "WORK"
    return found


def package_worker(broker: PingpongBroker, client: FakeClient) -> FakeWorker:
    """One that has shown its form by its first result; the first job is a plain one, which it ignores."""
    worker = ready_worker(broker)
    client.order(b"first")
    assert worker.jobs() == [[b"", b"first"]]
    broker.pass_time(1.0)
    worker.ping()
    (job,) = worker.jobs()
    worker.send(b"", b"JOB COMPLETE", job[2], b"", b"first done")
    assert client.results() == [b"first done"]
    return worker


def test_a_worker_that_only_sent_ready_gets_a_plain_job(broker: PingpongBroker) -> None:
    worker = ready_worker(broker)
    FakeClient(broker).order(b"job")
    assert worker.jobs() == [[b"", b"job"]]
    assert worker.broker_side.form == UNKNOWN
    worker.result(b"done")
    assert worker.broker_side.form == PLAIN


def test_the_first_job_is_sent_once_more_as_a_package_when_its_worker_pings(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(b"job")
    assert worker.said() == [[b"", b"job"]]
    broker.pass_time(1.0)
    worker.ping()
    said = worker.said()
    assert said[0] == PONG
    assert said[1][:2] == [b"", b"job"]
    assert said[1][3:] == [b"", b""]
    assert len(said[1][2]) == 5
    broker.pass_time(1.0)
    worker.ping()
    assert worker.said() == [PONG], "once"
    worker.send(b"", b"JOB COMPLETE", said[1][2], b"", b"done")
    assert client.results() == [b"done"]
    assert worker.broker_side.form == PACKAGE
    assert [fact["attempt"] for fact in broker.facts("leased")] == [1]


def test_a_ping_that_came_with_ready_is_no_reason_to_send_the_job_again(broker: PingpongBroker) -> None:
    """The recorded worker says READY and PING in one breath; a job that waited is leased between the two."""
    client = FakeClient(broker)
    client.order(b"job")
    worker = FakeWorker(broker)
    worker.ready()
    worker.ping()
    assert worker.jobs() == [[b"", b"job"]]


def test_a_package_worker_gets_packages_from_its_first_result_on(broker: PingpongBroker) -> None:
    client = FakeClient(broker)
    worker = package_worker(broker, client)
    worker.said()
    client.order(b"second")
    (job,) = worker.jobs()
    assert job[:2] == [b"", b"second"]
    assert job[3:] == [b"", b""]
    worker.send(b"", b"JOB COMPLETE", job[2], b"", b"second done")
    assert client.results() == [b"second done"]


def test_a_package_result_for_an_earlier_job_is_late(broker: PingpongBroker) -> None:
    client = FakeClient(broker)
    worker = package_worker(broker, client)
    client.order(b"second")
    client.said()
    worker.send(b"", b"JOB COMPLETE", b"\x00\x00\x00\x00\x01", b"", b"first done again")
    assert client.said() == []
    assert len(broker.facts("late")) == 1


def test_a_package_worker_that_answers_plainly_is_a_package_worker_still(broker: PingpongBroker) -> None:
    """Were the next job sent without a mark, a result for the one before could answer it."""
    client = FakeClient(broker)
    worker = package_worker(broker, client)
    client.order(b"second")
    (job,) = worker.jobs()
    worker.result(b"in other words")
    client.order(b"third")
    assert len(worker.jobs()[-1]) == 5
    worker.send(b"", b"JOB COMPLETE", job[2], b"", b"second done")
    assert client.results() == [b"in other words"]
    assert len(broker.facts("late")) == 1


def test_a_worker_that_answers_both_copies_of_its_first_job_answers_no_other_with_it(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(b"first")
    broker.pass_time(1.0)
    worker.ping()
    worker.said()
    worker.result(b"first done")
    client.order(b"second")
    assert worker.said() == [PONG]
    broker.pass_time(1.0)
    worker.result(b"first done again")
    assert worker.said() == [PONG, [b"", b"second"]]
    worker.result(b"second done")
    assert client.results() == [b"first done", b"second done"]


def test_however_long_a_worker_takes_over_the_second_copy_it_gets_no_other_job_before(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(b"first")
    broker.pass_time(1.0)
    worker.ping()
    worker.said()
    worker.result(b"first done")
    client.order(b"second")
    for _ in range(30):
        worker.ping()
        broker.pass_time(1.0)
    assert worker.jobs() == []
    worker.result(b"first done again")
    assert worker.jobs() == [[b"", b"second"]]
    worker.result(b"second done")
    assert client.results() == [b"first done", b"second done"]


def test_ready_tells_that_a_worker_does_not_work_on_the_second_copy(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(b"first")
    broker.pass_time(1.0)
    worker.ping()
    worker.result(b"first done")
    client.order(b"second")
    worker.said()
    worker.ready()
    assert worker.jobs() == [[b"", b"second"]]


def test_a_ping_that_crossed_the_first_job_is_no_reason_to_send_it_again(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(b"first")
    broker.pass_time(0.1)
    worker.ping()
    assert worker.jobs() == [[b"", b"first"]]


@pytest.mark.parametrize("body", [b"PONG", b"EXIT"])
def test_a_job_that_is_a_word_of_control_is_refused_at_the_door(broker: PingpongBroker, body: bytes) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(body)
    ((empty, error, reason),) = client.said()
    assert (empty, error) == (b"", b"ERROR")
    assert reason.startswith(b"INEXPRESSIBLE: ")
    assert worker.said() == []


def test_an_idle_worker_that_shows_the_json_form_gets_what_could_not_be_encoded_before(broker: PingpongBroker) -> None:
    client = FakeClient(broker)
    client.order(b"PONG")
    worker = ready_worker(broker)
    assert worker.jobs() == []
    worker.send_json({"status": "PING"})
    said = [frames[0] for frames in worker.said() if b"WORK" in frames[0]]
    assert [msgspec.json.decode(frame)["job"] for frame in said] == ["PONG"]


@pytest.mark.parametrize("body", [b"PONG", b"EXIT"])
def test_such_a_job_goes_to_a_worker_of_another_dialect_if_one_serves_the_queue(
    broker: PingpongBroker, body: bytes
) -> None:
    plain, client = ready_worker(broker), FakeClient(broker)
    other = broker.worker()
    other.inform((10, b"pingpong"))
    other.ready()
    client.order(body)
    (job,) = other.take(b"REQUEST")
    assert job[3] == body
    assert plain.jobs() == []
    other.reply(job[0], b"done")
    assert client.results() == [b"done"]


def test_such_a_job_waits_when_no_worker_serves_the_queue_yet(broker: PingpongBroker) -> None:
    """Who comes may speak another dialect."""
    client = FakeClient(broker)
    client.order(b"PONG")
    assert client.said() == []
    plain = ready_worker(broker)
    assert plain.jobs() == []
    other = broker.worker()
    other.inform((10, b"pingpong"))
    other.ready()
    assert len(other.jobs()) == 1


@pytest.mark.parametrize("body", [b"READY", b"PING", b"ERROR", b"JOB COMPLETE", b""])
def test_other_words_are_jobs_like_any(broker: PingpongBroker, body: bytes) -> None:
    worker = ready_worker(broker)
    FakeClient(broker).order(body)
    assert worker.jobs() == [[b"", body]]


def test_a_json_worker_needs_no_ready(broker: PingpongBroker) -> None:
    worker = json_worker(broker)
    FakeClient(broker).order(b'{"price":100}')
    found = work(worker)
    assert found["job"] == {"price": 100}
    assert len(str(found["token"])) == 32
    assert worker.broker_side.form == JSON


@pytest.mark.parametrize(
    ("body", "job"),
    [(b"[1, 2]", [1, 2]), (b"plain text", "plain text"), (b'"quoted"', "quoted"), ("ž".encode(), "ž"), (b"", "")],
)
def test_json_bodies_are_embedded_and_other_text_becomes_a_string(
    broker: PingpongBroker, body: bytes, job: object
) -> None:
    worker = json_worker(broker)
    FakeClient(broker).order(body)
    assert work(worker)["job"] == job


@pytest.mark.parametrize(
    ("body", "form"),
    [
        (b"x" * 300_000, texts.PLAIN_TEXT),
        (b"line of text\n" * 30_000, texts.PLAIN_TEXT),
        (b"\x01" * 300_000, texts.NO_TEXT),
        (b"\x01" * 1000, texts.PLAIN_TEXT),
        (b"\xff" * 300_000, texts.NO_TEXT),
        (b"[" + b'"",' * 100_000 + b"1]", texts.JSON_TEXT),
        (b"[" * 300_000, texts.PLAIN_TEXT),
    ],
    ids=["text", "lines", "escapes", "few escapes", "no utf-8", "json", "nested"],
)
def test_a_large_text_that_json_would_have_to_escape_is_none(body: bytes, form: int) -> None:
    assert texts.form_of(body) == form


def test_a_body_that_is_no_text_is_refused_when_only_json_workers_serve(broker: PingpongBroker) -> None:
    json_worker(broker)
    client = FakeClient(broker)
    client.order(b"\xff\xfe")
    ((_, error, reason),) = client.said()
    assert error == b"ERROR"
    assert reason.startswith(b"INEXPRESSIBLE")


@pytest.mark.parametrize(
    ("result", "value"), [('"text"', b"text"), ('{"a":1}', b'{"a":1}'), ("5", b"5"), ('"\\u017e"', "ž".encode())]
)
def test_a_string_result_becomes_its_text_and_all_else_stays_json(
    broker: PingpongBroker, result: str, value: bytes
) -> None:
    worker, client = json_worker(broker), FakeClient(broker)
    client.order(b"job")
    token = str(work(worker)["token"])
    worker.send(b'{"status":"SUCCESS","token":"%s","result":%s}' % (token.encode(), result.encode()))
    assert worker.said() == [[b'{"status":"PONG"}']]
    assert client.results() == [value]


@pytest.mark.parametrize("field", ["msg", "result"])
def test_a_json_error_fails_the_job_with_the_workers_words(broker: PingpongBroker, field: str) -> None:
    worker, client = json_worker(broker), FakeClient(broker)
    client.order(b"job")
    worker.send_json({"status": "ERROR", "token": work(worker)["token"], field: "no such auction"})
    assert client.said() == [[b"", b"ERROR", b"no such auction"]]


def test_a_json_result_with_another_token_is_late(broker: PingpongBroker) -> None:
    worker, client = json_worker(broker), FakeClient(broker)
    client.order(b"job")
    token = work(worker)["token"]
    worker.send_json({"status": "SUCCESS", "token": "0" * 32, "result": "for somebody else"})
    assert client.said() == []
    worker.send_json({"status": "SUCCESS", "token": token, "result": "mine"})
    assert client.results() == [b"mine"]


def test_a_json_worker_may_say_ready_after_a_reconnect(broker: PingpongBroker) -> None:
    worker = FakeWorker(broker)
    worker.send_json({"status": "READY"})
    assert worker.said() == [[b'{"status":"PONG"}']]
    FakeClient(broker).order(b"job")
    assert work(worker)["job"] == "job"


def test_a_busy_json_worker_that_pings_gets_no_second_job(broker: PingpongBroker) -> None:
    worker, client = json_worker(broker), FakeClient(broker)
    client.order(b"one")
    client.order(b"two")
    assert work(worker)["job"] == "one"
    broker.pass_time(1.0)
    worker.send_json({"status": "PING"})
    assert worker.said() == [[b'{"status":"PONG"}']]


@pytest.mark.parametrize(("form", "parts"), [(PLAIN, 2), (PACKAGE, 5), (JSON, 1)])
def test_the_form_can_be_fixed_by_a_setting(broker: PingpongBroker, form: int, parts: int) -> None:
    broker.pingpong.settings.form = form
    worker = ready_worker(broker)
    FakeClient(broker).order(b"job")
    (job,) = worker.jobs()
    assert len(job) == parts
    broker.pass_time(1.0)
    worker.ping()
    assert worker.said() == [PONG], "a fixed form needs no second try"


@pytest.mark.parametrize(
    "frame",
    [
        b'{"status":"DANCE"}',
        b'{"status":5}',
        b'{"status":{"a":[]}}',
        b'{"status":"SUCCESS","token":5}',
        b'{"status":"\xff"}',
        b"{" * 2000,
        b"{}",
    ],
)
def test_odd_json_from_a_worker_costs_it_nothing_but_a_pong(broker: PingpongBroker, frame: bytes) -> None:
    worker = FakeWorker(broker)
    worker.send(frame)
    assert len(worker.said()) == 1
    worker.send_json({"status": "PING"})
    FakeClient(broker).order(b"job")
    assert work(worker)["job"] == "job"
