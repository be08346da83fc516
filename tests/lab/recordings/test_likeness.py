"""What may differ between a recording and a replay, and what may not."""

from __future__ import annotations

import pytest

from dragoman_lab.recordings.likeness import Likeness, is_life_sign, operations_of

OLD = b"11111111-2222-4333-a444-555555555555"
NEW = b"99999999-8888-4777-a666-555555555555"


@pytest.mark.parametrize(
    "frames",
    [
        [b"", b"PONG"],
        [b"", b"eMQP/1.0", b"HEARTBEAT", OLD, b"1700000000.5"],
        [b'{"status":"PONG"}'],
        [b"PONG", b"1794774107"],
    ],
)
def test_signs_of_life_are_known(frames: list[bytes]) -> None:
    assert is_life_sign(frames)


@pytest.mark.parametrize("frames", [[b"", b"job"], [b'{"status":"WORK"}'], [b"", b"eMQP/1.0", b"REPLY", b"PING"]])
def test_other_messages_are_none(frames: list[bytes]) -> None:
    assert not is_life_sign(frames)


def test_ids_of_the_brokers_choosing_may_differ_and_are_replaced() -> None:
    likeness = Likeness()
    assert likeness.is_like([b"", b"WORK", OLD], [b"", b"WORK", NEW])
    assert likeness.to_say([b"DONE", OLD]) == [b"DONE", NEW]
    assert likeness.to_say([b'{"token":"%s"}' % OLD]) == [b'{"token":"%s"}' % NEW]


def test_an_id_that_a_peer_chose_must_come_back_as_it_was() -> None:
    likeness = Likeness()
    likeness.to_say([b"REQUEST", OLD])
    assert not likeness.is_like([b"REPLY", OLD], [b"REPLY", NEW])
    assert likeness.is_like([b"REPLY", OLD], [b"REPLY", OLD])


def test_tokens_and_marks_are_ids_too() -> None:
    likeness = Likeness()
    old, new = b"0" * 31 + b"a", b"f" * 32
    assert likeness.is_like([b'{"token":"%s","job":1}' % old], [b'{"token":"%s","job":1}' % new])
    assert likeness.is_like([b"\x00abcd"], [b"\x00wxyz"])
    assert likeness.to_say([b"\x00abcd"]) == [b"\x00wxyz"]


def test_the_rid_and_the_time_left_of_an_ebus_request_are_the_brokers() -> None:
    likeness = Likeness()
    assert likeness.is_like([b"EBC01", b"REQ", b"17", b"data", b"2990"], [b"EBC01", b"REQ", b"5", b"data", b"2985"])
    assert likeness.to_say([b"EBW01", b"REPLY", b"17", b"17"]) == [b"EBW01", b"REPLY", b"5", b"17"]
    assert likeness.to_say([b"", b"EBC01", b"CANCEL", b"hello", b"17"])[-1] == b"17", "a client's rid is its own"
    assert not likeness.is_like([b"EBC01", b"REQ", b"17", b"data", b"1"], [b"EBC01", b"REQ", b"5", b"other", b"1"])
    assert not likeness.is_like([b"", b"EBW01", b"REPLY", b"17", b""], [b"", b"EBW01", b"REPLY", b"5", b""])


def test_instants_may_differ() -> None:
    likeness = Likeness()
    assert likeness.is_like([b"PONG 1794774107", b"1.5"], [b"PONG 1800000000", b"1.5"])
    assert likeness.is_like([b'{"at":1700000000.25}'], [b'{"at":1800000001.75}'])


@pytest.mark.parametrize(
    ("recorded", "heard"),
    [
        ([b"a"], [b"b"]),
        ([b"a"], [b"a", b""]),
        ([OLD], [b"no id"]),
        ([OLD], [b"1794774107"]),
        ([b"x" + OLD], [b"y" + NEW]),
    ],
)
def test_anything_else_is_a_difference(recorded: list[bytes], heard: list[bytes]) -> None:
    assert not Likeness().is_like(recorded, heard)


def test_rq_operations_are_compared_whatever_the_order_of_their_parameters() -> None:
    likeness = Likeness()
    (recorded,) = operations_of(bytes.fromhex("01600001e00000000568656c6c6f80000000000a"))[0]
    (other,) = operations_of(bytes.fromhex("018000000009600004e00000000568656c6c6f0a"))[0]
    assert likeness.is_like_operation("worker", recorded, other)
    said = likeness.risp_to_say("worker", bytes.fromhex("0180000000000d"))
    assert said == bytes.fromhex("0180000000090d"), "the id of this run"


def test_an_rq_client_gets_its_own_id_back() -> None:
    likeness = Likeness()
    likeness.risp_to_say("client", bytes.fromhex("018000000007a0046a6f6273e0000000010a0a"))
    (recorded,) = operations_of(bytes.fromhex("0180000000070d"))[0]
    (other,) = operations_of(bytes.fromhex("0180000000080d"))[0]
    assert likeness.is_like_operation("client", recorded, recorded)
    assert not likeness.is_like_operation("client", recorded, other)


def test_rq_signs_of_life_are_no_operations_and_what_is_cut_short_waits() -> None:
    operations, rest = operations_of(bytes.fromhex("0506" + "0180000000070d" + "01800000"))
    assert len(operations) == 1
    assert rest == bytes.fromhex("01800000")
