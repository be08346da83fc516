"""Commands that send and hear, against a real broker: calls, jobs, news."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from tests.cli.asking import echo, fail, send
from tests.cli.broker import BrokerProcess, Commands, Outcome, wait_for


def test_a_call_prints_its_value(common: Commands, common_broker: BrokerProcess) -> None:
    common_broker.serve(b"echo", echo)
    assert common("call", "echo", '{"a": [1, 2]}').out == '{\n  "a": [\n    1,\n    2\n  ]\n}\n'
    assert common("call", "echo", '"text"').out == "text\n"
    assert common("call", "echo", "7", "--json").json["value"] == 7
    assert common("call", "echo", "8", "--raw").out == '{"value":8}'


def test_a_call_whose_job_fails_ends_with_1_and_the_jobs_words(common: Commands, common_broker: BrokerProcess) -> None:
    common_broker.serve(b"bad", fail)
    found = common("call", "bad", "{}")
    assert found.code == 1
    assert "ValueError: no such address" in found.err
    assert json.loads(common("call", "bad", "{}", "--json").err)["error"]["code"] == "JOB_FAILED"


def test_a_call_that_the_broker_ends_is_refused_with_the_brokers_reason(common: Commands) -> None:
    found = common("call", "unserved", "{}", "--expires", "0.1", "--wait", "20", "--json")
    assert found.code == 1
    error = json.loads(found.err)["error"]
    assert error["code"] == "REFUSED"
    assert error["message"].startswith("PAST_EXPIRY")


def test_an_unreadable_error_of_a_worker_is_shown_as_it_came(common: Commands, common_broker: BrokerProcess) -> None:
    common_broker.serve(b"odd", lambda body: b'{"error":"boom"}')
    assert '{"error":"boom"}' in common("call", "odd", "{}").err


def test_a_call_nobody_answers_ends_with_1_when_the_wait_is_over(common: Commands) -> None:
    found = common("call", "nobody", "{}", "--wait", "0.2")
    assert found.code == 1
    assert "NO_ANSWER" in found.err


def test_a_job_is_called_with_the_arguments_in_the_shape_of_eventmq(
    common: Commands, common_broker: BrokerProcess
) -> None:
    common_broker.serve(b"jobs", echo, slots=3)
    word, call = common("call", "jobs", '{"to": "a"}', "--job", "shop.mail:send", "--json").json["value"]
    assert word == "run"
    assert call == {
        "path": "shop.mail",
        "callable": "send",
        "args": [],
        "kwargs": {"to": "a"},
        "class_args": [],
        "class_kwargs": {},
    }
    assert common("call", "jobs", "[1]", "--job", "m:C:f", "--json").json["value"][1]["path"] == "m:C"
    assert common("call", "jobs", "--job", "m:f", "--json").json["value"][1]["args"] == []


def test_a_body_may_come_from_a_file(common: Commands, common_broker: BrokerProcess, tmp_path: Path) -> None:
    common_broker.serve(b"files", echo)
    (tmp_path / "body").write_text("[1,2,3]")
    assert common("call", "files", f"@{tmp_path / 'body'}", "--json").json["value"] == [1, 2, 3]
    assert common("call", "files", f"@{tmp_path / 'nowhere'}").code == 1


def test_a_header_the_broker_cannot_read_is_refused_with_its_code(common: Commands) -> None:
    found = common("send", "mail", "x", "--header", "priority:99")
    assert found.code == 1
    assert "BAD_HEADER" in found.err


def test_the_options_of_send_become_headers(common: Commands) -> None:
    options = [
        "--priority",
        "5",
        "--retries",
        "2",
        "--job-timeout",
        "1.5",
        "--guarantee",
        "--delay",
        "60",
        "--expires",
        "90",
    ]
    message_id = send(common, "headers", *options, "--dedupe", "k", "--header", "traceparent:00-ab")
    accepted = common("trace", message_id, "--json").json["lives"][0]["facts"][0]
    assert accepted["priority"] == 5
    assert accepted["retries_left"] == 2
    assert accepted["timeout_ns"] == 1_500_000_000
    assert "guaranteed" in accepted["flags"]
    assert accepted["due_ns"] > accepted["time_ns"]
    assert accepted["expires_ns"] > accepted["due_ns"]
    assert accepted["dedupe"] == "k"
    assert "traceparent:00-ab" in accepted["headers"]


def test_a_dedupe_key_sent_twice_is_kept_once(dragoman: Commands) -> None:
    send(dragoman, "mail", "--dedupe", "k")
    send(dragoman, "mail", "--dedupe", "k")
    [queue] = dragoman("queues", "--json").json["queues"]
    assert queue["waiting"] == 1


def test_a_dedupe_key_counts_as_a_whole_whatever_is_in_it(dragoman: Commands) -> None:
    for key in ("order 7, item 3", "order 7, item 4", "order 7, item 3"):
        send(dragoman, "mail", "--dedupe", key)
    assert dragoman("status", "--json").json["counters"]["accepted"] == 2


def test_what_is_published_reaches_a_subscriber_of_its_prefix(common: Commands, common_broker: BrokerProcess) -> None:
    from dragoman.cli.options import address_of
    from tests.cli.raw_emqp import RawEmqp

    heard: list[list[bytes]] = []
    with RawEmqp(address_of(None, common_broker.data), "subscribe", b"SUB") as talk:
        talk.subscribe("orders/")
        wait_for("subscription", lambda: common("status", "--json").json["counters"]["subscriptions"] == 1)
        listener = threading.Thread(target=lambda: heard.append(next(talk.messages())))
        listener.start()
        assert common("publish", "news", "nobody hears").code == 0
        assert common("publish", "orders/created", '{"id": 7}').code == 0
        listener.join(15)
    assert heard == [[b"orders/created", b'{"id": 7}']]


def test_subscribe_ends_by_count_or_with_1_when_too_few_came(common: Commands, common_broker: BrokerProcess) -> None:
    assert common("subscribe", "x", "--count", "1", "--wait", "0.1").code == 1
    outcome: list[Outcome] = []
    listener = threading.Thread(target=lambda: outcome.append(common("subscribe", "a", "--count", "2", "--json")))
    listener.start()
    from dragoman.cli.options import address_of
    from tests.cli.raw_emqp import RawEmqp

    with RawEmqp(address_of(None, common_broker.data), "publish") as talk:
        while listener.is_alive():
            talk.publish("a/1", b"body \xff")
            listener.join(0.05)
    assert outcome[0].code == 0
    assert [json.loads(line) for line in outcome[0].out.splitlines()] == [{"topic": "a/1", "body": "body \\xff"}] * 2
