"""Frames as bytes: the sizes where the form changes, and messages there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.strings import BytesWriter

from dragoman.wire.zmtp.frames import encode_command, encode_message, write_frame, write_frame_v1, write_message
from tests.wire.zmtp.dialogue import hear, opened


@pytest.mark.parametrize(
    ("size", "header", "header_v1"),
    [
        (0, b"\x00\x00", b"\x01\x00"),
        (1, b"\x00\x01", b"\x02\x00"),
        (253, b"\x00\xfd", b"\xfe\x00"),
        (254, b"\x00\xfe", b"\xff\0\0\0\0\0\0\x00\xff\x00"),
        (255, b"\x00\xff", b"\xff\0\0\0\0\0\0\x01\x00\x00"),
        (256, b"\x02\0\0\0\0\0\0\x01\x00", b"\xff\0\0\0\0\0\0\x01\x01\x00"),
        (70000, b"\x02\0\0\0\0\0\x01\x11\x70", b"\xff\0\0\0\0\0\x01\x11\x71\x00"),
    ],
)
def test_a_frame_has_the_shortest_header_its_size_allows(size: int, header: bytes, header_v1: bytes) -> None:
    body = b"b" * size
    assert encode_message([body]) == header + body
    assert encode_message([body], is_v1=True) == header_v1 + body


def test_every_frame_but_the_last_says_more() -> None:
    assert encode_message([b"a", b"", b"c"]) == b"\x01\x01a" + b"\x01\x00" + b"\x00\x01c"
    assert encode_message([b"a", b"", b"c"], is_v1=True) == b"\x02\x01a" + b"\x01\x01" + b"\x02\x00c"
    assert encode_message([b"l" * 256, b""])[0] == 3


def test_writers_append_to_what_is_there() -> None:
    out = BytesWriter()
    write_frame(out, b"a", True)
    write_frame(out, b"b", False)
    write_message(out, [b"c", b"d"], False)
    assert out.getvalue() == encode_message([b"a", b"b"]) + encode_message([b"c", b"d"])
    out = BytesWriter()
    write_frame_v1(out, b"a", True)
    write_frame_v1(out, b"b", False)
    write_message(out, [b"c", b"d"], True)
    assert out.getvalue() == encode_message([b"a", b"b"], True) + encode_message([b"c", b"d"], True)


def test_a_message_without_frames_is_our_own_fault() -> None:
    with pytest.raises(AssertionError):
        encode_message([])


def test_a_command_is_short_or_long_like_any_frame() -> None:
    assert encode_command(b"\x04PONG") == b"\x04\x05\x04PONG"
    assert encode_command(b"c" * 256) == b"\x06\0\0\0\0\0\0\x01\x00" + b"c" * 256


SIZES = st.one_of(st.integers(0, 8), st.integers(250, 260))
MESSAGES = st.lists(st.lists(SIZES.map(lambda size: b"\x02" * size), min_size=1, max_size=9), max_size=6)


@given(messages=MESSAGES, version=st.sampled_from([1, 2, 30, 31]), cut_size=st.integers(1, 300))
def test_messages_come_back_as_they_were_written(messages: list[list[bytes]], version: int, cut_size: int) -> None:
    stream = b"".join(encode_message(message, version == 1) for message in messages)
    parts = [stream[at : at + cut_size] for at in range(0, len(stream), cut_size)]
    received, outgoing, fault = hear(opened(version, b"ROUTER", b"DEALER"), parts)
    assert fault is None
    assert received == messages
    assert outgoing == b""
