"""Damaged records, as explicit steps."""

from __future__ import annotations

import pytest

from dragoman_lab.sim.steps import Step, play

VERSION = b"eMQP/1.0"
ORDERS: list[Step] = [
    ("connect", "client", "pingpong.client"),
    ("send", "client", b"", b"order 0"),
    ("pause", b"pingpong"),
    *(("send", "client", b"", b"order %d" % n) for n in range(1, 5)),
]


def serve(count: int) -> list[Step]:
    """A plain worker answers as many orders."""
    steps: list[Step] = [("connect", "worker", "pingpong.worker"), ("send", "worker", b"", b"READY"), ("wait", 0.2)]
    for number in range(count):
        steps += [("send", "worker", b"", b"done %d" % number), ("wait", 0.2)]
    return steps


@pytest.mark.parametrize("hit", [b"order 2", b"order 1", b"order 4"])
def test_one_damaged_order_does_not_hold_up_the_answers_behind_it(hit: bytes) -> None:
    """Seeds 94 and 116 of the simulator: answers go in the order of the orders, and nobody knows whose the damaged one was."""
    scene = play([*ORDERS, ("damage", hit), ("resume", b"pingpong"), *serve(4), ("wait", 1)], {"queues.head_max": 1})
    answers = [frames[1:] for frames in scene.received("client")]
    done = [frames for frames in answers if frames[0].startswith(b"done")]
    assert done == [[b"done 0"], [b"done 1"], [b"done 2"], [b"done 3"]]
    assert [fact["reason"] for fact in scene.facts("quarantined")] == ["damaged"]
    if hit != b"order 4":  # behind it nothing waits
        assert [frames[0] for frames in answers if frames not in done] == [b"ERROR"]


def test_forged_bytes_reach_nobody_and_the_neighbours_flow_also_over_a_restart() -> None:
    steps: list[Step] = [
        ("connect", "client", "emqp.client", b"client"),
        *(
            ("send", "client", b"", VERSION, b"REQUEST", b"id%d" % n, b"mail", b"", b"body %d" % n + b"x" * 30_000)
            for n in range(8)
        ),
        ("wait", 2),
        ("damage", b"body 2"),
        ("kill",),
        ("start",),
        ("connect", "worker", "emqp.worker", b"worker"),
        ("send", "worker", b"", VERSION, b"INFORM", b"1", b'[[10,"mail"]]', b"worker", b"bytes"),
        *([("send", "worker", b"", VERSION, b"READY", b"2")] * 8),
        ("wait", 1),
    ]
    scene = play(steps, {"queues.head_max": 1})
    given = [frames[6][:6] for frames in scene.received("worker") if frames[2] == b"REQUEST"]
    assert given == [b"body %d" % n for n in range(8) if n != 2]
    assert len(scene.facts("quarantined")) == 1


def test_an_ebus_client_that_asks_again_is_notified_of_its_damaged_request_by_its_own_rid() -> None:
    """Seeds 2069 and 13677 of the simulator: the record does not tell the rid any more."""
    ask = ("send", "client", b"", b"EBC01", b"REQ", b"mail", b"42", b"data", b"20000")
    steps: list[Step] = [
        ("connect", "client", "ebus.client", b"client"),
        *(("send", "client", b"", b"EBC01", b"REQ", b"mail", b"%d" % n, b"filling", b"20000") for n in range(3)),
        ask,
        ("damage", b"data"),
        ask,
        ("connect", "worker", "ebus.worker", b"worker"),
        ("send", "worker", b"EBW01", b"READY", b"null", b"mail"),
        ("wait", 1),
    ]
    scene = play(steps, {"queues.head_max": 1})
    rejected = [frames[3] for frames in scene.received("client") if frames[2] == b"REJECT"]
    assert rejected == [b"42"]
    assert len([frames for frames in scene.received("worker") if frames[1] == b"REQ"]) == 3
