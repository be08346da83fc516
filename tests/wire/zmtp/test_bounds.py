"""What a peer may make us hold: bytes are refused by what their header announces, before they are kept."""

from __future__ import annotations

import tracemalloc

import pytest

from dragoman.errors import CommandTooLarge, MessageTooLarge, TooManyFrames
from dragoman.limits import COMMAND_SIZE_MAX, FRAMES_MAX, HANDSHAKE_COMMAND_SIZE_MAX
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message
from tests.wire.zmtp.dialogue import command, greeting_v3, hear, opened

MEBIBYTE = 1 << 20


def long_header(size: int, flags: int = 2) -> bytes:
    return bytes([flags]) + size.to_bytes(8, "big")


@pytest.mark.parametrize("version", [1, 2, 30, 31])
def test_a_message_of_exactly_the_limit_passes_and_one_byte_more_does_not(version: int) -> None:
    is_v1 = version == 1
    for frames in ([b"x" * 1000], [b"x" * 400, b"y" * 600], [b"x" * 1000, b""]):
        connection = opened(version, b"ROUTER", b"DEALER", message_size_max=1000)
        assert connection.receive(encode_message(frames, is_v1)) == [frames]
    for frames in ([b"x" * 1001], [b"x" * 400, b"y" * 601], [b"x" * 1000, b"y"]):
        connection = opened(version, b"ROUTER", b"DEALER", message_size_max=1000)
        with pytest.raises(MessageTooLarge) as caught:
            connection.receive(encode_message(frames, is_v1))
        assert (caught.value.size, caught.value.size_max) == (1001, 1000)


@pytest.mark.parametrize("announced", [2**63 - 1, 2**63, 2**64 - 1])
def test_sizes_at_the_edges_of_64_bits_are_reported_as_they_were_sent(announced: int) -> None:
    connection = opened(31, b"ROUTER", b"DEALER", message_size_max=1000)
    with pytest.raises(MessageTooLarge) as caught:
        connection.receive(b"\x01\x03abc" + long_header(announced))
    assert caught.value.size == announced + 3
    connection = opened(31, b"ROUTER", b"DEALER")
    with pytest.raises(CommandTooLarge) as caught_command:
        connection.receive(long_header(announced, flags=6))
    assert caught_command.value.size == announced


def test_each_message_has_the_whole_limit() -> None:
    connection = opened(31, b"ROUTER", b"DEALER", message_size_max=1000)
    assert len(connection.receive(encode_message([b"x" * 600, b"y" * 400]) * 50)) == 50


def test_a_header_alone_is_enough_to_refuse_a_message() -> None:
    connection = opened(31, b"ROUTER", b"DEALER", message_size_max=100 * MEBIBYTE)
    with pytest.raises(MessageTooLarge):
        connection.receive(long_header(100 * MEBIBYTE + 1))


@pytest.mark.parametrize("version", [1, 2, 31])
def test_a_message_may_have_so_many_frames_and_no_more(version: int) -> None:
    is_v1 = version == 1
    frames = [b""] * FRAMES_MAX
    assert opened(version, b"ROUTER", b"DEALER").receive(encode_message(frames, is_v1)) == [frames]
    with pytest.raises(TooManyFrames) as caught:
        opened(version, b"ROUTER", b"DEALER").receive(encode_message([*frames, b""], is_v1))
    assert caught.value.count_max == FRAMES_MAX


def test_commands_have_their_own_limits_lower_before_the_handshake() -> None:
    stranger = ZmtpConnection(b"PUB")
    stranger.receive(greeting_v3())
    with pytest.raises(CommandTooLarge) as caught:
        stranger.receive(long_header(HANDSHAKE_COMMAND_SIZE_MAX + 1, flags=6))
    assert caught.value.size_max == HANDSHAKE_COMMAND_SIZE_MAX
    topic = b"t" * (COMMAND_SIZE_MAX - len(b"\x09SUBSCRIBE"))
    known = opened(31, b"PUB", b"SUB")
    assert known.receive(command(b"SUBSCRIBE", topic)) == [[b"\x01" + topic]]
    with pytest.raises(CommandTooLarge):
        known.receive(command(b"SUBSCRIBE", topic + b"t"))


def peak_bytes_while(connection: ZmtpConnection, parts: list[bytes]) -> int:
    tracemalloc.start()
    try:
        assert hear(connection, parts) == ([], b"", None)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_peer_that_announces_much_and_stalls_holds_little() -> None:
    connection = opened(31, b"ROUTER", b"DEALER", message_size_max=100 * MEBIBYTE)
    assert peak_bytes_while(connection, [long_header(90 * MEBIBYTE), b"x" * 10]) < 64 * 1024
    connection = ZmtpConnection(b"ROUTER")
    assert peak_bytes_while(connection, [b"\xff"]) < 64 * 1024


def test_a_body_that_comes_byte_by_byte_is_held_about_once() -> None:
    connection = opened(31, b"ROUTER", b"DEALER")
    parts = [long_header(200_001)] + [b"x"] * 200_000
    assert peak_bytes_while(connection, parts) < 2 * 200_000 + 64 * 1024
    assert connection.receive(b"y") == [[b"x" * 200_000 + b"y"]]


def test_an_idle_connection_does_not_keep_the_last_buffer_it_read() -> None:
    connection = opened(31, b"ROUTER", b"DEALER")
    message = encode_message([b"m" * 100])
    tracemalloc.start()
    try:
        assert len(connection.receive(message * 5000 + message[:1])) == 5000
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 64 * 1024
    assert connection.receive(message[1:]) == [[b"m" * 100]]


def test_a_flood_of_pings_makes_no_more_bytes_than_it_is() -> None:
    connection = opened(31, b"ROUTER", b"DEALER")
    flood = command(b"PING", b"\x00\x01") * 20_000
    messages, outgoing, fault = hear(connection, [flood])
    assert (messages, fault) == ([], None)
    assert outgoing == command(b"PONG") * 20_000
    assert len(outgoing) <= len(flood)


def test_work_grows_with_the_bytes_and_not_with_their_square() -> None:
    # A million single bytes: a reader that moved what it has at each cut would move half a terabyte and time out.
    connection = opened(31, b"ROUTER", b"DEALER", message_size_max=64 * MEBIBYTE)
    connection.receive(long_header(8 * MEBIBYTE))
    one = b"x"
    for _ in range(MEBIBYTE):
        connection.receive(one)
    assert connection.receive(b"x" * (7 * MEBIBYTE)) == [[b"x" * (8 * MEBIBYTE)]]
