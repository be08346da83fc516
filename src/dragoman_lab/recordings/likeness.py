"""Compares a broker's messages with the recorded ones, except for values that vary from run to run.

| may vary | how it is recognised |
|---|---|
| heartbeats | a message with only PING, PONG or HEARTBEAT; neither expected nor compared |
| ids of the broker's choosing | a uuid, 32 hex digits, a frame of five bytes that begins with zero; in RQ the ID of a REQUEST to a consumer and every QUEUEID; in EBUS the rid of a REQ to a worker |
| instants | ten digits that begin with 1, with or without a fraction or milliseconds; in EBUS the milliseconds that a REQ to a worker has left |

An id that a peer chose must come back unchanged. One that the broker chose is remembered: where the recorded peer sends it, the replay
sends this run's id instead.
"""

from __future__ import annotations

import re
from typing import Final

from dragoman.runtime.admin.risp_text import Item, items_of
from dragoman.wire.risp import commands

LIFE_SIGNS: Final = {b"PING", b"PONG", b"HEARTBEAT"}
LIFE_SIGN_FRAMES_MAX: Final = 6
LIFE_SIGN_SIZE_MAX: Final = 200
JSON_LIFE_SIGN: Final = re.compile(rb'^\{"status": ?"(PING|PONG)"\}$')
VARIABLE: Final = re.compile(
    rb"(?P<id>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f]))"
    rb"|(?P<time>(?<![0-9.])1[0-9]{9}(?:[0-9]{3})?(?:\.[0-9]+)?(?![0-9]))"
)
EBUS_REQUEST: Final = [b"EBC01", b"REQ"]  # to a worker: EBC01, REQ, rid, data, milliseconds left
EBUS_WORKER: Final = b"EBW01"
RISP_LIFE_SIGNS: Final = (commands.PING, commands.PONG)


def is_life_sign(frames: list[bytes]) -> bool:
    if len(frames) == 1 and JSON_LIFE_SIGN.match(frames[0]):
        return True
    if len(frames) > LIFE_SIGN_FRAMES_MAX or sum(map(len, frames)) > LIFE_SIGN_SIZE_MAX:
        return False
    return any(frame in LIFE_SIGNS for frame in frames[:3])


class Likeness:
    """One replay's mapping of recorded ids to this run's."""

    def __init__(self) -> None:
        self._ours: dict[bytes, bytes] = {}  # recorded id → this run's
        self._peers: set[bytes] = set()  # ids that peers chose
        self._rids: dict[bytes, bytes] = {}  # of EBUS, towards workers: recorded rid → this run's
        self._risp: dict[tuple[str, int, int], int] = {}  # (connection, command, recorded number) → this run's

    def to_say(self, frames: list[bytes]) -> list[bytes]:
        """A recorded peer's frames with the broker's ids of this run; all other ids in them count as the peer's own from now on."""
        if frames[:1] == [EBUS_WORKER] and len(frames) > 2:
            frames = [*frames[:2], self._rids.get(frames[2], frames[2]), *frames[3:]]
        return [self._frame_to_say(frame) for frame in frames]

    def _frame_to_say(self, frame: bytes) -> bytes:
        if is_mark(frame):
            return self._ours.get(frame, frame)

        def ours(found: re.Match[bytes]) -> bytes:
            if found["id"] is None:
                return found[0]
            if found["id"] not in self._ours:
                self._peers.add(found["id"])
            return self._ours.get(found["id"], found["id"])

        return VARIABLE.sub(ours, frame)

    def is_like(self, recorded: list[bytes], received: list[bytes]) -> bool:
        """Whether the broker's message matches the recorded one; records the ids it chose."""
        if len(recorded) != len(received):
            return False
        if recorded[:2] == received[:2] == EBUS_REQUEST and len(recorded) > 3:
            self._rids[recorded[2]] = received[2]
            recorded, received = recorded[3:4], received[3:4]
        return all(self._is_like_frame(old, new) for old, new in zip(recorded, received, strict=True))

    def _is_like_frame(self, old: bytes, new: bytes) -> bool:
        if is_mark(old) and is_mark(new):
            self._ours[old] = new
            return True
        old_parts, new_parts = VARIABLE.split(old), VARIABLE.split(new)
        if len(old_parts) != len(new_parts) or old_parts[::3] != new_parts[::3]:
            return False
        for at in range(1, len(old_parts), 3):
            old_id, new_id = old_parts[at], new_parts[at]
            if (old_id is None) != (new_id is None):
                return False
            if old_id is not None and not self._is_like_id(old_id, new_id):
                return False
        return True

    def _is_like_id(self, old: bytes, new: bytes) -> bool:
        if old in self._peers:
            return old == new
        self._ours[old] = new
        return True

    def risp_to_say(self, conn: str, data: bytes) -> bytes:
        out = bytearray(data)
        for item in items_of(data)[0]:
            if item.command in (commands.ID, commands.QUEUEID) and isinstance(item.value, int):
                ours = self._risp.setdefault((conn, item.command, item.value), item.value)
                out[item.at : item.at + item.size] = ours.to_bytes(item.size, "big")
        return bytes(out)

    def is_like_operation(self, conn: str, recorded: list[Item], received: list[Item]) -> bool:
        """Operations are equal if they have the same command and parameters, in any order."""
        old, new = parameters(recorded), parameters(received)
        if old.keys() != new.keys() or recorded[-1].command != received[-1].command:
            return False
        for command, value in old.items():
            key = (conn, command, value) if isinstance(value, int) else None
            is_chosen = command == commands.QUEUEID or (
                command == commands.ID and recorded[-1].command == commands.REQUEST
            )
            if key is not None and is_chosen:
                number = new[command]
                assert isinstance(number, int)
                self._risp[key] = number
            elif (self._risp.get(key, value) if key is not None else value) != new[command]:
                return False
        return True


def is_mark(frame: bytes) -> bool:
    """Whether a frame is an identity such as a ROUTER gives to anonymous peers."""
    return len(frame) == 5 and frame[0] == 0


def parameters(items: list[Item]) -> dict[int, int | bytes | None]:
    return {item.command: item.value for item in items[:-1] if item.command not in (commands.CLEAR, commands.NOP)}


def operations_of(data: bytes) -> tuple[list[list[Item]], bytes]:
    """The operations in the bytes, without heartbeats, each with its parameters; and the rest of an incomplete one."""
    items, _ = items_of(data)
    operations: list[list[Item]] = []
    gathered: list[Item] = []
    used = 0
    for item in items:
        if item.command == commands.CLEAR:
            gathered = []
        if item.acts and item.command in RISP_LIFE_SIGNS:
            continue
        gathered.append(item)
        if item.acts:
            operations.append(list(gathered))
            used = item.at
            gathered.pop()
    return operations, data[used:]
