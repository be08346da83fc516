"""Substitute bodies: of the same size, and of the same kind as far as a dialect depends on it.

| kind    | content                                                          | matters to                                |
|---------|------------------------------------------------------------------|-------------------------------------------|
| `job`   | a JSON list of two or more                                       | eMQP's original workers accept only this  |
| `json`  | any other JSON                                                   | ping-pong's json form embeds it unchanged |
| `text`  | UTF-8                                                            | ping-pong's json form accepts only text   |
| `bytes` | anything else                                                    |                                           |

A body that equals a ping-pong command (PONG, EXIT) cannot be sent to its workers: it is kept unchanged. So is an empty one.
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
    """A body of this kind and size that contains as much of `mark` as fits: the same mark gives the same bytes."""
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
