"""The tables of an exported test as the player reads them: plain dicts and tuples in, typed objects out.

Clients    `dialect`, `identity` (none: anonymous), `socket` (REQ; else DEALER)
Workers    `dialect`, `queues` (name → weight; of rq, rank), `identity`, `slots` (ebus, rq: how many it takes at once), `shape` (emqp:
           `original`; pingpong: `json`), `heartbeat_s` (scale0: its own interval)
Messages   `client`, `queue`, `body` (bytes, or kind and size: see below), `id` (its client's; else its name in the table), `headers` (as
           its dialect keeps them), `retries`, `timeout_s`, `noreply` (rq); `flags`, `priority`, `expires_s` (of a schedule's)

Substitute bodies have the same size, and the same kind as far as a dialect depends on it:

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
from collections.abc import Mapping
from typing import Any, Final

from dragoman.model.enums import FLAG_NAMES

Table = Mapping[str, Mapping[str, Any]]
Row = tuple[Any, ...]  # at_s, who, what, and further details

BY_SCHEDULE: Final = "schedule"  # instead of a client: the broker made the message itself
JOB_FRAME: Final = (b'["run","', b'"]')
JOB_SHORTEST: Final = b"[0,0]"
KEPT: Final = (b"", b"PONG", b"EXIT")


class MessageRow:
    """One message, as its client sends it."""

    def __init__(self, name: str, row: Mapping[str, Any]) -> None:
        body = row["body"]
        self.queue = as_bytes(row["queue"])
        self.client_id = as_bytes(row.get("id", name))
        self.body: bytes = body if isinstance(body, bytes) else make_body(body[0], body[1], name)
        self.headers = as_bytes(row.get("headers", b""))
        self.flags = sum(1 << FLAG_NAMES.index(flag) for flag in row.get("flags", ()))
        self.priority: int = row.get("priority", 0)
        self.retries: int = row.get("retries", -1)
        self.timeout_s: float = row.get("timeout_s", 0)
        self.expires_s: float = row.get("expires_s", 0)
        self.is_noreply: bool = row.get("noreply", False)


class PeerRow:
    """One client or worker."""

    def __init__(self, name: str, row: Mapping[str, Any]) -> None:
        self.name = name
        self.dialect: str = row["dialect"]
        self.identity = as_bytes(row.get("identity", b""))
        self.socket = as_bytes(row.get("socket", "DEALER"))
        self.queues = read_queues(row.get("queues", {}))
        self.slots: int = row.get("slots", 1)
        self.shape: str = row.get("shape", "")
        self.heartbeat_s: float = row.get("heartbeat_s", 0)  # of a scale0 worker that has its own


def read_queues(queues: Mapping[str, int]) -> dict[bytes, int]:
    return {as_bytes(queue): weight for queue, weight in queues.items()}


def as_bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


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
