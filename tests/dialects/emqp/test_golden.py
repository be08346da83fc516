"""Recordings of the original programs, played to our broker: what the peers said is understood, and what we answer is what the
original broker answered, but for the differences that docs/reference/emqp.md lists.

The recorded peers cannot react: they say what they said, at the time they said it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dragoman.dialects.emqp.settings import EmqpSettings
from dragoman.wire.zmtp.frames import encode_message
from tests.core.harness import End, InMemoryBroker

RECORDINGS = Path(__file__).parents[2] / "golden" / "emqp"
LISTENERS = {
    "backend": "emqp.worker",
    "frontend": "emqp.client",
    "admin": "emqp.admin",
    "pubin": "emqp.publish",
    "pubout": "emqp.subscribe",
}
WORKER, SCHEDULER, CLIENT, ADMIN, SUBSCRIBER = (
    ("backend", 0),
    ("frontend", 0),
    ("frontend", 1),
    ("admin", 0),
    ("pubout", 0),
)
# A request for a queue nobody serves: the original gives it to a worker of `default`, here it waits.
STRAY = b"38fd81f3-b0c9-4880-80a8-41d6fe9831cd"


class Play:
    """One recording, played to a fresh broker."""

    def __init__(self, name: str, is_scheduler_external: bool) -> None:
        settings = EmqpSettings()
        settings.external_scheduler = is_scheduler_external
        settings.remote_stop = True  # as the original
        self.broker = InMemoryBroker(emqp_settings=settings)
        self.ends: dict[tuple[str, int], End] = {}
        self.recorded: dict[tuple[str, int], list[list[bytes]]] = {}
        self.said: dict[tuple[str, int], list[list[bytes]]] = {}
        now_s = 0.0
        for line in (RECORDINGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            self.broker.pass_time(max(entry["t"] - now_s, 0.0))
            now_s = max(entry["t"], now_s)
            self.step(entry)
        for end in self.ends.values():
            end.hear()

    def step(self, entry: dict[str, Any]) -> None:
        key = (entry["link"], entry["conn"])
        to_broker = entry["to"] == "broker"
        if "socket_type" in entry:
            if to_broker:
                identity = f"{key[0]}-{key[1]}".encode()
                self.ends[key] = self.broker.connect(LISTENERS[key[0]], identity, entry["socket_type"].encode())
        elif "frames" in entry:
            frames = [bytes.fromhex(frame) for frame in entry["frames"]]
            (self.said if to_broker else self.recorded).setdefault(key, []).append(frames)
            if to_broker:
                self.ends[key].give(encode_message(frames))
                self.stop_if_asked()
        elif to_broker:
            self.ends[key].hear()
            self.ends[key].leave()

    def stop_if_asked(self) -> None:
        """A stopping broker says goodbye, as the runtime has it do."""
        if self.broker.outboxes.stop_requested:
            self.broker.outboxes.stop_requested = False
            for session in list(self.broker.emqp.sessions.values()):
                session.say_goodbye()

    def heard(self, key: tuple[str, int], command: bytes) -> list[list[bytes]]:
        return [frames for frames in self.ends[key].heard if frames[2] == command]

    def shown(self, key: tuple[str, int], command: bytes) -> list[list[bytes]]:
        return [frames for frames in self.recorded[key] if frames[2] == command]


def without_own_id(messages: list[list[bytes]]) -> list[list[bytes]]:
    """The broker's own message ids differ from run to run."""
    return [frames[:3] + frames[4:] for frames in messages]


def results_of(play: Play, asker: tuple[str, int]) -> list[list[bytes]]:
    """Value and id of every answer the worker gave to a request of this peer that asked for one."""
    asked = {m[3] for m in play.said[asker] if m[2] == b"REQUEST" and b"reply-requested" in m[5]}
    return [m[4:] for m in play.said[WORKER] if m[2] == b"REPLY" and m[5] in asked]


def test_everything_the_recorded_peers_sent_is_understood_but_hello() -> None:
    for name, oddities in (("session", [("EMQP_UNKNOWN_COMMAND", 1)]), ("lifecycle", [])):
        for is_external in (True, False):
            play = Play(name, is_external)
            noted = [(fact["code"], fact["count"]) for fact in play.broker.facts("noted")]
            assert noted + list(play.broker.core.notes.items()) == oddities
            if is_external:  # else two schedulers work, and the recorded worker has too few slots for both
                assert play.broker.facts("late") == []


def test_every_message_to_a_recorded_peer_has_a_shape_that_the_recording_shows() -> None:
    play = Play("session", True)
    shapes = {(frames[2], len(frames)) for key in play.recorded if key != SUBSCRIBER for frames in play.recorded[key]}
    shapes.add((b"REPLY", 6))  # the result, which the original never returns
    for key, end in play.ends.items():
        if key != SUBSCRIBER:
            assert {(frames[2], len(frames)) for frames in end.heard} <= shapes
            assert all(frames[:2] == [b"", b"eMQP/1.0"] for frames in end.heard)


def test_the_worker_gets_the_recorded_requests_with_reply_requested_and_not_the_stray_one() -> None:
    play = Play("session", True)
    expected = []
    for frames in play.shown(WORKER, b"REQUEST"):
        if frames[3] != STRAY:
            expected.append([*frames[:5], frames[5] or b"reply-requested", frames[6]])
    assert play.heard(WORKER, b"REQUEST") == expected
    assert len(expected) == 9
    assert play.broker.core.state.queues[b"nosuchqueue"].waiting == 1


def test_the_client_hears_every_recorded_hand_over_but_the_strays_and_its_results() -> None:
    play = Play("session", True)
    recorded = [frames[4:] for frames in play.shown(CLIENT, b"REPLY")]
    heard = [frames[4:] for frames in play.heard(CLIENT, b"REPLY")]
    assert [said for said in heard if len(said) == 1] == [said for said in recorded if said != [STRAY]]
    assert [said for said in heard if len(said) == 2] == results_of(play, CLIENT)
    assert [value for value, _ in results_of(play, CLIENT)] == [
        b'{"value": 6}',
        b'{"value": "kaboom"}',
        b'{"value": ["cx", "yy"]}',
    ]


def test_ack_is_followed_at_once_by_the_heartbeat_that_the_original_sends_two_seconds_later() -> None:
    play = Play("session", True)
    for key in (WORKER, SCHEDULER):
        assert without_own_id(play.heard(key, b"ACK")) == without_own_id(play.shown(key, b"ACK"))
        assert [frames[2] for frames in play.ends[key].heard[:2]] == [b"ACK", b"HEARTBEAT"]


def test_the_external_scheduler_is_forwarded_the_recorded_schedules_and_its_requests_are_answered() -> None:
    play = Play("session", True)
    for command in (b"SCHEDULE", b"UNSCHEDULE"):
        assert play.heard(SCHEDULER, command) == play.shown(SCHEDULER, command)
        assert play.shown(SCHEDULER, command)
    heard = [frames[4:] for frames in play.heard(SCHEDULER, b"REPLY")]
    assert [said for said in heard if len(said) == 1] == [m[4:] for m in play.shown(SCHEDULER, b"REPLY")]
    assert [said for said in heard if len(said) == 2] == results_of(play, SCHEDULER)


def test_goodbye_and_the_acknowledged_stop_are_as_recorded() -> None:
    play = Play("session", True)
    for key, command in ((WORKER, b"KBYE"), (SCHEDULER, b"KBYE"), (ADMIN, b"ACK")):
        assert without_own_id(play.heard(key, command)) == without_own_id(play.shown(key, command))
        assert len(play.shown(key, command)) == 1


def test_the_subscriber_gets_the_recorded_news() -> None:
    play = Play("session", True)
    assert play.ends[SUBSCRIBER].heard == play.recorded[SUBSCRIBER] == [[b"topic", b'["update", "1"]']]


def test_the_admin_gets_json_of_the_recorded_shape() -> None:
    play = Play("session", True)
    heard = [json.loads(frames[4]) for frames in play.heard(ADMIN, b"REPLY")]
    shown = [json.loads(frames[4]) for frames in play.shown(ADMIN, b"REPLY")]
    assert [sorted(table) for table in heard] == [sorted(table) for table in shown]
    ((_, worker),) = heard[1]["connected_workers"].items()
    ((_, recorded),) = shown[1]["connected_workers"].items()
    assert sorted(worker) == sorted(recorded)
    assert worker["queues"] == recorded["queues"]
    assert sorted(heard[1]["connected_queues"]) == sorted(shown[1]["connected_queues"])
    ((_, scheduler),) = heard[2]["connected_schedulers"].items()
    assert sorted(scheduler) == ["hb"]


def test_the_built_in_scheduler_fires_the_recorded_schedules_as_often_as_the_external_one_did() -> None:
    """The external one's own requests are in the recording too: count what the broker made itself."""
    play = Play("session", False)
    fired = [fact["schedule_no"] for fact in play.broker.facts("fired")]
    every_2_s, cron_with_nohaste, twice = [fact["schedule_no"] for fact in play.broker.facts("scheduled")]
    assert fired.count(every_2_s) == 3
    assert fired.count(cron_with_nohaste) == 0
    assert fired.count(twice) == 2
    assert play.broker.core.state.schedules == {}
    assert play.heard(SCHEDULER, b"SCHEDULE") == []


def test_the_recorded_manager_that_lost_its_broker_is_lost_after_five_seconds_and_rejoins_on_a_new_connection() -> None:
    play = Play("lifecycle", True)
    before, after = play.ends["backend", 0], play.ends["backend", 1]
    assert [frames[2] for frames in before.heard if frames[2] != b"HEARTBEAT"] == [b"ACK", b"DISCONNECT"]
    assert [frames[2] for frames in after.heard if frames[2] != b"HEARTBEAT"] == [b"ACK"]
    left = [fact["reason"] for fact in play.broker.facts("worker_left")]
    assert left == ["heartbeat_lost", "worker_left"], "the second said KBYE before its connection ended"
