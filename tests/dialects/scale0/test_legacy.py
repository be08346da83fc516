"""The text forms of the programs that ran, and the recordings of two of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dragoman.model.units import SECOND_NS
from dragoman.wire.zmtp.frames import encode_message
from tests.core.harness import End, InMemoryBroker
from tests.dialects.scale0.in_memory import new_client, new_worker, notes

RECORDINGS = Path(__file__).parents[2] / "golden" / "scale0"
WORKER_ID = b"dba160f6-102a-4800-9a06-602a011a8729"
LISTENERS = {"worker": "scale0.worker", "worker_xrep": "scale0.worker", "pub": "scale0.publish"}


class Play:
    """A recording, played to our broker at the times it was made."""

    def __init__(self, name: str, start_s: float, identity: bytes) -> None:
        self.broker = InMemoryBroker()
        self.broker.pass_time(0.1)
        self.broker.now_ns = int(start_s * SECOND_NS)
        self.broker.core.set_time(self.broker.now_ns)
        self.ends: dict[str, End] = {}
        self.recorded: dict[str, list[list[bytes]]] = {"worker": [], "worker_xrep": [], "pub": []}
        now_s = 0.0
        for line in (RECORDINGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            entry: dict[str, Any] = json.loads(line)
            self.broker.pass_time(entry["t"] - now_s)
            now_s = entry["t"]
            link, is_ours = entry["link"], entry["to"] == "peer"
            if "socket_type" in entry and not is_ours:
                self.ends[link] = End(self.broker, LISTENERS[link], identity, entry["socket_type"].encode())
            elif "frames" in entry:
                frames = [bytes.fromhex(frame) for frame in entry["frames"]]
                if is_ours:
                    self.recorded[link].append(frames)
                else:
                    self.ends[link].give(encode_message(frames))
        for end in self.ends.values():
            end.hear()


def test_the_recorded_first_generation_is_answered_as_recorded() -> None:
    play = Play("g1", 1794774107 - 0.885, b"worker")
    assert play.ends["worker"].heard == play.recorded["worker"] == [[b"PONG", b"1794774107"]]
    assert notes(play.broker) == {}
    assert play.broker.facts("worker_joined") == []


def test_the_recorded_newest_generation_hears_what_the_original_broadcast() -> None:
    play = Play("head", 1794774074.79 - 2.352, WORKER_ID)
    heard, recorded = play.ends["pub"].heard, play.recorded["pub"]
    for_worker = [frames for frames in recorded if frames[0] == WORKER_ID]
    assert [frames for frames in heard if frames[0] == WORKER_ID] == for_worker
    assert len(for_worker) == 5
    pings = [frames for frames in heard if frames[0] == b"PING"]
    assert len(pings) in range(5, 7)
    assert {len(frames) for frames in pings} == {2}
    assert all(abs(float(stamp) - 1794774075) < 6 for _, stamp in pings)
    assert play.ends["worker_xrep"].heard == []
    assert notes(play.broker) == {}
    assert play.broker.facts("worker_joined") == []


def test_the_second_generation_is_answered_directly_and_pinged() -> None:
    broker = InMemoryBroker()
    worker = new_worker(broker)
    worker.say(b"READY", b"tcp://127.0.0.1:9080 test")
    assert worker.hear() == [[b"OK", b""]]
    worker.say(b"HEARTBEAT", b"1700000000.5")
    assert worker.hear() == [[b"HEARTBEAT", b"1700000000.5"]]
    broker.pass_time(2.0)
    pings = worker.hear()
    assert [command for command, _ in pings] == [b"PING", b"PING"]
    worker.say(b"PONG", pings[-1][1])
    assert worker.hear() == []


def test_no_legacy_worker_ever_enters_the_line() -> None:
    broker = InMemoryBroker()
    workers = [new_worker(broker, b"w%d" % n) for n in range(3)]
    workers[0].say(b"PING", b"tcp://127.0.0.1:9080 mail 1700000000")
    workers[1].say(b"READY", b"tcp://127.0.0.1:9080 mail")
    workers[2].say(b"READY", b"mail")
    client = new_client(broker)
    client.task(1)
    broker.pass_time(3)
    assert not any(frames[0] == b"TASK" for worker in workers for frames in worker.hear())


def test_a_one_token_ping_is_an_echo_and_goes_unanswered() -> None:
    broker = InMemoryBroker()
    worker = new_worker(broker)
    worker.say(b"PING", b"1794774074.79")
    assert worker.hear() == []
    assert notes(broker) == {}


def test_legacy_peers_are_neither_sent_configurations_nor_sent_away() -> None:
    broker = InMemoryBroker()
    worker = new_worker(broker)
    worker.say(b"READY", b"tcp://127.0.0.1:9080 test")
    worker.hear()
    broker.dialects.scale0.settings.heartbeat_ns = SECOND_NS
    broker.dialects.scale0.reconfigured()
    broker.dialects.scale0.draining()
    assert worker.hear() == []


def test_a_subscriber_hears_only_what_it_subscribed_to() -> None:
    broker = InMemoryBroker()
    listener = End(broker, "scale0.publish", b"", b"SUB")
    listener.give(encode_message([b"\x01w1"]))
    for name in (b"w1", b"w2"):
        new_worker(broker, name).say(b"READY", b"test")
    broker.pass_time(1.5)
    listener.hear()
    assert listener.heard == [[b"w1", b"OK"]]
    listener.give(encode_message([b"\x00w1"]))
    new_worker(broker, b"w1").say(b"READY", b"test")
    listener.hear()
    assert len(listener.heard) == 1


def test_what_is_broadcast_here_is_no_topic_of_other_dialects() -> None:
    broker = InMemoryBroker()
    reader = End(broker, "emqp.subscribe", b"", b"SUB")
    reader.give(encode_message([b"\x01"]))
    broker.pass_time(3)
    reader.hear()
    assert reader.heard == []
