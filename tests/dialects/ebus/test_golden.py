"""The recording of the original programs, played to our broker: what its peers said is understood, and what we answer is what the
original broker answered, but for the differences that docs/reference/ebus.md lists.

The recorded peers cannot react: they say what they said, when they said it. Only the rid is put right in what the worker answers,
for towards workers we use our own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.wire.zmtp.frames import encode_message
from tests.core.harness import End
from tests.dialects.ebus.in_memory import EbusBroker, unpack

RECORDING = Path(__file__).parents[2] / "golden" / "ebus" / "session.jsonl"
LISTENERS = {"frontend": "ebus.client", "backend": "ebus.worker", "pub": "ebus.publish", "sub": "ebus.subscribe"}
# The identity of the recorded worker, as its broker told it to a client.
WORKER_ID = b"W/hello/b72c7ff0-e131-11f1-a80a-8599e7732d30"
CLIENT, WORKER, SECOND_WORKER = ("frontend", 0), ("backend", 0), ("backend", 1)
Key = tuple[str, int]


class Play:
    """The recording, played to a fresh broker."""

    def __init__(self) -> None:
        self.broker = EbusBroker()
        self.ends: dict[Key, End] = {}
        self.recorded: dict[Key, list[list[bytes]]] = {}
        now_s = 0.0
        for line in RECORDING.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            self.broker.pass_time(max(entry["t"] - now_s, 0.0))
            now_s = max(entry["t"], now_s)
            for end in self.ends.values():
                end.hear()
            self.step(entry)

    def step(self, entry: dict[str, Any]) -> None:
        key = (entry["link"], entry["conn"])
        to_broker = entry["to"] == "broker"
        if "socket_type" in entry:
            if to_broker:
                identity = WORKER_ID if key == WORKER else b""
                self.ends[key] = End(self.broker, LISTENERS[key[0]], identity, entry["socket_type"].encode())
        elif "frames" in entry:
            frames = [bytes.fromhex(frame) for frame in entry["frames"]]
            if to_broker:
                self.ends[key].give(encode_message(self.put_right(key, frames)))
            else:
                self.recorded.setdefault(key, []).append(frames)
                self.stop_if_told(frames)
        elif to_broker:
            self.ends[key].leave()

    def put_right(self, key: Key, frames: list[bytes]) -> list[bytes]:
        """The worker's answer under the rid that we gave to the request which the recorded broker gave under that rid."""
        if key != WORKER or frames[1] not in (b"REPLY", b"REJECT"):
            return frames
        theirs = [said[2] for said in self.recorded[key] if said[1] == b"REQ"]
        ours = [said[2] for said in self.ends[key].heard if said[1] == b"REQ"]
        return [*frames[:2], ours[theirs.index(frames[2])], *frames[3:]]

    def stop_if_told(self, frames: list[bytes]) -> None:
        if frames[0] == b"ebus/shutdown":
            self.broker.ebus.closing()

    def heard(self, key: Key) -> list[list[bytes]]:
        self.ends[key].hear()
        return self.ends[key].heard


@pytest.fixture(scope="module")
def play() -> Play:
    return Play()


def without_rid(messages: list[list[bytes]]) -> list[list[bytes]]:
    """What a worker heard, but for signs of life and with the rid, which is ours, taken out."""
    return [[*frames[:2], *frames[3:]] for frames in messages if frames[1] in (b"REQ", b"CANCEL")]


def test_the_recorded_client_receives_what_was_recorded_and_that_its_cancel_was_done(play: Play) -> None:
    heard = play.heard(CLIENT)
    cancelled = [frames for frames in heard if frames[2:4] == [b"REJECT", b"rid-4"]]
    assert [unpack(frames[4]) for frames in cancelled] == ["BY_CLIENT: by client"]
    assert [frames for frames in heard if frames not in cancelled] == play.recorded[CLIENT]


def test_the_recorded_worker_receives_what_was_recorded_under_rids_of_ours(play: Play) -> None:
    assert without_rid(play.heard(WORKER)) == without_rid(play.recorded[WORKER])
    rids = [frames[2] for frames in play.heard(WORKER) if frames[1] == b"REQ"]
    assert len(set(rids)) == len(rids) == 4


def test_each_ping_of_the_recorded_worker_is_answered(play: Play) -> None:
    """Besides, we send HEARTBEAT by ourselves."""
    beat = [b"EBC01", b"HEARTBEAT"]
    assert play.heard(WORKER).count(beat) >= play.recorded[WORKER].count(beat)
    assert {frames[1] for frames in play.heard(WORKER)} == {b"HEARTBEAT", b"REQ", b"CANCEL"}


def test_the_recorded_subscribers_receive_what_was_recorded(play: Play) -> None:
    for key in [("sub", 1), ("sub", 2)]:
        assert play.heard(key) == play.recorded[key], key


def test_that_the_last_worker_left_is_shown_too(play: Play) -> None:
    """The recorded subscriber was leaving itself, so nobody knows whether the original would have said so."""
    *before, last = play.heard(("sub", 0))
    assert before == play.recorded[("sub", 0)]
    assert last[0] == b"ebus/workers"
    assert unpack(last[1]) == {"ebusmessage": "active workers", "workers": []}


def test_recorded_publishers_get_the_empty_subscription_instead_of_each_one(play: Play) -> None:
    for key in [("pub", 0), ("pub", 1), ("pub", 2)]:
        assert play.heard(key) == [[b"\x01"]]


def test_the_broker_stops_with_the_recorded_words(play: Play) -> None:
    assert play.heard(SECOND_WORKER)[-1] == play.recorded[SECOND_WORKER][-1]


def test_nothing_that_the_recorded_peers_sent_was_odd_and_no_request_is_left(play: Play) -> None:
    assert play.broker.facts("noted") == []
    assert play.broker.core.open_messages(4) == []
    assert [fact["reason"] for fact in play.broker.facts("closed")] == [
        "answered", "refused_by_worker", "by_client", "answered", "past_expiry",
    ]  # fmt: skip
