"""Every state × every input: what comes out, or which error ends the connection."""

from __future__ import annotations

import pytest

from dragoman.errors import PeerError
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message
from tests.wire.zmtp.dialogue import command, cuts, greeting_v2, greeting_v3, hear, metadata, opened, ready

Outcome = str | list[list[bytes]]

SIZE_MAX = 1000

INPUTS: dict[str, bytes] = {
    "message": encode_message([b"a", b"b"]),
    "small": b"\x00\x01a",
    "oversize": b"\x02" + (SIZE_MAX + 1).to_bytes(8, "big"),
    "READY": ready(b"DEALER"),
    "ERROR": command(b"ERROR", b"\x02no"),
    "bad ERROR": command(b"ERROR", b"\x03no"),
    "PING": command(b"PING", b"\x00\x0actx"),
    "bad PING": command(b"PING", b"\x00"),
    "PONG": command(b"PONG", b"ctx"),
    "SUBSCRIBE": command(b"SUBSCRIBE", b"t"),
    "CANCEL": command(b"CANCEL", b"t"),
    "later": command(b"LATER", b"?"),
    "empty": b"\x04\x00",
    "nameless": b"\x04\x01\x00",
    "cut name": b"\x04\x03\x05RE",
    "reserved": b"\x08\x00",
    "high bit": b"\x80\x00",
    "command, more": b"\x05\x05\x04PING",
    "huge command": b"\x06" + (1 << 20).to_bytes(8, "big"),
    "negative": b"\x02" + b"\xff" * 8,
    "almost negative": b"\x02\x7f" + b"\xff" * 7,
    "negative command": b"\x06" + b"\xff" * 8,
}

# One column per state. A list is what `receive` returns; a code is the error that ends the connection.
STATES = ["handshake", "router 3.1", "pub 3.1", "identity 2.0", "router 2.0"]
TABLE: dict[str, list[Outcome]] = {
    "message": ["HANDSHAKE_FAILED", [[b"a", b"b"]], [[b"a", b"b"]], "BAD_FRAME_FLAGS", [[b"a", b"b"]]],
    "small": ["HANDSHAKE_FAILED", [[b"a"]], [[b"a"]], [], [[b"a"]]],
    "oversize": ["HANDSHAKE_FAILED", *["MESSAGE_TOO_LARGE"] * 2, "IDENTITY_TOO_LONG", "MESSAGE_TOO_LARGE"],
    "READY": [[], "BAD_COMMAND", "BAD_COMMAND", "BAD_FRAME_FLAGS", "BAD_FRAME_FLAGS"],
    "ERROR": [*["PEER_REFUSED"] * 3, *["BAD_FRAME_FLAGS"] * 2],
    "bad ERROR": [*["BAD_COMMAND"] * 3, *["BAD_FRAME_FLAGS"] * 2],
    "PING": ["HANDSHAKE_FAILED", [], [], *["BAD_FRAME_FLAGS"] * 2],
    "bad PING": ["HANDSHAKE_FAILED", *["BAD_COMMAND"] * 2, *["BAD_FRAME_FLAGS"] * 2],
    "PONG": ["HANDSHAKE_FAILED", [], [], *["BAD_FRAME_FLAGS"] * 2],
    "SUBSCRIBE": ["HANDSHAKE_FAILED", "BAD_COMMAND", [[b"\x01t"]], *["BAD_FRAME_FLAGS"] * 2],
    "CANCEL": ["HANDSHAKE_FAILED", "BAD_COMMAND", [[b"\x00t"]], *["BAD_FRAME_FLAGS"] * 2],
    "later": ["HANDSHAKE_FAILED", [], [], *["BAD_FRAME_FLAGS"] * 2],
    "empty": [*["BAD_COMMAND"] * 3, *["BAD_FRAME_FLAGS"] * 2],
    "nameless": [*["BAD_COMMAND"] * 3, *["BAD_FRAME_FLAGS"] * 2],
    "cut name": [*["BAD_COMMAND"] * 3, *["BAD_FRAME_FLAGS"] * 2],
    "reserved": ["BAD_FRAME_FLAGS"] * 5,
    "high bit": ["BAD_FRAME_FLAGS"] * 5,
    "command, more": ["BAD_FRAME_FLAGS"] * 5,
    "huge command": [*["COMMAND_TOO_LARGE"] * 3, *["BAD_FRAME_FLAGS"] * 2],
    "negative": ["HANDSHAKE_FAILED", *["MESSAGE_TOO_LARGE"] * 2, "IDENTITY_TOO_LONG", "MESSAGE_TOO_LARGE"],
    "almost negative": ["HANDSHAKE_FAILED", *["MESSAGE_TOO_LARGE"] * 2, "IDENTITY_TOO_LONG", "MESSAGE_TOO_LARGE"],
    "negative command": [*["COMMAND_TOO_LARGE"] * 3, *["BAD_FRAME_FLAGS"] * 2],
}


def in_state(state: str) -> ZmtpConnection:
    if state == "router 3.1":
        return opened(31, b"ROUTER", b"DEALER", message_size_max=SIZE_MAX)
    if state == "pub 3.1":
        return opened(31, b"PUB", b"SUB", message_size_max=SIZE_MAX)
    if state == "router 2.0":
        return opened(2, b"ROUTER", b"DEALER", message_size_max=SIZE_MAX)
    connection = ZmtpConnection(b"ROUTER", message_size_max=SIZE_MAX)
    connection.receive(greeting_v3() if state == "handshake" else greeting_v2(b"DEALER"))
    connection.take_outgoing()
    return connection


def test_the_table_has_a_cell_for_every_state_and_input() -> None:
    assert list(TABLE) == list(INPUTS)
    assert {len(row) for row in TABLE.values()} == {len(STATES)}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", INPUTS)
def test_each_state_answers_each_input_in_every_cut(state: str, name: str) -> None:
    expected = TABLE[name][STATES.index(state)]
    for parts in cuts(INPUTS[name]):
        connection = in_state(state)
        messages, outgoing, fault = hear(connection, parts)
        if isinstance(expected, str):
            assert fault is not None
            assert fault.code == expected
            assert messages == []
            is_refused_in_handshake = state == "handshake" and expected != "PEER_REFUSED"
            assert (b"\x05ERROR" in outgoing) == is_refused_in_handshake
        else:
            assert fault is None
            assert messages == expected
            assert outgoing == (command(b"PONG", b"ctx") if name == "PING" else b"")


def test_a_failed_connection_says_the_same_again_and_takes_nothing_more() -> None:
    connection = in_state("router 3.1")
    faults = []
    for data in (INPUTS["reserved"], INPUTS["message"], b""):
        with pytest.raises(PeerError) as caught:
            connection.receive(data)
        faults.append(caught.value)
    assert faults[0] is faults[1] is faults[2] is connection.fault


def test_messages_before_a_fault_in_the_same_buffer_are_not_lost() -> None:
    connection = in_state("router 3.1")
    assert connection.receive(INPUTS["message"] * 2 + INPUTS["oversize"]) == [[b"a", b"b"]] * 2
    assert connection.fault is not None
    assert connection.fault.code == "MESSAGE_TOO_LARGE"
    with pytest.raises(PeerError):
        connection.receive(b"")


def test_a_handshake_a_message_and_a_fault_in_one_buffer_give_the_message() -> None:
    connection = ZmtpConnection(b"ROUTER")
    stream = greeting_v3() + ready(b"DEALER", b"w") + INPUTS["message"] + INPUTS["reserved"]
    assert connection.receive(stream) == [[b"a", b"b"]]
    assert connection.is_ready
    assert connection.fault is not None


def test_a_ping_between_the_frames_of_a_message_is_answered_and_harms_nothing() -> None:
    connection = in_state("router 3.1")
    stream = b"\x01\x01a" + INPUTS["PING"] + b"\x00\x01b"
    for parts in cuts(stream):
        messages, outgoing, fault = hear(connection, parts)
        assert (messages, outgoing, fault) == ([[b"a", b"b"]], command(b"PONG", b"ctx"), None)


def test_a_ping_context_beyond_16_bytes_is_cut() -> None:
    connection = in_state("router 3.1")
    _, outgoing, _ = hear(connection, [command(b"PING", b"\x00\x00" + b"c" * 20)])
    assert outgoing == command(b"PONG", b"c" * 16)


def test_an_identity_beyond_255_bytes_is_refused_in_ready() -> None:
    connection = in_state("handshake")
    _, _, fault = hear(connection, [command(b"READY", metadata(Socket_Type=b"DEALER", Identity=b"i" * 256))])
    assert fault is not None
    assert fault.code == "IDENTITY_TOO_LONG"


def test_an_upstream_message_of_an_xsub_passes_as_it_is() -> None:
    connection = opened(31, b"XPUB", b"XSUB")
    assert connection.receive(encode_message([b"\x01a"]) + encode_message([b"up", b"stream"])) == [
        [b"\x01a"],
        [b"up", b"stream"],
    ]
