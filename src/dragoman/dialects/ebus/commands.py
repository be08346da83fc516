"""The commands of ebus, and the leading frames of common messages as encoded bytes.

A client signs EBC01 and is answered with EBW01; a worker signs EBW01 and is answered with EBC01: the broker signs as the other role.
"""

from __future__ import annotations

from typing import Final

from dragoman.wire.zmtp.frames import encode_message
from dragoman.wire.zmtp.reader import FramePrefix

CLIENT: Final = b"EBC01"
WORKER: Final = b"EBW01"

REQ: Final = b"REQ"
REQUEST: Final = b"REQUEST"  # the specification's name for REQ
REPLY: Final = b"REPLY"
REJECT: Final = b"REJECT"
CANCEL: Final = b"CANCEL"
READY: Final = b"READY"
PING: Final = b"PING"
HEARTBEAT: Final = b"HEARTBEAT"
DISCONNECT: Final = b"DISCONNECT"
SERVICES: Final = b"SERVICES"
WORKERS: Final = b"WORKERS"

# Four literal bytes: the original's way to send no value.
NULL: Final = b"null"

# The broker's own channels.
STARTED_CHANNEL: Final = b"ebus/started"
SHUTDOWN_CHANNEL: Final = b"ebus/shutdown"
WORKERS_CHANNEL: Final = b"ebus/workers"


def opening(frames: list[bytes]) -> bytes:
    """Encode frames in the form of ZMTP 2.0 and later, all with MORE."""
    return encode_message([*frames, b""])[:-2]


# The most frequent incoming messages, matched as a frame prefix.
ASK_OPENING: Final = opening([b"", CLIENT, REQ])
ANSWER_OPENING: Final = opening([WORKER, REPLY])
PREFIXES: Final[list[FramePrefix]] = [
    FramePrefix(ASK_OPENING, len(CLIENT) + len(REQ)),
    FramePrefix(ANSWER_OPENING, len(WORKER) + len(REPLY)),
]

# The most frequent outgoing messages, in the form of the original's peers.
REQ_OPENING: Final = opening([CLIENT, REQ])
REPLY_OPENING: Final = opening([b"", WORKER, REPLY])
REJECT_OPENING: Final = opening([b"", WORKER, REJECT])
