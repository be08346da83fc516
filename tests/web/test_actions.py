"""Every action of the page, done as a form does it: asked back where it cannot be undone, and then seen at the broker."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import quote

import pytest

from dragoman.client.app import App
from tests.cli.broker import FakeWorker
from tests.runtime.daemon import Daemon
from tests.runtime.peers import Client
from tests.waiting import wait_for
from tests.web.load import set_aside
from tests.web.visitor import Answer, Visitor


def confirmed(visitor: Visitor, path: str) -> tuple[str, Answer]:
    """Ask, read the question, press its button: the question and what came of it."""
    html = visitor.page(path)
    action = re.search(r'<form class="question" action="([^"]+)" method="post">', html)
    token = re.search(r'name="csrf_token" value="([^"]+)"', html)
    back = re.search(r'name="back" value="([^"]*)"', html)
    question = re.search(r"<p>(.*?)</p>", html[html.index('class="question"') :], re.DOTALL)
    assert action is not None
    assert token is not None
    assert back is not None
    assert question is not None
    answer = visitor.post(unescape(action[1]), {"csrf_token": token[1], "back": unescape(back[1])})
    return unescape(question[1]), answer


def queue_view(broker: Daemon, name: str, prefix: str = "") -> dict[str, object]:
    views = broker.ask("queues", prefix=prefix or name)["queues"]
    found: dict[str, object] = next(view for view in views if view["queue"] == name)
    return found


def test_pausing_and_resuming_say_what_they_did(broker: Daemon, visitor: Visitor, app: App) -> None:
    app.send_sync("a", b"x")
    answer = visitor.do("/do/pause?queue=a", back="/queue?name=a")
    assert (answer.status, answer.header("Location")) == (303, "/queue?name=a")
    assert queue_view(broker, "a")["is_paused"]
    html = visitor.page("/queue?name=a")
    assert "a is paused: it takes messages and gives none out." in html
    assert "Resume" in html
    assert "is paused: it takes" not in visitor.page("/queue?name=a"), "said once"
    visitor.do("/do/resume?queue=a")
    assert not queue_view(broker, "a")["is_paused"]


def test_draining_a_queue_is_asked_back_and_ended_by_resume(broker: Daemon, visitor: Visitor, app: App) -> None:
    app.send_sync("d", b"x")
    question, answer = confirmed(visitor, "/confirm/drain_queue?queue=d&back=/queues")
    assert "New messages are refused" in question
    assert answer.header("Location") == "/queues"
    assert queue_view(broker, "d")["is_draining"]
    assert "draining" in visitor.page("/queue?name=d")
    visitor.do("/do/resume?queue=d")
    assert not queue_view(broker, "d")["is_draining"]


def test_a_purge_tells_how_many_before_and_after(broker: Daemon, visitor: Visitor, app: App) -> None:
    for _ in range(7):
        app.send_sync("p", b"x")
    question, answer = confirmed(visitor, "/confirm/purge?queue=p&back=/queues")
    assert "Cancel 7 messages that wait in p?" in question
    assert answer.status == 303
    assert "7 messages of p cancelled." in visitor.page("/queues")
    assert queue_view(broker, "p")["waiting"] == 0


def test_a_purge_is_about_the_queue_of_exactly_that_name(broker: Daemon, visitor: Visitor) -> None:
    with Client(broker) as client:
        client.keep(b"exact-\xff")
        client.keep(b"exact-\xff\xff")
    question, answer = confirmed(visitor, r"/confirm/purge?queue=exact-\xff")
    assert r"Cancel 1 message that wait in exact-\xff?" in question
    assert answer.status == 303
    assert queue_view(broker, r"exact-\xff", "exact-")["waiting"] == 0
    assert queue_view(broker, r"exact-\xff\xff", "exact-")["waiting"] == 1


def test_a_field_called_path_is_a_field(visitor: Visitor) -> None:
    assert 'action="/do/drain_queue?queue=x&amp;path=y"' in visitor.page("/confirm/drain_queue?queue=x&path=y")


def test_asking_alone_changes_nothing(broker: Daemon, visitor: Visitor, app: App) -> None:
    app.send_sync("asked", b"x")
    visitor.page("/confirm/purge?queue=asked")
    assert queue_view(broker, "asked")["waiting"] == 1


def test_a_message_is_cancelled_from_its_page(broker: Daemon, visitor: Visitor, app: App) -> None:
    handle = app.send_sync("c", b"x")
    question, answer = confirmed(visitor, f"/confirm/cancel?id={handle.id}&back=/message/{handle.id}")
    assert "It is waiting." in question
    assert answer.status == 303
    html = visitor.page(f"/message/{handle.id}")
    assert "settled: cancelled (by_operator)" in html
    assert "Retry now" not in html


def test_retrying_what_only_waits_is_refused_in_words(visitor: Visitor, app: App) -> None:
    handle = app.send_sync("r", b"x")
    assert "Retry now" not in visitor.page(f"/message/{handle.id}"), "where it cannot work it is not offered"
    answer = visitor.do(f"/do/retry?id={handle.id}")
    assert answer.status == 409
    assert 'role="alert"' in answer.text


def test_a_message_that_was_set_aside_is_retried_from_its_page(broker: Daemon, visitor: Visitor, app: App) -> None:
    message_id = set_aside(broker, app, b"again", b"x")
    assert "Retry now" in visitor.page(f"/message/{message_id}")
    assert visitor.do(f"/do/retry?id={message_id}").status == 303
    assert broker.ask("message", id=message_id)["state"] == "waiting"


def test_all_that_match_a_filter_are_retried_or_dropped_with_a_count(
    broker: Daemon, visitor: Visitor, app: App
) -> None:
    for number in range(2):
        set_aside(broker, app, b"bulk", b"%d" % number)
    kept = set_aside(broker, app, b"other", b"x")
    question, _ = confirmed(visitor, "/confirm/quarantine_retry?queue=bulk&dialect=emqp")
    assert question == "Retry 2 quarantined messages (with queue bulk and dialect emqp)?"
    assert queue_view(broker, "bulk")["quarantined"] == 0
    broker.ask("purge", queue="bulk")
    again = set_aside(broker, app, b"bulk", b"x")
    question, answer = confirmed(visitor, "/confirm/quarantine_drop?queue=bulk&back=/quarantine")
    assert question == "Drop 1 quarantined message (with queue bulk)?"
    assert answer.status == 303
    assert broker.ask("message", id=kept)["state"] == "quarantined"
    assert "settled: cancelled (dropped)" in visitor.page(f"/message/{again}")


@pytest.mark.parametrize("age", ["soon", "1h", "-5", "nan", "inf", "0", " "])
def test_an_age_that_is_none_is_refused_and_not_left_out(broker: Daemon, visitor: Visitor, app: App, age: str) -> None:
    path = f"quarantine_drop?queue=aged&older_than_s={quote(age)}"
    for answer in (visitor.get(f"/confirm/{path}"), visitor.do(f"/do/{path}")):
        assert answer.status == 400
        assert "An age is a number of seconds" in answer.text
    for page in ("quarantine", "search"):
        assert visitor.get(f"/{page}?older_than_s={quote(age)}").status == 400


def test_an_age_that_cannot_be_read_drops_nothing(broker: Daemon, visitor: Visitor, app: App) -> None:
    kept = set_aside(broker, app, b"aged", b"x")
    visitor.do("/do/quarantine_drop?queue=aged&older_than_s=1h")
    assert broker.ask("message", id=kept)["state"] == "quarantined"


def test_a_worker_is_sent_away_and_may_still_answer(broker: Daemon, visitor: Visitor, app: App) -> None:
    fake_worker = FakeWorker(broker.data, b"leaving", None)
    handle = app.send_sync("leaving", b"x")
    try:
        wait_for("the lease", lambda: broker.ask("message", id=handle.id)["state"] == "leased")
        worker = broker.ask("message", id=handle.id)["worker"]
        question, answer = confirmed(visitor, f"/confirm/dismiss?worker={worker}")
        assert "It may still reply to the 1 message that it leases." in question
        assert answer.status == 303
        assert broker.ask("message", id=handle.id)["state"] == "leased"
        assert "the operator dismissed it" in visitor.page(f"/worker?id={worker}")
        assert f"Admit {worker}" in visitor.page("/workers")
        answer = visitor.do(f"/do/admit?worker={worker}")
        assert answer.status == 303
        assert broker.ask("worker", worker=worker)["state"] == "busy"
    finally:
        fake_worker.vanish()


def test_a_worker_is_disconnected_and_its_message_goes_back_without_blame(
    broker: Daemon, visitor: Visitor, app: App
) -> None:
    fake_worker = FakeWorker(broker.data, b"cut", None)
    handle = app.send_sync("cut", b"x")
    try:
        wait_for("the lease", lambda: broker.ask("message", id=handle.id)["state"] == "leased")
        worker = broker.ask("message", id=handle.id)["worker"]
        assert "go back to their queues" in confirmed(visitor, f"/confirm/disconnect?worker={worker}")[0]
        wait_for("the message to be back", lambda: broker.ask("message", id=handle.id)["state"] == "waiting")
        view = broker.ask("message", id=handle.id)
        assert view["died_with"] == [], "at this broker one death would have set it aside"
        assert broker.ask("workers", queue="cut")["total"] == 0
    finally:
        fake_worker.vanish()


def test_a_schedule_is_removed(broker: Daemon, visitor: Visitor, app: App) -> None:
    @app.job(queue="nightly")
    def tidy(what: str) -> None: ...

    app.every_sync(3600.0, tidy, "logs")
    schedule = broker.ask("schedules")["schedules"][0]["id"]
    question, _ = confirmed(visitor, f"/confirm/unschedule?id={schedule}&back=/schedules")
    assert schedule in question
    assert broker.ask("schedules")["total"] == 0


@pytest.mark.parametrize(
    "path",
    [
        "/confirm/purge?queue=nowhere",
        "/confirm/cancel?id=nobody",
        "/confirm/dismiss?worker=w9.9",
        "/confirm/disconnect?worker=w9.9",
    ],
)
def test_what_is_not_there_cannot_be_asked_about(visitor: Visitor, path: str) -> None:
    assert visitor.get(path).status == 404
