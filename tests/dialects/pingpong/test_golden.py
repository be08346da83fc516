"""Recordings of the original programs, played to our broker: what the peers said is understood, and what we say is what the
original broker said, but for the ids it chose and, with a package worker whose form is not known yet, the shape of the first job.

The recorded peers cannot react: they say what they said, at the time they said it. Only the id that a result brings back is ours.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dragoman.dialects.pingpong.commands import JSON, PACKAGE
from dragoman.wire.zmtp.frames import encode_message
from tests.dialects.pingpong.in_memory import PONG, FakeClient, FakePeer, FakeWorker, PingpongBroker

RECORDINGS = Path(__file__).parents[2] / "golden" / "pingpong"
JSON_PONG = [b'{"status":"PONG"}']


class Play:
    """One recording, played to a fresh broker; `said` and `recorded` are by link."""

    def __init__(self, name: str, form: int = 0) -> None:
        self.broker = PingpongBroker()
        self.broker.pingpong.settings.form = form
        self.ends: dict[str, FakePeer] = {}
        self.recorded: dict[str, list[list[bytes]]] = {"backend": [], "frontend": []}
        now_s = 0.0
        for line in (RECORDINGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            self.broker.pass_time(max(entry["t"] - now_s, 0.0))
            now_s = max(entry["t"], now_s)
            self.step(entry["link"], entry)
        for end in self.ends.values():
            end.hear()

    def step(self, link: str, entry: dict[str, Any]) -> None:
        if link not in self.ends:
            self.ends[link] = FakeWorker(self.broker) if link == "backend" else FakeClient(self.broker)
        if "frames" in entry:
            frames = [bytes.fromhex(frame) for frame in entry["frames"]]
            if entry["to"] == "peer":
                self.recorded[link].append(frames)
            else:
                self.ends[link].give(encode_message(self.with_our_id(frames)))

    def with_our_id(self, frames: list[bytes]) -> list[bytes]:
        """A result brings back the id that came with its job."""
        backend = self.ends.get("backend")
        if backend is None:
            return frames
        backend.hear()
        job = [said for said in backend.heard if said not in (PONG, JSON_PONG)][-1:]
        if frames[1:2] == [b"JOB COMPLETE"] and job and len(job[0]) == 5:
            return [*frames[:2], job[0][2], *frames[3:]]
        if len(frames) == 1 and b'"SUCCESS"' in frames[0] and job:
            return [json.dumps(json.loads(frames[0]) | {"token": json.loads(job[0][0])["token"]}).encode()]
        return frames

    def said(self, link: str) -> list[list[bytes]]:
        return self.ends[link].heard


def pongs(messages: list[list[bytes]]) -> int:
    return sum(frames in (PONG, JSON_PONG) for frames in messages)


def others(messages: list[list[bytes]]) -> list[list[bytes]]:
    return [frames for frames in messages if frames not in (PONG, JSON_PONG)]


def without_ids(messages: list[list[bytes]]) -> list[object]:
    """Jobs without the id that the broker chose."""
    found: list[object] = []
    for frames in others(messages):
        if len(frames) == 1:
            found.append({key: value for key, value in json.loads(frames[0]).items() if key != "token"})
        else:
            found.append([*frames[:2], *frames[3:]])
    return found


def test_the_plain_generation_is_answered_pong_by_pong() -> None:
    play = Play("strings")
    assert play.said("backend") == play.recorded["backend"]
    assert pongs(play.said("backend")) == 9


def test_the_package_generation_with_its_form_fixed_receives_what_was_recorded() -> None:
    play = Play("package", PACKAGE)
    assert without_ids(play.said("backend")) == without_ids(play.recorded["backend"])
    assert pongs(play.said("backend")) == pongs(play.recorded["backend"])
    assert play.said("frontend") == play.recorded["frontend"]


def test_the_package_generation_is_recognised_by_its_first_result() -> None:
    play = Play("package")
    said, recorded = others(play.said("backend")), others(play.recorded["backend"])
    assert said[0] == recorded[0][:2], "plain, for the worker has only said READY and PING"
    assert without_ids(said[1:]) == without_ids(recorded[1:])
    assert play.said("frontend") == play.recorded["frontend"]


def test_the_json_generation_receives_what_was_recorded() -> None:
    for form in (0, JSON):
        play = Play("json", form)
        assert without_ids(play.said("backend")) == without_ids(play.recorded["backend"])
        assert pongs(play.said("backend")) == pongs(play.recorded["backend"])
        assert play.said("frontend") == play.recorded["frontend"]
        tokens = [json.loads(frames[0])["token"] for frames in others(play.said("backend"))]
        assert len(set(tokens)) == len(tokens) == 2
        assert {len(token) for token in tokens} == {32}
