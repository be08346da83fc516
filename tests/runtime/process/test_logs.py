"""What the broker says on stderr: JSON where no person looks, and never more than one can read."""

from __future__ import annotations

import time

from tests.runtime.conftest import NewBroker
from tests.runtime.daemon import Daemon
from tests.runtime.peers import Client, RawPeer
from tests.waiting import wait_for

REFUSED = "peer refused by its first bytes"


def test_every_line_off_a_terminal_is_json_with_time_and_level(broker: Daemon) -> None:
    with RawPeer(broker, "emqp.client") as peer:
        peer.socket.sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(100))
        assert peer.is_ended()
    assert broker.stop() == 0
    lines = broker.lines()
    assert [line["event"] for line in lines][:1] == ["ready"]
    assert all({"event", "level", "timestamp"} <= set(line) for line in lines)
    [fault] = broker.lines(REFUSED)
    assert fault["level"] == "warning"
    assert fault["code"]
    assert fault["peer"].startswith("127.0.0.1:")
    assert fault["listener"] == "emqp.client"


def test_a_storm_of_bad_peers_makes_a_few_lines_and_a_count(broker: Daemon) -> None:
    count = 300
    began_s = time.monotonic()
    for _ in range(count):
        with RawPeer(broker, "emqp.client") as peer:
            peer.socket.sendall(b"\x00" * 100)
            assert peer.is_ended()
    seconds = time.monotonic() - began_s + 2

    def told() -> int:
        return len(broker.lines(REFUSED)) + sum(line["count"] for line in broker.lines("more peer faults"))

    wait_for("every fault to be told or counted", lambda: told() == count)
    assert len(broker.lines(REFUSED)) <= 10 * seconds
    assert broker.lines("more peer faults")


def test_messages_themselves_are_never_logged(broker: Daemon) -> None:
    with Client(broker) as client:
        client.keep(b"secret-queue", b"secret-body")
    assert broker.stop() == 0
    assert "secret" not in broker.process.log()


def test_a_broker_whose_log_nobody_reads_any_more_goes_on(new_broker: NewBroker) -> None:
    script = 'exec "$@" 2> >(head -n 1 > /dev/null)'
    broker = new_broker(before=("bash", "-c", script, "bash")).start()
    for _ in range(5):
        with RawPeer(broker, "emqp.client") as peer:
            peer.socket.sendall(b"\x00" * 100)
            assert peer.is_ended()
    with Client(broker) as client:
        client.keep(b"jobs")
    assert broker.stop() == 0


def test_a_broker_loads_nothing_that_draws(new_broker: NewBroker) -> None:
    broker = new_broker(env={"PYTHONPROFILEIMPORTTIME": "1"}).start()
    loaded = {line.rpartition("|")[2].strip() for line in broker.process.log().splitlines() if "import time:" in line}
    assert "structlog" in loaded
    assert "rich.console" not in loaded
