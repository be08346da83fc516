"""Commands about the broker itself, against a real one, and what all commands share: what people see, what scripts get, which code ends it."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

import pytest

from dragoman.cli import show
from dragoman.runtime.config.listeners import LISTENERS
from tests.cli.asking import send
from tests.cli.broker import BrokerProcess, Commands, wait_for


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
    fake_worker = broker.serve(b"mail", None)
    send(dragoman)
    wait_for("the lease", lambda: fake_worker.held)
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


def test_what_never_was_has_no_time() -> None:
    assert show.clock(0) == ""
    assert show.ago(0, 5) == ""


def test_the_admin_socket_is_only_its_owners(common_broker: BrokerProcess) -> None:
    assert (common_broker.data / "admin.sock").stat().st_mode & 0o777 == 0o600
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(common_broker.data / "admin.sock"))
