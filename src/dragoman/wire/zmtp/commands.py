"""Bodies of ZMTP commands: the command's name, then its data.

    command   name size(1)  name  data
    READY     metadata: any number of  name size(1)  name  value size(4, big endian)  value
    ERROR     reason size(1)  reason
    PING      time to live in tenths of a second (2, big endian)  context (up to 16 bytes)
    PONG      the PING's context
    SUBSCRIBE, CANCEL   topic prefix

Readers raise `BadCommand`; builders assert, because the broker's own output must be correct.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be
from mypy_extensions import i64

from dragoman.errors import BadCommand
from dragoman.limits import METADATA_COUNT_MAX

READY: Final = b"READY"
ERROR: Final = b"ERROR"
PING: Final = b"PING"
PONG: Final = b"PONG"
SUBSCRIBE: Final = b"SUBSCRIBE"
CANCEL: Final = b"CANCEL"

# Metadata names are case-insensitive; the reader converts them to lower case.
SOCKET_TYPE: Final = b"socket-type"
IDENTITY: Final = b"identity"
# Dragoman's own: identifies a worker program across all its connections. ZMTP reserves X- for applications; peers ignore unknown names.
PROGRAM: Final = b"x-dragoman-program"

PING_TTL_SIZE: Final = 2
PING_CONTEXT_SIZE_MAX: Final = 16
REASON_SIZE_MAX: Final = 255


def split(command: bytes) -> tuple[bytes, bytes]:
    """The command's name and its data."""
    if not command:
        raise BadCommand("it is empty")
    size = command[0]
    if size == 0 or len(command) < 1 + size:
        raise BadCommand("its name is cut short")
    return command[1 : 1 + size], command[1 + size :]


def build(name: bytes, data: bytes) -> bytes:
    return bytes([len(name)]) + name + data


def build_property(name: bytes, value: bytes) -> bytes:
    """Build one property of a READY's metadata."""
    return bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value


def read_metadata(data: bytes) -> dict[bytes, bytes]:
    """All properties, names in lower case; the first occurrence of a name wins."""
    properties: dict[bytes, bytes] = {}
    end: i64 = len(data)
    at: i64 = 0
    count = 0
    while at < end:
        value_at: i64 = at + 1 + data[at]
        if value_at == at + 1 or value_at + 4 > end:
            raise BadCommand("a property's name is cut short")
        value_size: i64 = i64(read_i32_be(data, value_at))
        next_at: i64 = value_at + 4 + value_size
        if value_size < 0 or next_at > end:
            raise BadCommand("a property's value is cut short")
        count += 1
        if count > METADATA_COUNT_MAX:
            raise BadCommand(f"it has more than {METADATA_COUNT_MAX} properties")
        name = data[at + 1 : value_at].lower()
        if name not in properties:
            properties[name] = data[value_at + 4 : next_at]
        at = next_at
    return properties


def build_error(reason: str) -> bytes:
    """Build an ERROR command's body; the reason is truncated to the 255 bytes that its size byte allows."""
    text = reason.encode("ascii", "replace")[:REASON_SIZE_MAX]
    return build(ERROR, bytes([len(text)]) + text)


def reason_of(data: bytes) -> str:
    """The reason in an ERROR's data, safe to print."""
    if not data or len(data) < 1 + data[0]:
        raise BadCommand("its reason is cut short")
    return printable(data[1 : 1 + data[0]])


def printable(text: bytes) -> str:
    """A peer's bytes as ASCII without control characters, so they cannot affect a terminal or forge a log line."""
    return ascii(text.decode("latin-1"))[1:-1]


def build_pong(ping_data: bytes) -> bytes:
    """Build the PONG for a PING; a context that is too long is truncated, as in libzmq."""
    if len(ping_data) < PING_TTL_SIZE:
        raise BadCommand("its time to live is cut short")
    return build(PONG, ping_data[PING_TTL_SIZE : PING_TTL_SIZE + PING_CONTEXT_SIZE_MAX])
