"""The first bytes: who speaks when, and what no version allows."""

from __future__ import annotations

import pytest

from dragoman.errors import (
    BadCommand,
    BadGreeting,
    HandshakeFailed,
    MechanismMismatch,
    PeerRefused,
    SocketTypeMismatch,
)
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message
from dragoman.wire.zmtp.greeting import PEERS, TYPES
from tests.wire.zmtp.dialogue import SIGNATURE, command, greeting_v2, greeting_v3, hear, metadata, opening, ready


def test_only_the_signature_is_sent_before_the_peer_has_sent_bytes() -> None:
    connection = ZmtpConnection(b"ROUTER")
    assert connection.greeting() == SIGNATURE
    assert connection.take_outgoing() == b""


def test_the_signature_announces_our_identity_to_a_peer_that_takes_it_for_a_frame() -> None:
    connection = ZmtpConnection(b"DEALER", identity=b"seven by")
    assert connection.greeting() == b"\xff\0\0\0\0\0\0\0\x09\x7f"


def test_each_part_of_our_greeting_waits_for_the_byte_that_allows_it() -> None:
    connection = ZmtpConnection(b"ROUTER")
    said = []
    for octet in greeting_v3():
        connection.receive(bytes([octet]))
        said.append(connection.take_outgoing())
    assert [at for at, part in enumerate(said) if part] == [9, 10, 63]
    assert said[9] == b"\x03"
    assert said[10] == b"\x01NULL" + bytes(16) + bytes(32)
    assert said[63] == ready(b"ROUTER")


def test_our_whole_greeting_is_64_bytes() -> None:
    connection = ZmtpConnection(b"PUB")
    _, outgoing, _ = hear(connection, [greeting_v3()])
    whole = connection.greeting() + outgoing
    assert whole[:64] == greeting_v3()
    assert whole[64:] == command(b"READY", metadata(Socket_Type=b"PUB"))


@pytest.mark.parametrize("minor", [0, 1, 2, 255])
def test_a_peer_of_any_minor_is_met(minor: int) -> None:
    connection = ZmtpConnection(b"ROUTER")
    connection.receive(greeting_v3(minor=minor) + ready(b"DEALER"))
    assert connection.is_ready
    assert connection.peer_version == (30 if minor == 0 else 31)


def test_a_peer_of_a_later_major_is_met_as_3_1() -> None:
    connection = ZmtpConnection(b"ROUTER")
    connection.receive(greeting_v3(major=4, minor=0) + ready(b"DEALER"))
    assert connection.peer_version == 31


def test_padding_of_the_signature_is_not_looked_at() -> None:
    connection = ZmtpConnection(b"ROUTER")
    connection.receive(b"\xff" + b"\xaa" * 8 + b"\x7f" + greeting_v3()[10:] + ready(b"REQ"))
    assert connection.is_ready


def test_a_greeting_cut_short_is_neither_ready_nor_wrong() -> None:
    whole = greeting_v3()
    for size in range(len(whole)):
        connection = ZmtpConnection(b"ROUTER")
        assert connection.receive(whole[:size]) == []
        assert not connection.is_ready
        assert connection.fault is None


@pytest.mark.parametrize("field", [bytes(20), b"NU\0LL".ljust(20, b"\0"), b"\0NULL".ljust(20, b"\0")])
def test_a_mechanism_that_is_no_padded_name_is_a_bad_greeting(field: bytes) -> None:
    connection = ZmtpConnection(b"ROUTER")
    with pytest.raises(BadGreeting):
        connection.receive(SIGNATURE + b"\x03\x01" + field + bytes(32))


def test_another_mechanism_is_refused_with_both_names() -> None:
    connection = ZmtpConnection(b"ROUTER")
    with pytest.raises(MechanismMismatch) as caught:
        connection.receive(greeting_v3(mechanism=b"CURVE"))
    assert (caught.value.ours, caught.value.theirs) == (b"NULL", b"CURVE")
    assert b"\x05ERROR" in connection.take_outgoing()


def test_metadata_is_reported_with_names_in_lower_case() -> None:
    connection = ZmtpConnection(b"ROUTER")
    connection.receive(greeting_v3() + command(b"READY", metadata(SOCKET_type=b"DEALER", X_Rack=b"4", identity=b"w1")))
    assert connection.peer_metadata == {b"socket-type": b"DEALER", b"x-rack": b"4", b"identity": b"w1"}
    assert connection.peer_identity == b"w1"
    assert connection.peer_socket_type == b"DEALER"


def test_of_a_property_given_twice_the_first_counts() -> None:
    connection = ZmtpConnection(b"ROUTER")
    twice = metadata(Socket_Type=b"DEALER", Identity=b"first") + metadata(Identity=b"second")
    connection.receive(greeting_v3() + command(b"READY", twice))
    assert connection.peer_identity == b"first"


@pytest.mark.parametrize(
    "properties",
    [
        b"\x00\x00\x00\x00\x00",
        b"\x0bSocket-Ty",
        b"\x0bSocket-Type",
        b"\x0bSocket-Type\x00\x00\x00",
        b"\x0bSocket-Type\x00\x00\x00\x07DEALER",
        b"\x0bSocket-Type\xff\xff\xff\xffDEALER",
        b"".join(metadata(**{f"X{index}": b""}) for index in range(65)),
    ],
)
def test_metadata_that_does_not_add_up_is_a_bad_command(properties: bytes) -> None:
    connection = ZmtpConnection(b"ROUTER")
    with pytest.raises(BadCommand):
        connection.receive(greeting_v3() + command(b"READY", properties))


def test_ready_without_a_socket_type_is_a_mismatch() -> None:
    connection = ZmtpConnection(b"ROUTER")
    with pytest.raises(SocketTypeMismatch):
        connection.receive(greeting_v3() + command(b"READY"))


@pytest.mark.parametrize("ours", TYPES)
@pytest.mark.parametrize("theirs", TYPES)
@pytest.mark.parametrize("version", [2, 30, 31])
def test_socket_types_meet_exactly_as_rfc_37_says(ours: bytes, theirs: bytes, version: int) -> None:
    connection = ZmtpConnection(ours)
    _, outgoing, fault = hear(connection, [opening(version, theirs)])
    assert (theirs in PEERS[ours]) == (ours in PEERS[theirs])
    if theirs in PEERS[ours]:
        assert connection.is_ready
        assert connection.peer_socket_type == theirs
    else:
        assert isinstance(fault, SocketTypeMismatch)
        assert (fault.ours, fault.theirs) == (ours, theirs)
        # 2.0 has no ERROR; its peer is just left.
        assert (b"\x05ERROR" in outgoing) == (version >= 30)


def test_the_types_of_the_table_are_all_types() -> None:
    assert sorted(PEERS) == sorted(TYPES)


def test_an_unknown_socket_type_is_refused_in_every_version() -> None:
    for stream, error in [
        (greeting_v3() + ready(b"TELEX"), SocketTypeMismatch),
        (SIGNATURE + b"\x01\x0b", BadGreeting),
    ]:
        with pytest.raises(error):
            ZmtpConnection(b"ROUTER").receive(stream)


def test_our_error_reaches_the_other_end_with_its_reason() -> None:
    server = ZmtpConnection(b"PUB")
    client = ZmtpConnection(b"DEALER")
    to_client, to_server = server.greeting(), client.greeting()
    faults = []
    while to_client or to_server:
        to_client, to_server = (
            hear(server, [to_server])[1],
            hear(client, [to_client])[1],
        )
        faults = [server.fault, client.fault]
        if None not in faults:
            break
    assert isinstance(faults[0], SocketTypeMismatch)
    # Whichever end sees the other's READY first calls it a mismatch; ERROR never answers ERROR.
    assert isinstance(faults[1], SocketTypeMismatch | PeerRefused)
    late = ZmtpConnection(b"DEALER")
    with pytest.raises(PeerRefused, match="SOCKET_TYPE_MISMATCH"):
        late.receive(greeting_v3() + command(b"ERROR", b"\x14SOCKET_TYPE_MISMATCH"))
    assert b"ERROR" not in late.take_outgoing()


def test_a_reason_from_a_peer_cannot_forge_a_log_line() -> None:
    connection = ZmtpConnection(b"DEALER")
    with pytest.raises(PeerRefused) as caught:
        connection.receive(greeting_v3() + command(b"ERROR", b"\x08\x1b[2J\nok!"))
    assert caught.value.reason == "\\x1b[2J\\nok!"


def test_what_follows_ready_in_the_same_buffer_is_read() -> None:
    for version in (1, 2, 30, 31):
        connection = ZmtpConnection(b"ROUTER")
        stream = opening(version, b"DEALER", b"w") + encode_message([b"", b"hello"], version == 1)
        assert connection.receive(stream) == [[b"", b"hello"]]


def test_a_2_0_peer_hears_our_type_and_identity() -> None:
    connection = ZmtpConnection(b"DEALER", identity=b"me")
    _, outgoing, _ = hear(connection, [greeting_v2(b"ROUTER")])
    assert outgoing == b"\x03\x05" + b"\x00\x02me"
    assert not connection.is_ready
    connection.receive(b"\x00\x00")
    assert connection.is_ready


def test_two_of_ours_meet_each_other() -> None:
    server = ZmtpConnection(b"ROUTER")
    client = ZmtpConnection(b"DEALER", identity=b"sdk-1")
    to_client, to_server = server.greeting(), client.greeting()
    while to_client or to_server:
        server.receive(to_server)
        client.receive(to_client)
        to_client, to_server = server.take_outgoing(), client.take_outgoing()
    assert server.is_ready
    assert client.is_ready
    assert server.peer_identity == b"sdk-1"
    assert (server.peer_version, client.peer_version) == (31, 31)


def test_null_takes_ready_and_nothing_else() -> None:
    connection = ZmtpConnection(b"ROUTER")
    with pytest.raises(HandshakeFailed, match="READY was due, HELLO came"):
        connection.receive(greeting_v3() + command(b"HELLO", b"\x04anna\x06secret"))
