"""Bodies that stand in for others: of the same size, and of the same kind as far as a dialect looks at it.

| kind    | what it is                                                       | who cares                                 |
|---------|------------------------------------------------------------------|-------------------------------------------|
| `job`   | a JSON list of two or more                                       | eMQP's original workers take nothing else |
| `json`  | any other JSON                                                   | ping-pong's json form puts it in as it is |
| `text`  | UTF-8                                                            | ping-pong's json form takes nothing else  |
| `bytes` | anything else                                                    |                                           |

A word of ping-pong's own (PONG, EXIT) is no body its workers can be told: it stays what it is. So does an empty one.
"""

from __future__ import annotations

import json
from typing import Final

JOB_FRAME: Final = (b'["run","', b'"]')
JOB_SHORTEST: Final = b"[0,0]"
KEPT: Final = (b"", b"PONG", b"EXIT")


def kind_of(body: bytes) -> str:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return "bytes"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "text"
    return "job" if isinstance(value, list) and len(value) > 1 else "json"


def make_body(kind: str, size: int, mark: str) -> bytes:
    """A body that shows whose it is, as far as there is room: the same mark gives the same bytes."""
    if kind == "job":
        first, last = JOB_FRAME
        room = size - len(first) - len(last)
        return first + filling(room, mark) + last if room >= 0 else JOB_SHORTEST.ljust(size)
    if kind == "json":
        return b'"%s"' % filling(size - 2, mark) if size > 1 else b"0"
    if kind == "text":
        return filling(size, mark)
    return (b"\xff" + filling(size, mark))[:size]


def filling(size: int, mark: str) -> bytes:
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in mark).encode() + b" "
    return (plain * (size // len(plain) + 1))[:size]
