"""The commands of pingpong, its three forms, and frequent messages as encoded bytes."""

from __future__ import annotations

from typing import Final

from dragoman.wire.zmtp.frames import encode_message

READY: Final = b"READY"
PING: Final = b"PING"
PONG: Final = b"PONG"
EXIT: Final = b"EXIT"
JOB_COMPLETE: Final = b"JOB COMPLETE"
ERROR: Final = b"ERROR"

# The form in which a worker is addressed. UNKNOWN: it has only sent commands that all but the json form share.
UNKNOWN: Final = 0
PLAIN: Final = 1
PACKAGE: Final = 2
JSON: Final = 3
FORM_NAMES: Final = ["auto", "plain", "package", "json"]

# `"", PONG`, and the leading `""` of everything else, in the frames of ZMTP 2.0 and later.
PONG_MESSAGE: Final = encode_message([b"", PONG])
DELIMITER: Final = b"\x01\x00"
PACKAGE_ENDING: Final = b"\x01\x00\x00\x00"  # two empty frames, the second the last of its message
JSON_PONG: Final = b'{"status":"PONG"}'
JSON_FULL: Final = b'{"msg":"FULL"}'

# The form of a client's order, stored for its answer after a restart (`Message.headers`).
ASKED_IN_JSON: Final = b"json"


def envelope_of(frames: list[bytes]) -> int:
    """The number of leading empty frames: one from a DEALER, two from a REQ that adds its own, none from a peer that omits it. At least one
    frame is left, because an empty order or result is valid."""
    at = 0
    most = len(frames) - 1
    while at < most and at < 2 and not frames[at]:
        at += 1
    return at
