"""Recordings of the original programs, played to our broker: what the nodes said is understood, and what we answer is what the
original controller answered, but for the differences below, which docs/reference/rq.md tells of.

The recorded nodes cannot react: they say what they said, at the time they said it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.core.harness import InMemoryBroker
from tests.dialects.rq.nodes import Node, notes
from tests.dialects.rq.spelling import risp, spelt

RECORDINGS = Path(__file__).parents[2] / "golden" / "rq"
CLOSING = b"\x01\x16"
NAMES = sorted(path.stem for path in RECORDINGS.glob("*.jsonl"))
BEGIN_S = 0.4  # when those were connected that the recording shows only as listeners
END_S = 5.0  # time given to the broker after the last line
JOB = "QUEUEID=1 PAYLOAD=r ID=0 REQUEST"
CONSUMING = "QUEUEID=1 QUEUE=q CONSUMING"

# What the recordings do not show: a connection that ended without a word, the source of a request on another connection.
DEPARTURES = {"consumer_dies": ("worker", 0.9), "consumer_dies_undelivered": ("worker", 1.0)}
SOURCES = {"librq_federation": (1.9, "CLEAR ID=9 QUEUE=q1 PAYLOAD=fed REQUEST")}

# What a node hears here where the recording differs.
DIFFERENCES: dict[str, dict[str, list[str]]] = {
    # The original aborts; here it is served.
    "broadcast": {"worker": [CONSUMING, "QUEUEID=1 PAYLOAD=all BROADCAST"]},
    "queueid_unknown": {"client": ["ID=1 UNDELIVERED"]},
    "reply_without_delivered": {"client": ["ID=5 DELIVERED", "ID=5 PAYLOAD=ok REPLY"]},
    "timeout_": {"client": ["ID=5 UNDELIVERED"]},
    # The original returns 16 bits of an id, and aborts on 2^31.
    "large_id": {
        "worker": [CONSUMING, JOB, JOB],
        "client": ["ID=40000 DELIVERED", "ID=40000 PAYLOAD=z REPLY", "ID=2147483649 DELIVERED"],
    },
    # The original forgets what a dead consumer held, and says nothing of what one gave back.
    "consumer_dies_undelivered": {"w2": [CONSUMING, JOB]},
    "undelivered_from_consumer": {"client": ["ID=5 UNDELIVERED"]},
    # The original does not close, and still answers PING; here the connection has ended by then.
    "closing": {"worker": [CONSUMING]},
    # Its source is ours.
    "librq_federation": {"source": ["ID=9 DELIVERED", "ID=9 PAYLOAD=ok REPLY"]},
}


class Play:
    """One recording, played to a fresh broker."""

    def __init__(self, name: str) -> None:
        self.broker = InMemoryBroker()
        self.nodes: dict[str, Node] = {}
        self.heard: dict[str, list[str]] = {}
        self.recorded: dict[str, list[str]] = {}
        self.now_s = 0.0
        lines = (RECORDINGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        entries = [entry for entry in map(json.loads, lines) if "note" not in entry]
        happenings = [(entry["t"], entry["conn"], entry["to"], entry.get("bytes", "")) for entry in entries]
        if name in DEPARTURES:
            conn, at_s = DEPARTURES[name]
            happenings.append((at_s, conn, "broker", ""))
        if name in SOURCES:
            at_s, text = SOURCES[name]
            happenings.append((at_s, "source", "broker", risp(text).hex()))
        first = happenings[0]
        if first[2] == "peer":
            happenings.append((BEGIN_S, first[1], "nobody", ""))
        for at_s, conn, to, data in sorted(happenings, key=lambda happening: happening[0]):
            self.pass_time(at_s - self.now_s)
            self.step(conn, to, bytes.fromhex(data))
        self.pass_time(END_S)

    def step(self, conn: str, to: str, data: bytes) -> None:
        if conn not in self.nodes:
            self.nodes[conn] = Node(self.broker)
            self.heard[conn] = []
            self.recorded[conn] = []
        node = self.nodes[conn]
        if to == "broker" and node.is_ended_by_us():
            return
        if to == "broker" and data:
            node.give(data)
            self.broker.go_on()
        elif to == "broker":
            self.listen()
            node.leave()
        elif data:
            self.recorded[conn] += spelt(data)
            if data == CLOSING:
                self.broker.dialects.rq.draining()
        self.listen()

    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        self.broker.pass_time(seconds)
        self.listen()

    def listen(self) -> None:
        for conn, node in self.nodes.items():
            self.heard[conn] += node.hears()


def test_there_is_a_recording_of_everything_the_page_tells_of() -> None:
    assert len(NAMES) == 23
    assert set(DIFFERENCES) | set(DEPARTURES) | set(SOURCES) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_recorded_nodes_receive_what_the_original_sent_but_for_the_listed_differences(name: str) -> None:
    play = Play(name)
    assert play.heard == play.recorded | DIFFERENCES.get(name, {})
    assert notes(play.broker) == {}
