"""Peers of ZMTP 2.0 (libzmq 3.2) and 1.0 (libzmq 2.x), by the bytes they send."""

from __future__ import annotations

import pytest

from dragoman.errors import BadFrameSize, IdentityTooLong, MessageTooLarge
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message
from tests.wire.zmtp.dialogue import SIGNATURE, cuts, hear, opened, opening


def test_a_1_0_peer_without_identity_is_met_at_its_second_byte() -> None:
    connection = ZmtpConnection(b"ROUTER")
    assert connection.receive(b"\x01") == []
    assert not connection.is_ready
    assert connection.receive(b"\x00") == []
    assert connection.is_ready
    assert connection.is_v1
    assert (connection.peer_version, connection.peer_socket_type, connection.peer_identity) == (1, b"", b"")


def test_a_1_0_peer_gets_the_rest_of_the_identity_frame_it_thinks_we_began() -> None:
    connection = ZmtpConnection(b"DEALER", identity=b"me")
    _, outgoing, _ = hear(connection, [b"\x01\x00"])
    assert connection.greeting() + outgoing == b"\xff\0\0\0\0\0\0\0\x03\x7fme"


@pytest.mark.parametrize("size", [1, 252, 253, 254, 255])
def test_a_1_0_identity_of_any_length_is_reported(size: int) -> None:
    identity = b"i" * size
    connection = ZmtpConnection(b"ROUTER")
    connection.receive(encode_message([identity], is_v1=True))
    assert connection.peer_identity == identity


@pytest.mark.parametrize("version", [1, 2])
def test_an_identity_beyond_255_bytes_is_refused_before_it_is_kept(version: int) -> None:
    connection = ZmtpConnection(b"ROUTER")
    stream = opening(version, b"DEALER", b"i" * 256)
    with pytest.raises(IdentityTooLong) as caught:
        connection.receive(stream[:-256])
    assert (caught.value.size, caught.value.size_max) == (256, 255)


def test_rubbish_in_the_flags_of_old_libzmq_is_overlooked() -> None:
    connection = ZmtpConnection(b"ROUTER")
    assert connection.receive(b"\x02\x7eA" + b"\x02\xffB" + b"\x02\x80C") == [[b"B", b"C"]]
    assert connection.peer_identity == b"A"


def test_a_1_0_frame_of_size_zero_is_refused() -> None:
    connection = opened(1, b"ROUTER", b"DEALER")
    with pytest.raises(BadFrameSize):
        connection.receive(b"\x00\x00")
    with pytest.raises(BadFrameSize):
        opened(1, b"ROUTER", b"DEALER").receive(b"\xff" + bytes(8) + b"\x00")


def test_a_1_0_size_with_its_top_bit_set_is_too_large() -> None:
    connection = opened(1, b"ROUTER", b"DEALER")
    with pytest.raises(MessageTooLarge) as caught:
        connection.receive(b"\xff" * 9 + b"\x00")
    assert caught.value.size == 2**64 - 1


def test_a_1_0_subscriber_gets_everything_because_it_filters_by_itself() -> None:
    for socket_type in (b"PUB", b"XPUB"):
        connection = ZmtpConnection(socket_type)
        assert connection.receive(b"\x01\x00") == [[b"\x01"]]
    assert ZmtpConnection(b"ROUTER").receive(b"\x01\x00") == []


def test_a_2_0_subscriber_says_what_it_wants() -> None:
    connection = opened(2, b"XPUB", b"SUB")
    assert connection.receive(encode_message([b"\x01topic"])) == [[b"\x01topic"]]


def test_a_version_byte_of_zero_means_a_greeting_with_frames_of_1_0() -> None:
    connection = ZmtpConnection(b"ROUTER")
    messages, outgoing, fault = hear(
        connection, [SIGNATURE + b"\x00\x05" + b"\x03\x00me" + encode_message([b"x", b"y"], is_v1=True)]
    )
    assert fault is None
    assert messages == [[b"x", b"y"]]
    assert outgoing == b"\x03\x06" + b"\x01\x00"
    assert (connection.peer_version, connection.is_v1, connection.peer_identity) == (1, True, b"me")
    assert connection.peer_socket_type == b"DEALER"


def test_subscriptions_leave_in_the_form_the_publisher_understands() -> None:
    forms = {version: opened(version, b"SUB", b"PUB") for version in (1, 2, 30, 31)}
    assert {version: peer.subscribe_bytes(b"ab") for version, peer in forms.items()} == {
        1: b"",
        2: b"\x00\x03\x01ab",
        30: b"\x00\x03\x01ab",
        31: b"\x04\x0c\x09SUBSCRIBEab",
    }
    assert {version: peer.subscribe_bytes(b"ab", False) for version, peer in forms.items()} == {
        1: b"",
        2: b"\x00\x03\x00ab",
        30: b"\x00\x03\x00ab",
        31: b"\x04\x09\x06CANCELab",
    }


@pytest.mark.parametrize("version", [1, 2, 30, 31])
def test_an_old_or_new_stream_means_the_same_however_it_is_cut(version: int) -> None:
    is_v1 = version == 1
    expected = [[b""], [b"id", b"", b"x" * 260], [b"y" * 253, b"z" * 254], [b"", b""]]
    stream = opening(version, b"DEALER", b"name")
    for message in expected:
        stream += encode_message(message, is_v1)
    whole = ZmtpConnection(b"ROUTER")
    _, said, _ = hear(whole, [stream])
    for parts in cuts(stream):
        connection = ZmtpConnection(b"ROUTER")
        messages, outgoing, fault = hear(connection, parts)
        assert fault is None
        assert messages == expected
        assert outgoing == said
        assert connection.peer_identity == b"name"
        assert connection.peer_version == version


@pytest.mark.parametrize("version", [1, 2, 30, 31])
def test_trailing_bytes_of_a_next_frame_are_kept_for_it(version: int) -> None:
    is_v1 = version == 1
    first, second = encode_message([b"one", b"1"], is_v1), encode_message([b"two", b"2" * 300], is_v1)
    for at in range(1, len(second)):
        connection = opened(version, b"ROUTER", b"DEALER")
        assert connection.receive(first + second[:at]) == [[b"one", b"1"]]
        assert connection.receive(second[at:]) == [[b"two", b"2" * 300]]
