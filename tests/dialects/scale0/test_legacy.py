"""The text forms of the programs that ran, and the recordings of two of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dragoman.model.units import SECOND_NS
from dragoman.wire.zmtp.frames import encode_message
from tests.core.harness import End, House
from tests.dialects.scale0.stall import client, notes, worker

RECORDINGS = Path(__file__).parents[2] / "golden" / "scale0"
WORKER_ID = b"dba160f6-102a-4800-9a06-602a011a8729"
LISTENERS = {"worker": "scale0.worker", "worker_xrep": "scale0.worker", "pub": "scale0.publish"}


class Play:
    """A recording, played to our broker at the times it was made."""

    def __init__(self, name: str, start_s: float, identity: bytes) -> None:
        self.house = House()
        self.house.pass_time(0.1)
        self.house.now_ns = int(start_s * SECOND_NS)
        self.house.core.set_time(self.house.now_ns)
        self.ends: dict[str, End] = {}
        self.recorded: dict[str, list[list[bytes]]] = {"worker": [], "worker_xrep": [], "pub": []}
        now_s = 0.0
        for line in (RECORDINGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            entry: dict[str, Any] = json.loads(line)
            self.house.pass_time(entry["t"] - now_s)
            now_s = entry["t"]
            link, is_ours = entry["link"], entry["to"] == "peer"
            if "socket_type" in entry and not is_ours:
                self.ends[link] = End(self.house, LISTENERS[link], identity, entry["socket_type"].encode())
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
    assert notes(play.house) == {}
    assert play.house.facts("worker_joined") == []


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
    assert notes(play.house) == {}
    assert play.house.facts("worker_joined") == []


def test_the_second_generation_is_answered_directly_and_pinged() -> None:
    house = House()
    servant = worker(house)
    servant.say(b"READY", b"tcp://127.0.0.1:9080 test")
    assert servant.hear() == [[b"OK", b""]]
    servant.say(b"HEARTBEAT", b"1700000000.5")
    assert servant.hear() == [[b"HEARTBEAT", b"1700000000.5"]]
    house.pass_time(2.0)
    pings = servant.hear()
    assert [command for command, _ in pings] == [b"PING", b"PING"]
    servant.say(b"PONG", pings[-1][1])
    assert servant.hear() == []


def test_no_legacy_worker_ever_enters_the_line() -> None:
    house = House()
    servants = [worker(house, b"w%d" % n) for n in range(3)]
    servants[0].say(b"PING", b"tcp://127.0.0.1:9080 mail 1700000000")
    servants[1].say(b"READY", b"tcp://127.0.0.1:9080 mail")
    servants[2].say(b"READY", b"mail")
    master = client(house)
    master.task(1)
    house.pass_time(3)
    assert not any(frames[0] == b"TASK" for servant in servants for frames in servant.hear())


def test_a_one_token_ping_is_an_echo_and_goes_unanswered() -> None:
    house = House()
    servant = worker(house)
    servant.say(b"PING", b"1794774074.79")
    assert servant.hear() == []
    assert notes(house) == {}


def test_legacy_peers_are_neither_sent_configurations_nor_sent_away() -> None:
    house = House()
    servant = worker(house)
    servant.say(b"READY", b"tcp://127.0.0.1:9080 test")
    servant.hear()
    house.dialects.scale0.settings.heartbeat_ns = SECOND_NS
    house.dialects.scale0.reconfigured()
    house.dialects.scale0.draining()
    assert servant.hear() == []


def test_a_subscriber_hears_only_what_it_subscribed_to() -> None:
    house = House()
    listener = End(house, "scale0.publish", b"", b"SUB")
    listener.give(encode_message([b"\x01w1"]))
    for name in (b"w1", b"w2"):
        worker(house, name).say(b"READY", b"test")
    house.pass_time(1.5)
    listener.hear()
    assert listener.heard == [[b"w1", b"OK"]]
    listener.give(encode_message([b"\x00w1"]))
    worker(house, b"w1").say(b"READY", b"test")
    listener.hear()
    assert len(listener.heard) == 1


def test_what_is_broadcast_here_is_no_topic_of_other_dialects() -> None:
    house = House()
    reader = End(house, "emqp.subscribe", b"", b"SUB")
    reader.give(encode_message([b"\x01"]))
    house.pass_time(3)
    reader.hear()
    assert reader.heard == []
