"""The operations that dashboards, alarms and operators ask of a real broker: exactly the keys they are promised."""

from __future__ import annotations

import base64
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.admin_client import AdminClient, ask
from dragoman.errors import AdminRefused
from dragoman.limits import BODY_SHOWN_SIZE_MAX
from tests.cli.broker import BrokerProcess, Commands, wait_for


def send(dragoman: Commands, queue: str, body: str = "{}", *options: str) -> str:
    return str(dragoman("send", queue, body, "--json", *options).json["id"])


def echo(body: bytes) -> bytes:
    return b'{"value":%s}' % body


def fail(body: bytes) -> bytes:
    return b'{"error":{"type":"ValueError","message":"no"}}'


def refused(data: Path, op: str, **args: object) -> AdminRefused:
    with pytest.raises(AdminRefused) as caught:
        ask(data, op, **args)
    return caught.value


def test_tallies_hold_every_counter_the_boot_and_what_happened_since(dragoman: Commands, broker: BrokerProcess) -> None:
    broker.serve(b"mail", echo)
    assert dragoman("call", "mail", "1").code == 0
    with AdminClient(broker.data) as client:
        counters, found = client.ask("counters"), client.ask("tallies")
    assert set(counters) < set(found)
    assert (found["boot_no"], found["accepted"], found["settled"]) == (1, 1, 1)
    assert 0 < found["started_ns"] <= found["now_ns"]
    assert sum(count for _, count in found["wait"]) == sum(count for _, count in found["total"]) == 1
    assert {"dialect": "emqp", "accepted": 1, "settled": 1} in found["dialects"]
    assert found["crossings"] == [{"client": "emqp", "worker": "emqp", "count": 1}]


def test_tallies_begin_anew_with_each_start_and_counters_go_on(dragoman: Commands, broker: BrokerProcess) -> None:
    send(dragoman, "mail")
    broker.end(signal.SIGKILL)
    broker.start()
    found = ask(broker.data, "tallies")
    assert (found["boot_no"], found["accepted"]) == (2, 1)
    assert sum(row["accepted"] for row in found["dialects"]) == 0


def test_queue_tallies_tell_the_age_of_what_waits(dragoman: Commands, broker: BrokerProcess) -> None:
    send(dragoman, "mail")
    send(dragoman, "other")
    with AdminClient(broker.data) as client:
        page, plain = client.ask("queue_tallies", prefix="ma"), client.ask("queues", prefix="ma")
    assert page["total"] == 1
    [found], [view] = page["queues"], plain["queues"]
    assert {key: found[key] for key in view} == view
    assert set(found) - set(view) == {"oldest_ns", "wait", "total_time"}
    assert found["oldest_ns"] > 0


def test_queue_tallies_come_by_depth_or_of_one_queue_alone(dragoman: Commands, broker: BrokerProcess) -> None:
    broker.serve(b"done", echo)
    assert dragoman("call", "done", "1").code == 0
    assert dragoman("call", "done", "1").code == 0
    for queue in ("mail", "mails", "mails"):
        send(dragoman, queue)
    assert dragoman("cancel", send(dragoman, "ended")).code == 0
    with AdminClient(broker.data) as client:

        def names(**which: object) -> list[str]:
            return [queue["queue"] for queue in client.ask("queue_tallies", **which)["queues"]]

        assert names() == names(order="named") == ["done", "mail", "mails", "ended"]
        assert names(order="depth") == ["mails", "mail", "done", "ended"]
        assert names(order="depth", offset=1, limit=2) == ["mail", "done"]
        assert names(queue="mail") == ["mail"]
        assert client.ask("queue_tallies", queue="mail")["total"] == 1
    assert refused(broker.data, "queue_tallies", queue="mai").refusal == "NOT_FOUND"
    assert refused(broker.data, "queue_tallies", order="size").refusal == "BAD_ARGUMENT"


def test_a_queue_without_worker_is_found_stuck(dragoman: Commands, broker: BrokerProcess) -> None:
    assert ask(broker.data, "stuck") == {"findings": []}
    send(dragoman, "mail")
    [found] = ask(broker.data, "stuck")["findings"]
    assert set(found) == {"kind", "queue", "worker", "line"}
    assert found["line"] == "queue `mail` has 1 waiting and no worker"


def test_messages_are_found_by_queue_state_dialect_and_age(dragoman: Commands, broker: BrokerProcess) -> None:
    mail, other = send(dragoman, "mail"), send(dragoman, "other", "{}", "--delay", "600")
    with AdminClient(broker.data) as client:

        def ids(**which: object) -> list[str]:
            answer = client.ask("messages", **which)
            assert set(answer) == {"messages", "total", "is_cut"}
            return [message["client_id"] for message in answer["messages"]]

        assert ids() == [mail, other]
        assert ids(queue="mail") == ids(state="waiting") == [mail]
        assert ids(state="delayed", dialect="emqp") == [other]
        assert ids(dialect="rq") == ids(older_than_s=3600) == ids(state="leased") == []
    assert refused(broker.data, "messages", queue="nobody").refusal == "NOT_FOUND"
    assert refused(broker.data, "messages", worker="nobody").refusal == "NOT_FOUND"
    wrong = refused(broker.data, "messages", state="bored")
    assert wrong.refusal == "BAD_ARGUMENT"
    assert "waiting, delayed, leased, quarantined" in str(wrong)


def test_a_worker_is_shown_with_what_it_holds_and_in_words(dragoman: Commands, broker: BrokerProcess) -> None:
    fake_worker = broker.serve(b"mail", None)
    job = send(dragoman, "mail")
    wait_for("the lease", lambda: fake_worker.held)
    [listed] = ask(broker.data, "workers")["workers"]
    found = ask(broker.data, "worker", worker=listed["id"])
    [held] = found["held"]
    assert set(held) == {"id", "client_id", "queue", "attempt", "leased_ns"}
    assert (held["client_id"], held["queue"], held["attempt"]) == (job, "mail", 1)
    assert found["config_version"] == ""
    assert found["explain"][0] == "takes nothing new: all its slots are taken (1 leased)"
    assert set(found) - set(listed) == {"held", "config_version", "explain"}
    assert [m["client_id"] for m in ask(broker.data, "messages", worker=listed["id"])["messages"]] == [job]
    assert refused(broker.data, "worker", worker="w9.9").refusal == "NOT_FOUND"


def test_the_beginning_of_a_body_is_shown_and_no_more(dragoman: Commands, broker: BrokerProcess) -> None:
    job = send(dragoman, "mail", "x" * (BODY_SHOWN_SIZE_MAX + 1000))
    whole = ask(broker.data, "body", id=job)
    assert whole["size"] == BODY_SHOWN_SIZE_MAX + 1000
    assert base64.b64decode(whole["body"]) == b"x" * BODY_SHOWN_SIZE_MAX
    assert base64.b64decode(ask(broker.data, "body", id=job, size_max=3)["body"]) == b"xxx"
    assert refused(broker.data, "body", id=job, size_max=BODY_SHOWN_SIZE_MAX + 1).refusal == "BAD_ARGUMENT"
    assert refused(broker.data, "body", id="nobody").refusal == "NOT_FOUND"


def test_the_body_of_a_quarantined_message_is_read_from_the_journal(dragoman: Commands, broker: BrokerProcess) -> None:
    job = quarantined(dragoman, broker, "mail", '{"a":1}')
    assert base64.b64decode(ask(broker.data, "body", id=job)["body"]) == b'{"a":1}'


def quarantined(dragoman: Commands, broker: BrokerProcess, queue: str, body: str = "{}") -> str:
    """A guaranteed message that failed and has no retries."""
    broker.serve(queue.encode(), fail)
    job = send(dragoman, queue, body, "--guarantee", "--retries", "0")

    def is_set_aside() -> bool:
        messages = ask(broker.data, "quarantine_list")["messages"]
        return any(message["client_id"] == job for message in messages)

    wait_for("quarantine", is_set_aside)
    return job


def test_quarantined_messages_are_chosen_by_every_filter(dragoman: Commands, broker: BrokerProcess) -> None:
    quarantined(dragoman, broker, "mail")
    quarantined(dragoman, broker, "other")

    def total(*options: str) -> Any:
        return dragoman("quarantine", "list", "--json", *options).json["total"]

    assert total() == 2
    assert total("--queue", "mail", "--reason", "failed", "--dialect", "emqp") == 1
    assert total("--reason", "workers_died") == total("--older-than", "3600") == total("--dialect", "rq") == 0
    assert dragoman("quarantine", "list", "--reason", "boredom").code == 1
    both = dragoman("quarantine", "drop", "--queue", "mail", "--reason", "workers_died", "--json")
    assert both.json == {"dropped": 0}
    assert dragoman("quarantine", "drop", "--reason", "failed", "--dialect", "emqp", "--json").json == {"dropped": 2}
    assert total() == 0
    assert dragoman("quarantine", "drop", "--reason", "failed", "--all").code == 2
    wrong = refused(broker.data, "quarantine_drop", ids=["1.1"], queue="mail")
    assert wrong.refusal == "BAD_ARGUMENT"


def test_retry_brings_back_a_quarantined_message_and_one_in_backoff(dragoman: Commands, broker: BrokerProcess) -> None:
    job = quarantined(dragoman, broker, "mail")
    said = dragoman("retry", job).out
    assert "is back in mail: attempt 2 is next" in said
    late = send(dragoman, "mail", "{}", "--retries", "1000000")
    view: Callable[[], Any] = lambda: ask(broker.data, "message", id=late)  # noqa: E731
    # The backoff doubles from a second on: by its sixth attempt nobody would wait for it.
    for attempt in range(1, 6):
        wait_for("a backoff", lambda n=attempt: view()["attempt"] == n and view()["is_delayed"])  # type: ignore[misc]
        broker.serve(b"mail", fail)
        assert dragoman("retry", late, "--json").json["retried"]["attempt"] == attempt
    wait_for("the sixth attempt", lambda: view()["attempt"] == 6)


def test_what_cannot_be_retried_says_why(dragoman: Commands, broker: BrokerProcess) -> None:
    waiting, delayed = send(dragoman, "mail"), send(dragoman, "mail", "{}", "--delay", "600")
    fake_worker = broker.serve(b"held", None)
    held = send(dragoman, "held")
    wait_for("the lease", lambda: fake_worker.held)
    words = {
        waiting: "there is nothing to retry: it waits for a worker already",
        delayed: "there is nothing to retry: its client asked for the delay, and it was not tried yet",
        held: "there is nothing to retry: a worker has it",
    }
    for job, line in words.items():
        found = dragoman("retry", job)
        assert (found.code, line in found.err, "[WRONG_STATE]" in found.err) == (1, True, True)
    assert dragoman("retry", "nobody").code == 4


def test_a_queue_is_drained_over_a_restart_until_it_is_resumed(dragoman: Commands, broker: BrokerProcess) -> None:
    send(dragoman, "mail")
    assert dragoman("queues", "drain", "mail").out == "mail drains: 1 message to give out, 0 leased\n"
    broker.end(signal.SIGKILL)
    broker.start()
    found = dragoman("send", "mail", "{}")
    assert found.code == 1
    assert "QUEUE_CLOSED: the queue is being emptied" in found.err
    assert "mail (draining)" in dragoman("queues").out
    broker.serve(b"mail", echo)
    wait_for("the last one", lambda: ask(broker.data, "counters")["settled"] == 1)
    assert dragoman("queues", "resume", "mail").code == 0
    assert dragoman("send", "mail", "{}").code == 0
    assert dragoman("queues", "drain", "nobody").code == 4


def test_explain_of_an_id_nobody_knows_says_that_it_is_unknown(dragoman: Commands) -> None:
    send(dragoman, "mail")
    found = dragoman("explain", "nobody")
    assert found.code == 4
    assert "message 'nobody' is not open, and no stored fact tells of it: unknown" in found.err


def test_explain_of_a_settled_message_names_the_worker_that_settled_it_or_nobody(
    dragoman: Commands, broker: BrokerProcess
) -> None:
    broker.serve(b"mail", echo)
    job, cancelled = send(dragoman, "mail"), send(dragoman, "other")
    wait_for("the end", lambda: ask(broker.data, "counters")["settled"] == 1)
    assert dragoman("cancel", cancelled).code == 0
    done, ended = dragoman("explain", job).out, dragoman("explain", cancelled).out
    assert done.startswith("settled: done (answered) ")
    assert " after it was accepted, by " in done
    assert done.endswith("), attempt 1\n")
    assert ended.startswith("settled: cancelled (by_operator) ")
    assert ended.endswith(" after it was accepted\n")
