"""The commands of eMQP, and the leading frames of common messages as encoded bytes."""

from __future__ import annotations

from typing import Final

from dragoman.wire.zmtp.frames import encode_message
from dragoman.wire.zmtp.reader import FramePrefix

VERSION: Final = b"eMQP/1.0"
VERSION_MAJOR: Final = b"eMQP/1."

INFORM: Final = b"INFORM"
ACK: Final = b"ACK"
READY: Final = b"READY"
REQUEST: Final = b"REQUEST"
REPLY: Final = b"REPLY"
SCHEDULE: Final = b"SCHEDULE"
UNSCHEDULE: Final = b"UNSCHEDULE"
STATE: Final = b"STATE"  # an extension: the state of the request with this id
CANCEL: Final = b"CANCEL"  # an extension: cancel the request with this id
HEARTBEAT: Final = b"HEARTBEAT"
KBYE: Final = b"KBYE"
KBAI: Final = b"KBAI"
DISCONNECT: Final = b"DISCONNECT"
PUBLISH: Final = b"PUBLISH"
STATUS: Final = b"STATUS"
SHOW_WORKERS: Final = b"ROUTER_SHOW_WORKERS"
SHOW_SCHEDULERS: Final = b"ROUTER_SHOW_SCHEDULERS"

WORKER: Final = b"worker"
SCHEDULER: Final = b"scheduler"
BYTES: Final = b"bytes"
DISMISSED: Final = b"dismissed"  # an extension: after a HEARTBEAT's time, to a worker that accepts bytes

# `{"value": …}` is an answer, whatever happened; these two values mean that the job timed out.
TIMEOUT_VALUES: Final = [b'{"value": "TimeoutError"}', b'{"value":"TimeoutError"}']
ERROR_START: Final = b'{"error"'


def opening(command: bytes) -> bytes:
    """Encode the frames `"", eMQP/1.0, command` in the form of ZMTP 2.0 and later, all with MORE."""
    frames = encode_message([b"", VERSION, command, b""])
    return frames[:-2]


REQUEST_OPENING: Final = opening(REQUEST)
REPLY_OPENING: Final = opening(REPLY)
READY_OPENING: Final = opening(READY)
PREFIXES: Final[list[FramePrefix]] = [
    FramePrefix(REQUEST_OPENING, len(VERSION) + len(REQUEST)),
    FramePrefix(REPLY_OPENING, len(VERSION) + len(REPLY)),
    FramePrefix(READY_OPENING, len(VERSION) + len(READY)),
]


def is_failure(value: bytes) -> bool:
    """Whether a worker's answer means that the job did not succeed."""
    return value.startswith(ERROR_START) or value in TIMEOUT_VALUES
