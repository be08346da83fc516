"""Commands about queues, workers and messages, against a real broker: what people see of them and may do to them."""

from __future__ import annotations

import io
import signal
from pathlib import Path

import pytest

from tests.cli.asking import echo, send
from tests.cli.broker import BrokerProcess, Commands, Outcome, wait_for


def test_a_queue_whose_name_is_no_text_can_be_named_as_it_is_and_as_it_is_shown(dragoman: Commands) -> None:
    name = b"bin\xff".decode("utf-8", "surrogateescape")
    send(dragoman, name)
    assert dragoman("queues", "pause", name, "--json").json["is_paused"]
    assert dragoman("queues", "resume", "bin\\xff").code == 0
    assert dragoman("explain", f"queue:{name}").code == 0


def test_queues_shows_counts_and_is_paged_and_filtered(dragoman: Commands) -> None:
    for name in ("a1", "a2", "b1"):
        send(dragoman, name)
    found = dragoman("queues", "--json").json
    assert [queue["queue"] for queue in found["queues"]] == ["a1", "a2", "b1"]
    assert [q["queue"] for q in dragoman("queues", "--prefix", "a", "--json").json["queues"]] == ["a1", "a2"]
    page = dragoman("queues", "--limit", "1", "--offset", "1", "--json").json
    assert (page["total"], [queue["queue"] for queue in page["queues"]]) == (3, ["a2"])
    text = dragoman("queues", "--limit", "2").out
    assert "2 of 3 queues shown; --offset 2 shows the next" in text


def test_a_paused_queue_keeps_its_messages_until_it_is_resumed(dragoman: Commands, broker: BrokerProcess) -> None:
    send(dragoman, "mail")
    assert dragoman("queues", "pause", "mail").out == "mail is paused\n"
    fake_worker = broker.serve(b"mail", echo)
    wait_for("the worker", lambda: dragoman("workers", "--json").json["total"] == 1)
    assert "paused" in dragoman("queues").out
    assert dragoman("explain", "queue:mail").out.startswith("waits: the queue `mail` is paused")
    assert fake_worker.held == []
    assert dragoman("queues", "resume", "mail", "--json").json == {"queue": "mail", "is_paused": False}
    wait_for("the job", lambda: fake_worker.held)


def test_a_purge_asks_first_and_cancels_what_waits(dragoman: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = [send(dragoman) for _ in range(5)]
    send(dragoman, "mail", "--delay", "100")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert dragoman("queues", "purge", "mail").code == 130
    assert dragoman("queues", "purge", "mail", "--yes", "--json").json == {"queue": "mail", "purged": 5}
    [queue] = dragoman("queues", "--json").json["queues"]
    assert (queue["waiting"], queue["delayed"]) == (0, 1)
    assert dragoman("queues", "purge", "mail", "--yes", "--delayed").out == "1 message of mail cancelled\n"
    assert "cancelled (purged)" in dragoman("explain", waiting[0]).out


def test_workers_shows_who_serves_what(dragoman: Commands, broker: BrokerProcess) -> None:
    broker.serve(b"mail", None, slots=2)
    wait_for("slots", lambda: slots_of(dragoman) == 2)
    send(dragoman)
    worker = wait_for("the lease", lambda: [w for w in workers(dragoman) if w["leased"] == 1])[0]
    assert worker["state"] == "ready"
    assert worker["queues"] == [{"queue": "mail", "weight": 10}]
    assert worker["id"] in dragoman("workers").out
    assert dragoman("workers", "--queue", "other", "--json").json["total"] == 0
    assert dragoman("explain", f"worker:{worker['id']}").out.startswith("has 1 free slot")


def workers(dragoman: Commands) -> list[dict[str, object]]:
    return list(dragoman("workers", "--json").json["workers"])


def slots_of(dragoman: Commands) -> int:
    return sum(int(str(worker["slots_free"])) for worker in workers(dragoman))


def test_explain_follows_a_message_from_waiting_to_its_end(common: Commands, common_broker: BrokerProcess) -> None:
    message_id = send(common, "followed")
    assert common("explain", message_id).out.startswith("waits: no worker serves `followed`")
    fake_worker = common_broker.serve(b"followed", None)
    wait_for("the job", lambda: fake_worker.held)
    assert common("explain", message_id).out.startswith("leased to worker w1.")
    fake_worker.reply(message_id.encode())
    found = wait_for("the end", lambda: common("explain", message_id, "--json").json["lines"][0])
    assert wait_for("settled", lambda: common("explain", message_id).out.startswith("settled: done (answered)")), found


def test_explain_of_a_stopped_broker_reads_the_journal(dragoman: Commands, broker: BrokerProcess) -> None:
    message_id = send(dragoman)
    broker.end(signal.SIGTERM)
    assert dragoman("explain", message_id).out.startswith("waits: the broker does not run")
    assert dragoman("explain", "nobody").code == 3


def test_trace_prints_the_whole_life_with_workers_and_reasons(common: Commands, common_broker: BrokerProcess) -> None:
    first = common_broker.serve(b"traced", None)
    message_id = send(common, "traced", "--retries", "3")
    wait_for("the first lease", lambda: first.held)
    first.vanish()
    second = common_broker.serve(b"traced", echo)
    wait_for("the second lease", lambda: second.held)

    def look() -> Outcome | None:
        found = common("trace", message_id, "--json")
        return found if found.json["lives"][0]["is_settled"] else None

    [life] = wait_for("the end", look).json["lives"]
    names = [fact["fact"] for fact in life["facts"]]
    assert names == ["accepted", "leased", "released", "leased", "closed"]
    assert life["queue"] == "traced"
    assert life["facts"][2]["reason"] == "worker_lost"
    assert life["facts"][2]["is_death"] is True
    assert life["facts"][4]["outcome"] == "done"
    lsns = [fact["lsn"] for fact in life["facts"]]
    assert lsns == sorted(set(lsns))
    text = common("trace", message_id).out
    assert "done: answered; waited" in text
    assert "worker_lost" in text
    assert common("trace", life["id"], "--json").json["lives"][0]["number"] == life["number"]
    assert common("trace", str(life["number"]), "--json").json["lives"][0]["client_id"] == message_id


def test_trace_of_a_message_over_a_restart_shows_the_broker_starting_again(
    dragoman: Commands, broker: BrokerProcess
) -> None:
    fake_worker = broker.serve(b"mail", None)
    message_id = send(dragoman)
    wait_for("the lease", lambda: fake_worker.held)
    broker.end(signal.SIGKILL)
    broker.start()
    [life] = dragoman("trace", message_id, "--json").json["lives"]
    assert [fact["fact"] for fact in life["facts"]] == ["accepted", "leased", "started"]
    text = dragoman("trace", message_id).out
    assert "the broker started again (boot 2): the lease ended" in text
    assert f"not settled; `dragoman explain {message_id}` says why" in text


def test_a_cancelled_message_is_gone_and_says_so(common: Commands) -> None:
    message_id = send(common, "cancelled")
    assert common("cancel", message_id).out.endswith("of cancelled was waiting: cancelled\n")
    assert common("cancel", message_id).code == 4
    assert "settled: cancelled (by_operator)" in common("explain", message_id).out


def kill_three_workers(dragoman: Commands, broker: BrokerProcess, *queues: str) -> None:
    for queue in queues:
        for _ in range(3):
            fake_worker = broker.serve(queue.encode(), None)
            wait_for("the job", lambda s=fake_worker: s.held)  # type: ignore[misc]
            fake_worker.vanish()
    wait_for("quarantine", lambda: dragoman("quarantine", "list", "--json").json["total"] == len(queues))


@pytest.fixture
def impatient(tmp_path: Path) -> BrokerProcess:
    return BrokerProcess(tmp_path / "impatient", "--set=queues.backoff_initial_s=0.01")


def test_a_quarantined_message_is_listed_retried_and_dropped(
    impatient: BrokerProcess, capfd: pytest.CaptureFixture[str]
) -> None:
    dragoman = Commands(impatient.data, capfd)
    try:
        message_id = send(dragoman, "mail")
        other = send(dragoman, "other")
        kill_three_workers(dragoman, impatient, "mail", "other")
        [entry] = dragoman("quarantine", "list", "--queue", "mail", "--json").json["messages"]
        assert entry["client_id"] == message_id
        assert len(entry["died_with"]) == 3
        assert message_id in dragoman("quarantine", "list").out
        assert "quarantined: 3 workers died holding it" in dragoman("explain", message_id).out
        assert dragoman("quarantine", "retry", message_id).out == "1 message back in their queues\n"
        assert dragoman("quarantine", "retry", message_id).code == 1  # it waits: not quarantined any more
        assert dragoman("quarantine", "drop", "--queue", "other", "--json").json == {"dropped": 1}
        assert "settled: cancelled (dropped)" in dragoman("explain", other).out
        assert dragoman("quarantine", "drop", "--all", "--json").json == {"dropped": 0}
    finally:
        impatient.end()


def test_schedules_are_listed_and_removed(dragoman: Commands, broker: BrokerProcess) -> None:
    from dragoman.cli.options import address_of
    from dragoman.dialects.endpoint import KEPT
    from tests.cli.raw_emqp import RawEmqp

    with RawEmqp(address_of(None, broker.data), "client") as talk:
        for interval, cron in ((b"3600", b""), (b"-1", b"*/5 * * * *")):
            message_id = talk.ids.take()
            headers = b"ack-requested,nohaste"
            talk.say(b"SCHEDULE", message_id, b"mail", headers, interval, b'["run",%s]' % interval, cron)
            assert talk.answer(message_id, 10)[0] == KEPT
    found = dragoman("schedules", "--json").json["schedules"]
    assert [(s["interval_s"], s["cron"]) for s in found] == [(3600.0, ""), (0.0, "*/5 * * * *")]
    listed = dragoman("schedules").out
    assert "Every hour" in listed
    assert "Every fifth minute of every hour (*/5 * * * *)" in listed
    assert dragoman("schedules", "remove", found[0]["id"]).out == f"schedule {found[0]['id']} is removed\n"
    assert [s["id"] for s in dragoman("schedules", "--json").json["schedules"]] == [found[1]["id"]]
