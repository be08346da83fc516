"""Every command against a real broker: what people see, what scripts get, which code ends it."""

from __future__ import annotations

import io
import json
import signal
import socket
import threading
from pathlib import Path

import pytest

from dragoman.cli import show
from dragoman.runtime.config.listeners import LISTENERS
from tests.cli.broker import BrokerProcess, Commands, Outcome, wait_for


def send(dragoman: Commands, queue: str = "mail", *options: str) -> str:
    found = dragoman("send", queue, "{}", "--json", *options)
    return str(found.json["id"])


def echo(body: bytes) -> bytes:
    return b'{"value":%s}' % body


def fail(body: bytes) -> bytes:
    return b'{"error":{"type":"ValueError","message":"no such address"}}'


def test_status_tells_listeners_journal_and_counters(dragoman: Commands) -> None:
    send(dragoman)
    found = dragoman("status", "--json").json
    assert found["counters"]["waiting"] == 1
    assert found["counters"]["accepted"] == 1
    assert found["durability"] == "os"
    assert set(found["listeners"]) == set(LISTENERS)
    assert found["journal"]["segments"] == 1
    text = dragoman("status").out
    assert "durability os" in text
    assert "1 waiting" in text


def test_without_a_broker_a_command_ends_with_3_and_says_where_it_looked(alone: Commands) -> None:
    found = alone("status")
    assert found.code == 3
    assert "admin.sock" in found.err
    assert "BROKER_NOT_REACHABLE" in found.err
    assert json.loads(alone("queues", "--json").err)["error"]["code"] == "BROKER_NOT_REACHABLE"
    assert alone("send", "mail", "x").code == 3
    assert alone("call", "mail", "x").code == 3
    assert alone("publish", "t", "x").code == 3


def test_what_does_not_exist_ends_with_4(common: Commands) -> None:
    assert common("explain", "nobody").code == 4
    assert common("explain", "queue:nobody").code == 4
    assert common("explain", "worker:w9.9").code == 4
    assert common("cancel", "nobody").code == 4
    assert common("trace", "nobody").code == 4
    assert common("queues", "pause", "nobody").code == 4
    assert common("schedules", "remove", "s9.9").code == 4
    assert common("quarantine", "retry", "nobody").code == 4


def test_bad_usage_ends_with_2(common: Commands, alone: Commands) -> None:
    assert alone.plain("nonsense").code == 2
    assert alone.plain("send").code == 2
    assert common("quarantine", "drop").code == 2
    assert common("send", "mail", "x", "--job", "nocolon").code == 2
    assert common("send", "mail", "{broken", "--job", "m:f").code == 2
    assert common("send", "mail", '"text"', "--job", "m:f").code == 2
    assert alone("config", "show", "--set", "journal.durabilty=os").code == 2
    assert "did you mean journal.durability" in alone("config", "show", "--set", "journal.durabilty=os").err


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
    servant = broker.serve(b"mail", echo)
    wait_for("the worker", lambda: dragoman("workers", "--json").json["total"] == 1)
    assert "paused" in dragoman("queues").out
    assert dragoman("explain", "queue:mail").out.startswith("waits: the queue `mail` is paused")
    assert servant.held == []
    assert dragoman("queues", "resume", "mail", "--json").json == {"queue": "mail", "is_paused": False}
    wait_for("the job", lambda: servant.held)


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
    servant = common_broker.serve(b"followed", None)
    wait_for("the job", lambda: servant.held)
    assert common("explain", message_id).out.startswith("leased to worker w1.")
    servant.reply(message_id.encode())
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
    servant = broker.serve(b"mail", None)
    message_id = send(dragoman)
    wait_for("the lease", lambda: servant.held)
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
            servant = broker.serve(queue.encode(), None)
            wait_for("the job", lambda s=servant: s.held)  # type: ignore[misc]
            servant.vanish()
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
    from dragoman.cli.talk import Talk, address_of
    from dragoman.dialects.emqp.client_side import KEPT, encode_schedule

    with Talk(address_of(None, broker.data), "client") as talk:
        for interval, cron in ((b"3600", b""), (b"-1", b"*/5 * * * *")):
            message_id = talk.ids.take()
            headers = b"ack-requested,nohaste"
            talk.send(encode_schedule(True, message_id, b"mail", headers, interval, b'["run",%s]' % interval, cron))
            assert talk.answer(message_id, 10)[0] == KEPT
    found = dragoman("schedules", "--json").json["schedules"]
    assert [(s["interval_s"], s["cron"]) for s in found] == [(3600.0, ""), (0.0, "*/5 * * * *")]
    listed = dragoman("schedules").out
    assert "Every hour" in listed
    assert "Every fifth minute of every hour (*/5 * * * *)" in listed
    assert dragoman("schedules", "remove", found[0]["id"]).out == f"schedule {found[0]['id']} is removed\n"
    assert [s["id"] for s in dragoman("schedules", "--json").json["schedules"]] == [found[1]["id"]]


def test_what_is_published_reaches_a_subscriber_of_its_prefix(common: Commands, common_broker: BrokerProcess) -> None:
    from dragoman.cli.talk import Talk, address_of

    heard: list[list[bytes]] = []
    with Talk(address_of(None, common_broker.data), "subscribe", b"SUB") as talk:
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
    from dragoman.cli.talk import Talk, address_of

    with Talk(address_of(None, common_broker.data), "publish") as talk:
        while listener.is_alive():
            talk.publish("a/1", b"body \xff")
            listener.join(0.05)
    assert outcome[0].code == 0
    assert [json.loads(line) for line in outcome[0].out.splitlines()] == [{"topic": "a/1", "body": "body \\xff"}] * 2


def test_a_backup_of_a_running_broker_restores_to_the_same_messages(
    dragoman: Commands, broker: BrokerProcess, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    message_id = send(dragoman)
    made = dragoman("backup", str(tmp_path / "copy"), "--json").json
    assert made["segments"] >= 1
    assert dragoman("backup", str(tmp_path / "copy")).code == 1  # not empty any more
    assert dragoman("restore", str(tmp_path / "copy")).code == 1  # a broker runs there
    again = Commands(tmp_path / "again", capfd)
    assert "goes on from there" in again("restore", str(tmp_path / "copy")).out
    assert again("restore", str(tmp_path / "copy")).code == 5  # not empty
    restored = BrokerProcess(tmp_path / "again")
    try:
        assert again("explain", message_id).out.startswith("waits: no worker serves `mail`")
    finally:
        restored.end()
    assert again("backup", str(tmp_path / "copy2"), "--json").json["last_lsn"] >= made["last_lsn"]


def test_a_sound_journal_verifies_and_a_damaged_one_ends_with_5_and_can_be_salvaged(
    dragoman: Commands, broker: BrokerProcess, tmp_path: Path
) -> None:
    for _ in range(3):
        send(dragoman)
    assert dragoman("journal", "verify").out.endswith("sound\n")
    assert dragoman("journal", "salvage", str(tmp_path / "saved")).code == 1  # the broker runs
    broker.end(signal.SIGTERM)
    [segment] = (broker.data / "journal").glob("*.seg")
    content = bytearray(segment.read_bytes())
    at = content.index(b"mail")
    content[at] ^= 0xFF
    segment.write_bytes(content)
    found = dragoman("journal", "verify", "--json")
    assert found.code == 5
    assert json.loads(found.out)["is_sound"] is False
    saved = dragoman("journal", "salvage", str(tmp_path / "saved"), "--json").json
    assert len(saved["losses"]) == 1
    assert (tmp_path / "saved" / "journal").is_dir()


def test_config_show_prints_a_file_and_the_running_brokers_settings(common: Commands) -> None:
    shown = common("config", "show", "--set", "journal.durability=os").out
    assert '\ndurability = "os"\n' in shown
    running = common("config", "show", "--running", "--json").json
    assert running["given"]["journal"]["durability"] == "os"


def test_reload_reports_what_changed(common: Commands) -> None:
    assert common("reload", "--json").json == {"applied": [], "needs_restart": []}
    assert common("reload").out == "changed: nothing\n"


def test_stop_drains_and_waits_for_the_end(dragoman: Commands, broker: BrokerProcess) -> None:
    assert dragoman("stop", "--json").json == {"stopped": True}
    assert broker.process.wait(15) == 0
    assert dragoman("status").code == 3


def test_stop_says_when_the_drain_takes_longer_than_the_wait(dragoman: Commands, broker: BrokerProcess) -> None:
    servant = broker.serve(b"mail", None)
    send(dragoman)
    wait_for("the lease", lambda: servant.held)
    assert dragoman("stop", "--wait", "0.2").code == 1
    assert dragoman("stop", "--now").out == "stopped\n"


def test_a_second_broker_on_the_directory_is_refused(common: Commands) -> None:
    found = common("up", "--listen", "emqp.client=tcp://127.0.0.1:0")
    assert found.code == 1
    assert "DATA_DIRECTORY_BUSY" in found.err


def test_a_short_bench_measures_a_running_broker(dragoman: Commands) -> None:
    found = dragoman("bench", "--seconds", "0.2", "--in-flight", "10", "--json").json
    assert found["round_trips"] >= 10
    assert 0 < found["p50_ms"] <= found["p99_ms"]
    wait_for("the bench's worker to leave", lambda: dragoman("workers", "--json").json["total"] == 0)


def test_bench_brings_its_own_broker_when_none_runs(alone: Commands) -> None:
    found = alone("bench", "--seconds", "0.1", "--durability", "memory", "--json").json
    assert found["broker"] == "a temporary one, durability memory"
    assert not alone.data.exists()


def test_options_given_to_a_group_hold_for_its_commands(common: Commands) -> None:
    send(common, "grouped")
    data = str(common.data)
    assert common.plain("queues", "--data", data, "--json", "pause", "grouped").json["is_paused"] is True


def test_the_data_directory_is_taken_from_the_environment(common: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_DATA", str(common.data))
    assert common.plain("status", "--json").json["data"] == str(common.data)


def test_control_characters_of_peers_do_not_reach_the_terminal(common: Commands) -> None:
    assert common("send", "evil\x1b[2J", "x").code == 0
    out = common("queues").out
    assert "\x1b[2J" not in out
    assert "evil\\x1b[2J" in out


def test_a_data_directory_with_a_very_long_name_works(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / ("long" * 30) / ("name" * 30)
    data.parent.mkdir()
    broker = BrokerProcess(data)
    try:
        assert len(str(data / "admin.sock")) > 107
        dragoman = Commands(data, capfd)
        assert dragoman("status", "--json").json["counters"]["waiting"] == 0
        assert (data / "admin.sock").stat().st_mode & 0o777 == 0o600
    finally:
        broker.end()


def test_a_dead_brokers_socket_is_not_mistaken_for_a_living_one(dragoman: Commands, broker: BrokerProcess) -> None:
    broker.end(signal.SIGKILL)
    assert (broker.data / "admin.sock").exists()
    assert dragoman("status").code == 3
    broker.start()
    assert dragoman("status").code == 0


def test_sizes_and_clocks_read_as_people_write_them() -> None:
    assert [show.size(n) for n in (0, 999, 1500, 2_500_000, 3_000_000_000)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "2.5 MB",
        "3.00 GB",
    ]
    assert show.clock(0) == ""
    assert show.ago(0, 5) == ""


def test_the_admin_socket_is_only_its_owners(common_broker: BrokerProcess) -> None:
    assert (common_broker.data / "admin.sock").stat().st_mode & 0o777 == 0o600
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(common_broker.data / "admin.sock"))
