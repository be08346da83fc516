"""HTTP and TLS are recognised by their first bytes however these are cut, and no ZMTP greeting is ever taken for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import BadGreeting, HttpNotSpoken, LegacyGreetingOff, TlsNotSpoken
from dragoman.wire.first_bytes import HTTP, METHOD_SIZE_MAX, NEITHER, TLS, UNDECIDED, judge
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message
from tests.wire.zmtp.dialogue import hear, opening

REQUESTS = [
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n\x01\x00\x00",
    b"OPTIONS * HTTP/1.1\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"CONNECT broker:443 HTTP/1.1\r\n\r\n",
    b"GET http://broker/ HTTP/1.1\r\n\r\n",
    b"get / http/1.0\r\n\r\n",
    b"M-SEARCH * HTTP/1.1\r\n\r\n",
    b"X /",
    b"NOBODYKNOWSTHISMETHOD / HTTP/1.1\r\n\r\n",
]
HELLOS = [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32), b"\x16\x03\x03\x00\x05\x01"]
# libzmq 2.x leaves all of bits 1 to 6 set in a frame's flags.
FLAGS_V1 = [0x00, 0x01, 0x7E, 0x7F]

identities = st.one_of(
    st.binary(max_size=255),
    st.sampled_from(REQUESTS),
    st.integers(64, 122).map(lambda size: b"GET /abc" * 16 + b"x" * size),
).map(lambda identity: identity[:255])


def greeting_v1(identity: bytes, flags: int) -> bytes:
    frame = bytearray(encode_message([identity], is_v1=True))
    frame[len(frame) - len(identity) - 1] = flags
    return bytes(frame)


def router(allows_v1: bool = True) -> ZmtpConnection:
    return ZmtpConnection(b"ROUTER", allows_v1=allows_v1)


@pytest.mark.parametrize(("kind", "stream"), [(HTTP, r) for r in REQUESTS] + [(TLS, h) for h in HELLOS])
def test_every_prefix_of_a_foreign_stream_is_undecided_until_it_is_recognised(kind: int, stream: bytes) -> None:
    found = [judge(stream[:size]) for size in range(len(stream) + 1)]
    first = found.index(kind)
    assert found == [UNDECIDED] * first + [kind] * (len(found) - first)
    assert first <= METHOD_SIZE_MAX + 5


@given(st.from_regex(rb"[A-Za-z][A-Za-z0-9_-]{0,31} [/*].*", fullmatch=True))
def test_any_method_before_a_path_is_http(stream: bytes) -> None:
    assert judge(stream) == HTTP


@pytest.mark.parametrize(
    "stream", [b"GET\t/", b"HTTP/1.1 200 OK", b"SSH-2.0-x", b"A" * 33, b"HELO there", b"\r\nGET /", b"G E"]
)
def test_what_is_neither_is_decided_too(stream: bytes) -> None:
    assert judge(stream) == NEITHER


@given(identities, st.sampled_from(FLAGS_V1), st.binary(max_size=80))
def test_no_greeting_of_1_0_is_taken_for_another_protocol(identity: bytes, flags: int, rest: bytes) -> None:
    stream = greeting_v1(identity, flags) + rest
    assert not {HTTP, TLS} & {judge(stream[:size]) for size in range(len(stream) + 1)}
    if stream[0] == 0xFF and flags & 1:
        return  # byte 9 of a greeting of 2.0 or later: an identity has no second frame, so no 1.0 peer sends this
    connection = router()
    connection.receive(greeting_v1(identity, flags))
    assert (connection.peer_version, connection.peer_identity) == (1, identity)


@given(st.binary(min_size=1, max_size=255), st.sampled_from([2, 30, 31]))
def test_newer_greetings_are_taken_where_1_0_is_off(identity: bytes, version: int) -> None:
    connection = router(allows_v1=False)
    connection.receive(opening(version, b"DEALER", identity))
    assert (connection.peer_version, connection.peer_identity) == (version, identity)


@given(st.binary(max_size=255), st.sampled_from(FLAGS_V1[::2]))
def test_a_greeting_of_1_0_is_refused_by_name_where_it_is_off(identity: bytes, flags: int) -> None:
    stream = greeting_v1(identity, flags)
    for parts in ([stream], [stream[at : at + 1] for at in range(len(stream))]):
        _, _, fault = hear(router(allows_v1=False), parts)
        assert isinstance(fault, LegacyGreetingOff)


@pytest.mark.parametrize("allows_v1", [True, False])
@pytest.mark.parametrize(
    ("fault", "stream"), [(HttpNotSpoken, r) for r in REQUESTS] + [(TlsNotSpoken, h) for h in HELLOS]
)
def test_a_foreign_stream_ends_the_connection_whole_and_byte_by_byte(
    allows_v1: bool, fault: type[Exception], stream: bytes
) -> None:
    for parts in ([stream], [stream[at : at + 1] for at in range(len(stream))]):
        connection = router(allows_v1)
        messages, outgoing, found = hear(connection, parts)
        assert (messages, outgoing, type(found)) == ([], b"", fault)
        assert not connection.is_ready


@pytest.mark.parametrize("flags", sorted(set(range(256)) - set(FLAGS_V1)))
def test_flags_that_no_1_0_peer_sends_are_no_greeting(flags: int) -> None:
    with pytest.raises((BadGreeting, HttpNotSpoken, TlsNotSpoken)):
        router().receive(bytes([22, flags]) + b"/" * 40)
    _, _, fault = hear(router(), [bytes([0x50, flags]) + b" / HTTP/1.1" + bytes(80)])
    assert isinstance(fault, BadGreeting | HttpNotSpoken)
