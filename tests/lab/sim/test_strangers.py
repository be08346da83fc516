"""Old peers and peers that are none, as explicit steps."""

from __future__ import annotations

from random import Random

import pytest

from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message
from dragoman_lab.sim.machine.legacy import LegacyEnd
from dragoman_lab.sim.peers.rude import DOOMED_RISP, DOOMED_ZMTP, LISTENERS
from dragoman_lab.sim.steps import Scene, Step, play

VERSION = b"eMQP/1.0"
FRAMES = [b"", b"short", b"x" * 254, b"y" * 255, b"z" * 70_000]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_an_old_end_and_the_codec_understand_each_other_however_the_bytes_are_cut(version: int, piece: int) -> None:
    ours, theirs = ZmtpConnection(b"ROUTER"), LegacyEnd(version, b"DEALER", b"old")
    to_old, to_ours = ours.greeting(), theirs.greeting() + theirs.encode(FRAMES)
    heard: list[list[bytes]] = []
    for at in range(0, len(to_ours), piece):
        heard += ours.receive(to_ours[at : at + piece])
        to_old += ours.take_outgoing()
    assert (ours.is_ready, ours.peer_identity, heard) == (True, b"old", [FRAMES])
    to_old += encode_message(FRAMES, ours.is_v1)
    answered: list[list[bytes]] = []
    for at in range(0, len(to_old), piece):
        answered += theirs.receive(to_old[at : at + piece])
    assert (theirs.is_ready, answered) == (True, [FRAMES])


@pytest.mark.parametrize(("client", "worker"), [(1, 1), (1, 2), (2, 1), (3, 2), (2, 3)])
def test_scale0_peers_of_any_age_serve_each_other(client: int, worker: int) -> None:
    scene = play([
        ("connect", "worker", "scale0.worker", b"w", b"DEALER", worker),
        ("send", "worker", b"PING", b'{"services": ["mail"], "heartbeat_interval": 10}'),
        ("connect", "client", "scale0.client", b"c", b"DEALER", client),
        ("send", "client", b"TASK", b'{"id": "7", "service": "mail"}', b"x" * 300),
        ("wait", 0.1),
    ])  # fmt: skip
    task = next(frames for frames in scene.received("worker") if frames[0] == b"TASK")
    assert task[2] == b"x" * 300
    scene.play([("send", "worker", b"TASKREPLY", task[1], b"y" * 300), ("wait", 0.1)])
    assert [frames[2] for frames in scene.received("client") if frames[0] == b"TASKREPLY"] == [b"y" * 300]


@pytest.mark.parametrize(("listener", "version", "is_taken"), [("emqp.client", 1, False), ("emqp.client", 2, True)])
def test_zmtp_1_0_is_taken_only_where_it_is_allowed(listener: str, version: int, is_taken: bool) -> None:
    scene = play([("connect", "old", listener, b"old", b"DEALER", version), ("wait", 1)])
    assert scene.peers["old"].is_lost is not is_taken


def served(scene: Scene) -> None:
    """A request goes through."""
    steps: list[Step] = [
        ("connect", "good", "emqp.worker", b"good"),
        ("send", "good", b"", VERSION, b"INFORM", b"1", b'[[10,"mail"]]', b"worker", b"bytes"),
        ("send", "good", b"", VERSION, b"READY", b"2"),
        ("connect", "client", "emqp.client", b"client"),
        ("send", "client", b"", VERSION, b"REQUEST", b"r", b"mail", b"reply-requested", b"{}"),
        ("send", "good", b"", VERSION, b"REPLY", b"3", b'{"value": 1}', b"r"),
    ]
    scene.play(steps)
    assert [frames[5] for frames in scene.received("client") if len(frames) == 6] == [b"r"]


@pytest.mark.parametrize("listener", LISTENERS)
def test_what_cannot_be_a_peer_is_cut_off_and_others_are_served(listener: str) -> None:
    for seed in range(12):
        chance = Random(seed)
        scene = play([], {"limits.handshake_s": 2})
        for number, kind in enumerate((DOOMED_RISP if listener == "rq" else DOOMED_ZMTP).values()):
            data = kind(chance)
            scene.play([("open", f"none{number}", listener), ("bytes", f"none{number}", data)])
        served(scene)
        scene.play([("wait", 4)])
        left = [name for name, peer in scene.peers.items() if name.startswith("none") and not peer.is_lost]
        assert left == [], f"{listener}, seed {seed}"
