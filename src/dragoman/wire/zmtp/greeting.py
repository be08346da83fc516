"""The first bytes of a ZMTP connection, how peers of different protocol versions recognise each other by them, and socket types.

    0    1 … 8             9      10       11          12 … 31     32         33 … 63
    0xFF own identity      0x7F   version  3.x: minor  mechanism   as-server  zeros
         size + 1 (8, be)                  2.0: socket type; the greeting ends here

A 1.0 peer sends no greeting but its identity as a frame. Its first byte differs from 0xFF, or, for a long identity, byte 9 is that frame's
flags with bit 0 clear. libzmq 2.x leaves garbage in those flags, always the same: bits 1 to 6 are all set or all clear, bit 7 is clear. Such
a peer reads our first ten bytes as the header of our own identity frame. That is why we send only those ten before we have received
anything, byte 10 after the peer's signature, and the rest after its byte 10.
"""

from __future__ import annotations

from typing import Final

from dragoman.errors import BadGreeting

SIGNATURE_SIZE: Final = 10
VERSION_AT: Final = 10
MINOR_AT: Final = 11
MECHANISM_AT: Final = 12
AS_SERVER_AT: Final = 32
GREETING_SIZE_V2: Final = 12
GREETING_SIZE_V3: Final = 64

# In a 1.0 frame's flags only MORE, bit 0, has a meaning.
RUBBISH_V1: Final = 0xFE

VERSION_BYTE: Final = 3
# The only mechanism: no security. RFC 37: with NULL the as-server field is zero in both directions.
MECHANISM: Final = b"NULL"
# Bytes 11 to 63 of our greeting: minor version 1, the mechanism, then zeros.
REST_OF_GREETING: Final = (b"\x01" + MECHANISM).ljust(GREETING_SIZE_V3 - MINOR_AT, b"\0")

# Which socket types may connect (RFC 37).
PEERS: Final[dict[bytes, list[bytes]]] = {
    b"PAIR": [b"PAIR"],
    b"PUB": [b"SUB", b"XSUB"],
    b"SUB": [b"PUB", b"XPUB"],
    b"REQ": [b"REP", b"ROUTER"],
    b"REP": [b"REQ", b"DEALER"],
    b"DEALER": [b"REP", b"DEALER", b"ROUTER"],
    b"ROUTER": [b"REQ", b"DEALER", b"ROUTER"],
    b"PULL": [b"PUSH"],
    b"PUSH": [b"PULL"],
    b"XPUB": [b"SUB", b"XSUB"],
    b"XSUB": [b"PUB", b"XPUB"],
}
# A 2.0 greeting identifies a socket type by its index in this list (RFC 15; XPUB and XSUB as in libzmq 3.2).
TYPES: Final = list(PEERS)
RECEIVES_SUBSCRIPTIONS: Final = [b"PUB", b"XPUB"]
SENDS_SUBSCRIPTIONS: Final = [b"SUB", b"XSUB"]
SENDS_IDENTITY: Final = [b"REQ", b"DEALER", b"ROUTER"]  # in READY: only types that are addressed by it have one


def signature(identity: bytes) -> bytes:
    """The ten bytes that begin every connection."""
    return b"\xff" + (len(identity) + 1).to_bytes(8, "big") + b"\x7f"


def is_unversioned(received: bytes) -> bool:
    """Whether these first bytes come from a 1.0 peer; decided by the first byte if it is not 0xFF, else by the tenth."""
    return received[0] != 0xFF or (len(received) >= SIGNATURE_SIZE and received[9] & 1 == 0)


def is_identity_of_1_0(received: bytes) -> bool:
    """Whether these first bytes, at least two and not a 2.0 or 3.x greeting, can be the start of a 1.0 peer's identity frame."""
    if received[0] == 0:
        return False
    flags = received[9] if received[0] == 0xFF else received[1]
    return flags & RUBBISH_V1 == 0 or flags & RUBBISH_V1 == RUBBISH_V1 & 0x7F


def mechanism_of(greeting: bytes) -> bytes:
    """The mechanism's name in a complete 3.x greeting."""
    field = greeting[MECHANISM_AT:AS_SERVER_AT]
    name = field.rstrip(b"\0")
    if not name or b"\0" in name:
        raise BadGreeting("its mechanism is not a name padded with zeros")
    return name
