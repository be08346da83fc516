"""What a hostile page sends: an HTTP request whose body is meant to be read as frames of ZMTP 1.0, or as RISP, wherever its reader stands."""

from __future__ import annotations

from dragoman.wire.zmtp.frames import encode_message
from tests.dialects.rq.spelling import risp
from tests.runtime.peers import VERSION

# A one-byte frame of 1.0 takes three bytes, all of them 2: a reader that comes to it at any of them goes on to its end.
SLED = b"\x02" * 300


def frames(*messages: list[bytes]) -> bytes:
    return b"".join(encode_message(message, is_v1=True) for message in messages)


ORDERS = {
    "emqp": frames([b"", VERSION, b"REQUEST", b"id", b"stolen", b"", b"{}"], [b"", VERSION, b"DISCONNECT", b"stop"]),
    "pingpong": frames([b"", b"stolen"], [b"stolen"]),
    "ebus": frames([b"", b"EBC01", b"REQ", b"stolen", b"rid", b"{}"]),
    "scale0": frames([b"", b"TASK", b'{"id":"1","service":"stolen"}', b"{}"]),
    "rq": risp("CLEAR ID=9 QUEUE=stolen PAYLOAD=x NOREPLY REQUEST"),
}


def bodies(listener: str) -> list[bytes]:
    """For each way a reader may be aligned with the sled."""
    orders = ORDERS[listener.partition(".")[0]]
    return [(b"" if listener == "rq" else SLED + b"\x02" * pad) + orders for pad in range(3)]


def post(body: bytes) -> bytes:
    return b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
