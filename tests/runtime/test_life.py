"""From start to exit: what an operator and a process supervisor see of a broker."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from dragoman.runtime.config import Listener
from dragoman.runtime.process.machine import bind
from dragoman.version import VERSION
from tests.runtime.conftest import NewBroker
from tests.runtime.daemon import FREE, LISTENERS, Daemon
from tests.runtime.peers import Client, Peer, RawPeer, Worker, new_id


def test_broker_json_tells_who_runs_and_every_address_in_it_can_be_reached(broker: Daemon) -> None:
    assert broker.card["pid"] == broker.pid
    assert broker.card["version"] == VERSION
    assert set(broker.card["listeners"]) == set(LISTENERS)
    for name, address in broker.card["listeners"].items():
        assert address.startswith("tcp://127.0.0.1:")
        assert not address.endswith(":0")
        RawPeer(broker, name).close()


def test_broker_json_never_appears_before_everything_is_bound(new_broker: NewBroker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        failing = new_broker(listen=dict.fromkeys(LISTENERS, FREE) | {"emqp.subscribe": address})
        failing.launch()
        assert failing.exit_code() == 1
    assert not failing.card_file.exists()
    assert not (failing.data / "broker.json.new").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_exit_code_0_and_nothing_to_connect_to_is_left(broker: Daemon, number: int) -> None:
    broker.send_signal(number)
    assert broker.exit_code() == 0
    assert not broker.card_file.exists()
    assert not (broker.data / "admin.sock").exists()
    assert broker.lines()[-1]["event"] == "stopped"


def test_off_leaves_a_listener_out(new_broker: NewBroker) -> None:
    broker = new_broker(listen=dict.fromkeys(LISTENERS, FREE) | {"emqp.publish": "off"}).start()
    assert set(broker.card["listeners"]) == set(LISTENERS) - {"emqp.publish"}


@pytest.mark.parametrize(("name", "port"), [("emqp.client", 47291), ("http", 8484)])
def test_a_taken_default_port_switches_that_listener_off_with_one_loud_line(
    new_broker: NewBroker, name: str, port: int
) -> None:
    others = {listener: FREE for listener in LISTENERS if listener != name}
    broker = new_broker(listen=others)
    broker.listen.pop(name, None)
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", port))
            taken.listen()
        except OSError:
            pass  # somebody else has it, which serves as well
        broker.start()
    assert set(broker.card["listeners"]) == set(others)
    [line] = [line for line in broker.lines() if line["level"] == "error"]
    assert line["code"] == "LISTENER_TAKEN"
    assert f"{name} cannot bind tcp://127.0.0.1:{port} (Address already in use)" in line["event"]
    assert f"--listen {name}=tcp://127.0.0.1:PORT" in line["event"]
    assert f"--listen {name}=off" in line["event"]
    assert "Traceback" not in broker.process.log()


def test_of_two_brokers_that_start_at_once_one_has_the_port_and_the_other_knows_it() -> None:
    def listener(port: int) -> Listener:
        return Listener("http", f"tcp://127.0.0.1:{port}", "127.0.0.1", port, is_off=False, is_explicit=True)

    with bind(listener(0), 1) as first, pytest.raises(OSError, match="in use"):
        bind(listener(first.getsockname()[1]), 1)


@pytest.mark.parametrize("name", ["emqp.client", "http"])
def test_an_explicit_port_that_is_taken_is_fatal_and_the_message_says_what_to_do(
    new_broker: NewBroker, name: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        broker = new_broker(listen={"rq": FREE, name: address})
        broker.launch()
        assert broker.exit_code() == 1
    log = broker.process.log()
    assert f"listener {name} cannot bind {address}" in log
    assert "[LISTENER_TAKEN]" in log
    assert f"--listen {name}=off" in log
    assert "Traceback" not in log


def test_a_broker_without_any_listener_is_refused(new_broker: NewBroker) -> None:
    broker = new_broker(listen=dict.fromkeys(LISTENERS, "off"))
    broker.launch()
    assert broker.exit_code() == 1
    assert "[NO_LISTENER]" in broker.process.log()
    assert "Traceback" not in broker.process.log()


def test_a_second_broker_on_the_same_directory_is_refused_and_the_first_notices_nothing(
    broker: Daemon, new_broker: NewBroker
) -> None:
    card = broker.card
    second = Daemon(broker.data)
    process = second.launch()
    try:
        assert process.exit_code() == 1
    finally:
        process.kill_group()
    assert "[DATA_DIRECTORY_BUSY]" in process.log()
    assert broker.card == card
    assert broker.ask("status")["pid"] == broker.pid
    with Client(broker) as client:
        client.keep(b"still-here")


def test_after_kill_9_the_next_one_starts_at_once(broker: Daemon) -> None:
    killed_pid = broker.pid
    broker.kill()
    assert broker.card_file.exists(), "nobody was left to remove it"
    broker.start()
    assert broker.card["pid"] != killed_pid
    assert broker.stop() == 0


def test_an_admins_disconnect_stops_a_broker_that_allows_it(new_broker: NewBroker) -> None:
    broker = new_broker("emqp.remote_stop=true").start()
    with Peer(broker, "emqp.admin") as admin:
        message_id = new_id()
        admin.say(b"DISCONNECT", message_id)
        assert admin.hear()[::2] == [b"ACK", message_id]
        assert broker.exit_code() == 0


def test_a_clients_disconnect_does_not(broker: Daemon) -> None:
    with Client(broker) as client:
        client.say(b"DISCONNECT", new_id())
        client.keep(b"still-here")
    assert broker.process.is_running()
    assert not broker.lines("draining")


def test_a_workers_goodbye_comes_as_kbye_when_the_broker_stops(broker: Daemon) -> None:
    with Worker(broker, b"idle") as worker:
        broker.send_signal(signal.SIGTERM)
        assert worker.hear_word(b"KBYE", b"DISCONNECT")[0] == b"KBYE"
    assert broker.exit_code() == 0


def test_an_address_that_others_can_reach_is_refused_until_the_operator_allows_it(new_broker: NewBroker) -> None:
    broker = new_broker(listen={"emqp.client": "tcp://0.0.0.0:0"})
    broker.launch()
    assert broker.exit_code() == 2
    assert "[BIND_NOT_LOOPBACK]" in broker.process.log()
    assert "security.insecure" in broker.process.log()


def test_with_security_insecure_such_an_address_serves(new_broker: NewBroker) -> None:
    listen = {"emqp.client": "tcp://0.0.0.0:0", **{name: "off" for name in LISTENERS if name != "emqp.client"}}
    broker = new_broker("security.insecure=true", listen=listen).start()
    assert broker.card["listeners"]["emqp.client"].startswith("tcp://0.0.0.0:")
    broker.listen["emqp.client"] = broker.listen["emqp.client"].replace("0.0.0.0", "127.0.0.1")
    with Client(broker) as client:
        client.keep(b"outside")


def test_systemd_hears_ready_when_it_is_and_stopping_when_it_stops(new_broker: NewBroker, tmp_path: Path) -> None:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(str(path))
        notified.settimeout(60)
        broker = new_broker(env={"NOTIFY_SOCKET": str(path)})
        broker.launch()
        assert notified.recv(1000) == b"READY=1"
        assert broker.card_file.exists()
        broker.send_signal(signal.SIGTERM)
        assert notified.recv(1000) == b"STOPPING=1"
    assert broker.exit_code() == 0


def test_systemd_hears_of_a_reload_too(new_broker: NewBroker, tmp_path: Path) -> None:
    name = f"dragoman-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind("\0" + name)  # an abstract address, as systemd uses in containers
        notified.settimeout(60)
        broker = new_broker(env={"NOTIFY_SOCKET": "@" + name})
        broker.launch()
        assert notified.recv(1000) == b"READY=1"
        broker.send_signal(signal.SIGHUP)
        assert notified.recv(1000).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
        assert notified.recv(1000) == b"READY=1"


def test_the_data_directory_is_made_and_one_that_cannot_be_is_named(new_broker: NewBroker, tmp_path: Path) -> None:
    deep = new_broker(data=tmp_path / "not" / "yet" / "there").start()
    assert deep.stop() == 0
    (tmp_path / "file").write_text("in the way")
    broker = new_broker(flags=("--data", str(tmp_path / "file" / "data")))
    broker.launch()
    assert broker.exit_code() == 1
    assert "[DATA_DIRECTORY_UNUSABLE]" in broker.process.log()


def test_a_data_directory_whose_name_is_not_utf_8_is_refused(new_broker: NewBroker, tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/d\xff")
    broker = new_broker(flags=("--data", name))
    broker.launch()
    assert broker.exit_code() == 1
    assert "cannot be used: its name is not UTF-8 [DATA_DIRECTORY_UNUSABLE]" in broker.process.log()
    assert not Path(name).exists()
