"""What a slice takes in: what was open when it begins, one message alone, bodies only when they are asked for; and what is no slice."""

from __future__ import annotations

import ast
import itertools
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dragoman.cli.root import run
from dragoman.errors import BadInstant, ExportTooLarge
from dragoman.journal.format import Block
from dragoman.limits import EXPORT_MESSAGES_MAX
from dragoman.model.enums import ANSWERED, EMQP
from dragoman.model.facts.layout import QUEUE_NAMED, STARTED, WORKER_JOINED
from dragoman.model.facts.records import FactLog
from dragoman.model.message import Message
from dragoman.runtime.config import Config
from dragoman.runtime.search.instants import in_ns, read_instant
from dragoman_lab.replay.export.history import History, Wanted
from dragoman_lab.replay.export.page import literal
from dragoman_lab.replay.export.script import Writer, prove
from tests.lab.replay.conftest import NewBroker
from tests.lab.replay.exporting import Exported
from tests.waiting import wait_for

NOW = datetime(2026, 3, 2, 14, 30, tzinfo=UTC)


def now() -> str:
    return datetime.now(UTC).isoformat()


def test_what_was_open_when_a_slice_begins_is_put_there_first(new_broker: NewBroker) -> None:
    """One in a worker's hands, one that a worker had died with, one that had waited all along."""
    broker = new_broker("queues.backoff_initial_s=0.05")
    client = broker.client("emqp")
    tried = client.ask("mail", b"tried before")
    dying = broker.worker("emqp", "mail")
    dying.take()
    dying.close()
    wait_for("the worker to be gone", lambda: broker.daemon.ask("workers")["total"] == 0)
    broker.daemon.ask("pause", queue="mail")
    held, waiting = client.ask("post", b"in hand"), client.ask("mail", b"waits")
    worker = broker.worker("emqp", "post")
    taken, _ = worker.take()
    broker.wait_waiting("mail", 2)
    begins = now()
    worker.answer(taken, b'{"value":1}')
    client.outcome(held)
    broker.daemon.ask("resume", queue="mail")
    mail = broker.worker("emqp", "mail")
    for _ in range(2):
        mail.answer(mail.take()[0], b'{"value":1}')
    for asked in (tried, waiting):
        client.outcome(asked)
    exported = Exported(broker.daemon.data, "--from", begins)
    assert f'"holds", "{held.decode()}"' in exported.text
    assert f'"{tried.decode()}", "had", {{"attempts": 1' in exported.text
    assert f'"{tried.decode()}": ["accepted", "leased 2 to' in exported.text
    assert f'"{held.decode()}": ["accepted", "closed 1: done, answered' in exported.text
    assert exported.play() == ""
    exported.edit('"attempts": 1', '"attempts": 2')
    assert f"message {tried.decode()!r}, fact 2: should be 'leased 2 to" in exported.play()


def test_a_queue_that_drains_when_a_slice_begins_drains_there_too(new_broker: NewBroker) -> None:
    broker = new_broker()
    client = broker.client("emqp")
    asked = client.ask("mail", b"the last one")
    broker.wait_waiting("mail", 1)
    broker.daemon.ask("drain_queue", queue="mail")
    begins = now()
    worker = broker.worker("emqp", "mail")
    worker.answer(worker.take()[0], b'{"value":1}')
    client.outcome(asked)
    exported = Exported(broker.daemon.data, "--from", begins)
    assert '"operator", "drains", "mail"' in exported.text
    assert exported.play() == ""


def test_a_death_before_a_retry_out_of_backoff_counts_in_the_slice_after_it(new_broker: NewBroker) -> None:
    """Only what was quarantined begins anew: after this one's second death, it is set aside."""
    broker = new_broker("queues.quarantine_after=2", "queues.backoff_initial_s=600", "queues.backoff_max_s=600")
    killer = broker.client("emqp").ask("mail", b"the one that kills", "retry-count:5").decode()

    def lose_worker() -> None:
        dying = broker.worker("emqp", "mail")
        dying.take()
        dying.close()
        wait_for("the worker to be gone", lambda: broker.daemon.ask("workers")["total"] == 0)

    lose_worker()
    failing = broker.worker("emqp", "mail")
    failing.answer(failing.take()[0], b'{"error":{"type":"ValueError","message":"no"}}')
    wait_for("the backoff", lambda: broker.daemon.ask("queues")["queues"][0]["leased"] == 0)
    failing.close()
    wait_for("the worker to be gone", lambda: broker.daemon.ask("workers")["total"] == 0)
    broker.daemon.ask("retry", id=killer)
    begins = now()
    lose_worker()
    wait_for("the quarantine", lambda: broker.daemon.ask("quarantine_list")["total"] == 1)
    exported = Exported(broker.daemon.data, "--from", begins)
    assert f'"{killer}", "had", {{"attempts": 2, "retries_left": ' in exported.text
    assert '"deaths": 1' in exported.text
    assert f'"{killer}": ["accepted", "leased 3 to w1", "quarantined 3: workers_died"]' in exported.text
    assert "due_s" not in exported.text
    assert exported.play() == ""


def test_one_message_alone_is_taken_by_its_id(new_broker: NewBroker, capfd: pytest.CaptureFixture[str]) -> None:
    broker = new_broker()
    client, worker = broker.client("emqp"), broker.worker("emqp", "mail")
    asked = []
    for body in (b"one", b"two"):
        asked.append(client.ask("mail", body))
        worker.answer(worker.take()[0], b'{"value":1}')
        client.outcome(asked[-1])
    exported = Exported(broker.daemon.data, "--id", asked[1].decode())
    assert asked[0].decode() not in exported.text
    assert exported.text.count('"asks"') == 1
    assert exported.play() == ""
    capfd.readouterr()
    assert run(["export-test", "--data", str(broker.daemon.data), "--id", asked[0].decode(), "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert (told["messages"], told["left_out"], told["is_ordered"]) == (1, {}, True)
    assert asked[0].decode() in told["text"]


def test_a_body_is_in_the_file_only_when_it_is_asked_for(new_broker: NewBroker) -> None:
    broker = new_broker()
    client, worker = broker.client("emqp"), broker.worker("emqp", "mail")
    asked = client.ask("mail", b"the password is swordfish")
    worker.answer(worker.take()[0], b'{"value":1}')
    client.outcome(asked)
    exported = Exported(broker.daemon.data)
    assert "swordfish" not in exported.text
    assert '"body": ("text", 25)' in exported.text
    with_bodies = Exported(broker.daemon.data, "--bodies", "--force")
    assert "b'the password is swordfish'" in with_bodies.text
    assert with_bodies.play() == ""


def test_without_a_broker_the_settings_come_from_where_up_takes_them(new_broker: NewBroker) -> None:
    """The wrong ones are noticed: the export says what it could not check, or that nothing came out."""
    broker = new_broker("queues.quarantine_after=1")
    broker.client("emqp").ask("mail", b"kills at once")
    worker = broker.worker("emqp", "mail")
    worker.take()
    worker.close()
    wait_for("the quarantine", lambda: broker.daemon.ask("quarantine_list")["total"] == 1)
    assert broker.daemon.stop() == 0
    data = str(broker.daemon.data)
    assert run(["export-test", "--data", data]) == 1
    exported = Exported(broker.daemon.data, "--set", "queues.quarantine_after=1")
    assert "quarantined 1: workers_died" in exported.text
    assert exported.play() == ""


def test_a_message_whose_first_attempts_are_older_than_the_journal_is_put_there_with_them() -> None:
    """Of its acceptance there is only the copy that was carried out of a dropped segment."""
    log, second_ns = FactLog(), 1_000_000_000
    message = Message(EMQP, b"mail", b"old one", b"body")
    message.number, message.queue_no, message.retries_left = 7, 1, 5
    log.accepted(message)
    accepted = log.take()
    log.numbered(STARTED, 3, 0, b"0.1.0")
    log.numbered(QUEUE_NAMED, 1, 0, b"mail")
    log.numbered(WORKER_JOINED, 9, EMQP, b"emqp.worker\t127.0.0.1:1\t\t10 mail")
    log.carried(accepted, 100 * second_ns)
    message.attempt = 2
    log.leased(message, 9)
    message.attempt = 3
    log.closed(message, 9, EMQP, 5, 3, ANSWERED, 9)
    history = History(Wanted(0, 10_000 * second_ns), {})
    history.read([Block(0, 1, 5, 5_000 * second_ns, log.take())], 5, lambda done, total: None)
    script = Writer(history, Config(), {}).write()
    assert (0.0, "old one", "had", {"attempts": 2, "retries_left": 5}) in script.story
    assert script.lives == {"old one": ["accepted", "leased 3 to w1", "closed 3: done, answered, by w1"]}
    prove(script)
    assert (script.left_out, script.by_hand) == ({}, 0)


def crowd(time_ns: int) -> Block:
    """One message more than a slice may have, all accepted at once."""
    log = FactLog()
    log.numbered(QUEUE_NAMED, 1, 0, b"mail")
    for number in range(1, EXPORT_MESSAGES_MAX + 2):
        message = Message(EMQP, b"mail", b"%d" % number, b"body")
        message.number, message.queue_no = number, 1
        log.accepted(message)
    count = log.count
    return Block(0, 1, count, time_ns, log.take())


def began(time_ns: int) -> Block:
    log = FactLog()
    log.numbered(STARTED, 3, 0, b"0.1.0")
    return Block(0, EXPORT_MESSAGES_MAX + 3, 1, time_ns, log.take())


def unread() -> Iterator[Block]:
    pytest.fail("it is read on")
    yield


@pytest.mark.parametrize(
    ("from_ns", "blocks"),
    [
        pytest.param(0, [crowd(5)], id="accepted in it"),
        pytest.param(6, [crowd(5), began(7)], id="open when it begins"),
        pytest.param(6, [crowd(5)], id="open, and nothing happens in it"),
        pytest.param(6, [crowd(5), began(10)], id="open, and all that happens comes later"),
    ],
)
def test_a_slice_that_nobody_would_read_is_refused(from_ns: int, blocks: list[Block]) -> None:
    history = History(Wanted(from_ns, 10), {})
    with pytest.raises(ExportTooLarge) as refused:
        history.read(blocks, 0, lambda done, total: None)
    assert refused.value.count == EXPORT_MESSAGES_MAX + 1


def test_too_large_a_slice_is_refused_when_it_begins_not_when_all_is_read() -> None:
    history = History(Wanted(6, 10), {})
    with pytest.raises(ExportTooLarge):
        history.read(itertools.chain([crowd(5), began(7)], unread()), 0, lambda done, total: None)


@pytest.mark.parametrize(("with_bodies", "body"), [(False, ("text", 4)), (True, b"body")])
def test_bodies_do_not_stay_in_memory_unless_they_are_asked_for(with_bodies: bool, body: object) -> None:
    """What waits before the slice may be a long backlog."""
    history = History(Wanted(6, 10, with_bodies=with_bodies), {})
    history.block(crowd(5))
    assert {life.message.body for life in history.lives.values()} == {b""}
    assert {life.body for life in history.lives.values()} == {body}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--from", "yesterday"], 2, "[BAD_INSTANT]"),
        (["--queue", "nowhere"], 4, "[NOTHING_TO_EXPORT]"),
        (["--id", "nobody"], 4, "[NOTHING_TO_EXPORT]"),
        (["--from", "14:30", "--to", "1999-01-01"], 4, "[NOTHING_TO_EXPORT]"),
    ],
)
def test_a_bad_slice_is_refused_with_a_code(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    (tmp_path / "journal").mkdir()
    assert run(["export-test", "--data", str(tmp_path), *arguments]) == code
    assert words in capfd.readouterr().err


def test_a_file_that_is_there_stays_as_it_is_unless_forced(
    new_broker: NewBroker, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broker, file = new_broker(), tmp_path / "test_mine.py"
    broker.client("emqp").ask("mail", b"hello")
    broker.wait_waiting("mail", 1)
    file.write_text("edited by hand", encoding="utf-8")
    command = ["export-test", "--data", str(broker.daemon.data), "--out", str(file)]
    assert run(command) == 2
    said = capfd.readouterr().err
    assert "[EXPORT_MISPLACED]" in said
    assert "--force" in said
    assert file.read_text(encoding="utf-8") == "edited by hand"
    assert run([*command, "--force"]) == 0
    assert "def test_the_same_lives_come_out" in file.read_text(encoding="utf-8")


def test_a_missing_directory_is_reported_before_the_journal_is_read(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "nowhere" / "test_mine.py"
    assert run(["export-test", "--data", str(tmp_path / "nobody"), "--out", str(out)]) == 2
    assert "[EXPORT_MISPLACED]" in capfd.readouterr().err


@pytest.mark.parametrize("value", [("a",), (), ("a", 1), ["a"], {"a": ("b",)}, [("a",), b"c"]])
def test_what_the_file_says_is_the_value_again(value: object) -> None:
    assert ast.literal_eval(literal(value)) == value


def test_a_data_directory_without_a_journal_is_reported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["export-test", "--data", str(tmp_path / "nobody")]) == 4
    assert "no journal to read" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-02T14:03:11", datetime(2026, 3, 2, 14, 3, 11, tzinfo=UTC)),
        ("2026-03-02 14:03", datetime(2026, 3, 2, 14, 3, tzinfo=UTC)),
        ("2026-03-02T15:03:00+01:00", datetime(2026, 3, 2, 14, 3, tzinfo=UTC)),
        ("2026-03-02", datetime(2026, 3, 2, tzinfo=UTC)),
        ("14:03", datetime(2026, 3, 2, 14, 3, tzinfo=UTC)),
        ("14:45", datetime(2026, 3, 1, 14, 45, tzinfo=UTC)),
        ("01:00+12:00", datetime(2026, 3, 2, 13, 0, tzinfo=UTC)),
        ("09:00-06:00", datetime(2026, 3, 1, 15, 0, tzinfo=UTC)),
        ("-15m", datetime(2026, 3, 2, 14, 15, tzinfo=UTC)),
        ("-1.5h", datetime(2026, 3, 2, 13, 0, tzinfo=UTC)),
    ],
)
def test_instants_are_read_as_people_write_them(text: str, moment: datetime) -> None:
    assert read_instant(text, in_ns(NOW)) == in_ns(moment)


@pytest.mark.parametrize("text", ["", "soon", "25:00", "-15", "15m", "-m", "2026-13-01", "1960-01-01", "-99999999d", "-99999999999d",
                                  f"-{'9' * 400}s", "9999-12-31T23:59-23:00", "0001-01-01T00:00+23:00"])  # fmt: skip
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(BadInstant) as refused:
        read_instant(text, in_ns(NOW))
    assert refused.value.exit_code == 2
