"""ebus's words, and the frames that begin a message, ready as bytes.

A client signs EBC01 and is answered by EBW01; a worker signs EBW01 and is answered by EBC01: the broker signs for the other end.
"""

from __future__ import annotations

from typing import Final

from dragoman.wire.zmtp.frames import encode_message
from dragoman.wire.zmtp.opening import SIZE_MAX, SIZE_MIN, Opening

CLIENT: Final = b"EBC01"
WORKER: Final = b"EBW01"

REQ: Final = b"REQ"
REQUEST: Final = b"REQUEST"  # the document's word for REQ
REPLY: Final = b"REPLY"
REJECT: Final = b"REJECT"
CANCEL: Final = b"CANCEL"
READY: Final = b"READY"
PING: Final = b"PING"
HEARTBEAT: Final = b"HEARTBEAT"
DISCONNECT: Final = b"DISCONNECT"
SERVICES: Final = b"SERVICES"
WORKERS: Final = b"WORKERS"

# Four literal bytes: how the original says that there is nothing to say.
NULL: Final = b"null"

# The broker's own channels.
STARTED_CHANNEL: Final = b"ebus/started"
SHUTDOWN_CHANNEL: Final = b"ebus/shutdown"
WORKERS_CHANNEL: Final = b"ebus/workers"


def opening(frames: list[bytes]) -> bytes:
    """Frames in the form of ZMTP 2.0 and later, all with MORE."""
    return encode_message([*frames, b""])[:-2]


# What comes most, recognised whole where openings may be as short as these.
ASK_OPENING: Final = opening([b"", CLIENT, REQ])
ANSWER_OPENING: Final = opening([WORKER, REPLY])
OPENINGS: Final[list[Opening]] = [
    Opening(frames, body_size)
    for frames, body_size in [
        (ASK_OPENING, len(CLIENT) + len(REQ)),
        (ANSWER_OPENING, len(WORKER) + len(REPLY)),
    ]
    if SIZE_MIN <= len(frames) <= SIZE_MAX
]

# What leaves most, in the shape of the original's peers.
REQ_OPENING: Final = opening([CLIENT, REQ])
REPLY_OPENING: Final = opening([b"", WORKER, REPLY])
REJECT_OPENING: Final = opening([b"", WORKER, REJECT])
