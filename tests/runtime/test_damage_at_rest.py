"""A real broker on real files that were damaged: the message is quarantined, its neighbours flow, every tool says it in words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.conftest import NewBroker
from tests.runtime.daemon import Daemon
from tests.runtime.peers import Client, Worker
from tests.waiting import wait_for

COUNT = 40
VICTIM = 3
BODIES = [b"body %d " % n + bytes([65 + n % 26]) * 6000 for n in range(COUNT)]
NEIGHBOURS = [body for body in BODIES if body != BODIES[VICTIM]]
SMALL = ("queues.head_max=1", "journal.segment_size=64KiB")


def filled(broker: Daemon) -> None:
    """Several segments of waiting messages; the newest checkpoint lies behind the first of them."""
    with Client(broker) as client:
        for body in BODIES:
            client.keep(b"jobs", body)
    assert broker.ask("status")["journal"]["segments"] > 3


def damage(path: Path, harm: str) -> None:
    content = bytearray(path.read_bytes())
    at = content.index(BODIES[VICTIM])
    if harm == "body":
        content[at + 100] ^= 0x01
    else:  # the size of the record: its lowest byte stands where the record begins
        size = next(n for n in range(60, 200) if int.from_bytes(content[at - n : at - n + 4], "little") == n + 4 + 6007)
        content[at - size] ^= 0x01
    path.write_bytes(content)


def cli(broker: Daemon, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dragoman", *words, "--data", str(broker.data)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.long
@pytest.mark.parametrize("harm", ["body", "size"])
def test_a_body_damaged_while_stopped_is_never_delivered_and_all_others_are(new_broker: NewBroker, harm: str) -> None:
    broker = new_broker(*SMALL, "journal.scrub_rate=0").start()
    filled(broker)
    assert broker.stop() == 0
    damage(broker.data / "journal" / "0000000001.seg", harm)
    broker.start()
    with Worker(broker, b"jobs", slots=COUNT) as worker:
        assert [worker.take()[1] for _ in NEIGHBOURS] == NEIGHBOURS
        with Client(broker) as client:
            last = client.keep(b"jobs", b"the worker is still there")
            assert worker.take()[0] == last
    (message,) = broker.ask("quarantine_list")["messages"]
    assert message["last_reason"] == "damaged"
    assert message["damage"].startswith("0000000001.seg at byte ")
    assert not broker.lines("fault of our own")
    for words in (["quarantine", "list"], ["explain", message["id"]], ["trace", message["id"]]):
        shown = cli(broker, *words)
        assert shown.returncode == 0, shown.stderr
        assert "0000000001.seg" in shown.stdout.replace("\n", ""), words
        assert "Traceback" not in shown.stderr
    assert broker.stop() == 0
    broker.start()
    assert [m["id"] for m in broker.ask("quarantine_list")["messages"]] == [message["id"]]


def test_the_scrub_finds_damage_while_the_broker_runs(new_broker: NewBroker) -> None:
    broker = new_broker(*SMALL, "journal.scrub_interval_s=1", "journal.scrub_rate=64MiB").start()
    filled(broker)
    path = broker.data / "journal" / "0000000001.seg"
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(content.index(BODIES[VICTIM]) + 5)
        file.write(b"X")
    (message,) = wait_for("the quarantine", lambda: broker.ask("quarantine_list")["messages"])
    assert message["last_reason"] == "damaged"
    line = broker.wait_line("the journal is damaged")
    assert (line["file"], line["code"]) == (str(path), "JOURNAL_DAMAGED")
    assert broker.ask("status")["journal"]["damaged_blocks"] == 1
    assert "DAMAGE" in cli(broker, "status").stdout
    with Worker(broker, b"jobs", slots=COUNT) as worker:
        assert [worker.take()[1] for _ in NEIGHBOURS] == NEIGHBOURS
