"""The first bytes of a ZMTP connection, and how peers of different protocol versions recognise each other by them.

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

from librt.strings import BytesWriter, write_i64_be

from dragoman.errors import BadGreeting

SIGNATURE_SIZE: Final = 10
VERSION_AT: Final = 10
MINOR_AT: Final = 11
MECHANISM_AT: Final = 12
AS_SERVER_AT: Final = 32
GREETING_SIZE_V2: Final = 12
GREETING_SIZE_V3: Final = 64

MECHANISM_SIZE_MAX: Final = 20
FILLER_SIZE: Final = 31

# In a 1.0 frame's flags only MORE, bit 0, has a meaning.
RUBBISH_V1: Final = 0xFE

VERSION_BYTE: Final = 3
MINOR_BYTE: Final = 1


def signature(identity: bytes) -> bytes:
    """The ten bytes that begin every connection."""
    out = BytesWriter()
    out.append(0xFF)
    write_i64_be(out, len(identity) + 1)
    out.append(0x7F)
    return out.getvalue()


def is_unversioned(received: bytes) -> bool:
    """Whether these first bytes come from a 1.0 peer; decided by the first byte if it is not 0xFF, else by the tenth."""
    return received[0] != 0xFF or (len(received) >= SIGNATURE_SIZE and received[9] & 1 == 0)


def is_identity_of_1_0(received: bytes) -> bool:
    """Whether these first bytes, at least two and not a 2.0 or 3.x greeting, can be the start of a 1.0 peer's identity frame."""
    if received[0] == 0:
        return False
    flags = received[9] if received[0] == 0xFF else received[1]
    return flags & RUBBISH_V1 == 0 or flags & RUBBISH_V1 == RUBBISH_V1 & 0x7F


def rest_of_greeting(mechanism: bytes, as_server: bool) -> bytes:
    """Bytes 11 to 63 of a 3.1 greeting."""
    assert len(mechanism) <= MECHANISM_SIZE_MAX
    out = BytesWriter()
    out.append(MINOR_BYTE)
    out.write(mechanism)
    out.write(bytes(MECHANISM_SIZE_MAX - len(mechanism)))
    out.append(1 if as_server else 0)
    out.write(bytes(FILLER_SIZE))
    return out.getvalue()


def mechanism_of(greeting: bytes) -> bytes:
    """The mechanism's name in a complete 3.x greeting."""
    field = greeting[MECHANISM_AT:AS_SERVER_AT]
    name = field.rstrip(b"\0")
    if not name or b"\0" in name:
        raise BadGreeting("its mechanism is not a name padded with zeros")
    return name
