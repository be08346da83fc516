"""The pipe between a worker's parent, which holds the session, and a child, which runs the jobs.

    size(4, little end.)  MessagePack of [message type, content]

    parent → child   RUN     [(run number, body), …]        child → parent   HELLO   [(weight, queue), …]
                     CANCEL  run number                                      ENDED   [(run number, value), …]

End of file means that the other process has ended, for whatever reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, cast

import msgspec

HELLO: Final = 0
RUN: Final = 1
CANCEL: Final = 2
ENDED: Final = 3
HEAD_SIZE: Final = 4

encode: Final = msgspec.msgpack.Encoder().encode
decode: Final = msgspec.msgpack.Decoder().decode


class Pipe(asyncio.Protocol):
    """One end of the pipe. `hear` gets each message's type and content; `lost` is called when the pipe is closed."""

    def __init__(self, hear: Callable[[int, Any], None], lost: Callable[[], None]) -> None:
        self._hear = hear
        self._lost = lost
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast: uvloop's transports have the methods but not the base class.
        self._transport = cast(asyncio.Transport, transport)

    def say(self, word: int, content: object) -> None:
        if self._transport is not None and not self._transport.is_closing():
            data = encode((word, content))
            self._transport.write(len(data).to_bytes(HEAD_SIZE, "little") + data)

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        at = 0
        while len(received) - at >= HEAD_SIZE:
            end = at + HEAD_SIZE + int.from_bytes(received[at : at + HEAD_SIZE], "little")
            if len(received) < end:
                break
            word, content = decode(memoryview(received)[at + HEAD_SIZE : end])
            at = end
            self._hear(word, content)
        if at:
            del received[:at]

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
