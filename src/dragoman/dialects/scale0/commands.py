"""The commands and codes of Scale0, and the leading frames of its messages as encoded bytes."""

from __future__ import annotations

from typing import Final

from dragoman.model.enums import REFUSAL_CODES
from dragoman.wire.zmtp.frames import encode_message

CONNECT: Final = b"CONNECT"
CONFIG: Final = b"CONFIG"
NEEDBROKER: Final = b"NEEDBROKER"
CHANGEBROKER: Final = b"CHANGEBROKER"
PING: Final = b"PING"
PONG: Final = b"PONG"
TASK: Final = b"TASK"
TASKREPLY: Final = b"TASKREPLY"
ERROR: Final = b"ERROR"
FORCENEGOTIATE: Final = b"FORCENEGOTIATE"
# Of the legacy text form.
READY: Final = b"READY"
OK: Final = b"OK"
HEARTBEAT: Final = b"HEARTBEAT"

MOVED: Final = 301
WRONG_VERSION: Final = 426
HOSTILE: Final = 444
NOT_UNDERSTOOD: Final = 501
NOT_ACCEPTING: Final = 503

# The prefix of an ERROR's reason when the message was not accepted.
NOT_TAKEN: Final = "NOT_ACCEPTING"
SKEWED: Final = "CLOCK_SKEW"
REFUSED_WORDS: Final = [code.encode() for code in [NOT_TAKEN, SKEWED, *REFUSAL_CODES[1:]]]

# The first frames of these messages, with MORE, in the form of ZMTP 2.0 and later.
TASK_OPENING: Final = encode_message([TASK, b""])[:-2]
TASKREPLY_OPENING: Final = encode_message([TASKREPLY, b""])[:-2]
