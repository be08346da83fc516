"""One connection of a peer to the broker under fire: frames over ZMTP, or operations of RISP, read by the simulator's judge."""

from __future__ import annotations

import asyncio
import json

from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message
from dragoman_lab.sim.machine.risp import RispEnd

READ_SIZE = 65536
RETRY_S = 0.02


class Link:
    """`hear` raises ConnectionError when the broker is gone."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._zmtp: ZmtpConnection | None = None
        self._risp = RispEnd()

    @classmethod
    async def open(cls, port: int, identity: bytes | None) -> Link:
        """`identity` None: no ZMTP, just RISP."""
        link = cls(*await asyncio.open_connection("127.0.0.1", port))
        if identity is not None:
            try:
                await link._shake_hands(ZmtpConnection(b"DEALER", identity))
            except BaseException:  # also when the run is over: what was opened is closed
                link.close()
                raise
        return link

    async def _shake_hands(self, zmtp: ZmtpConnection) -> None:
        self._zmtp = zmtp
        self._writer.write(zmtp.greeting())
        while not zmtp.is_ready:
            early = zmtp.receive(await self._read())
            assert not early, "nothing is said before it is asked"
            self._writer.write(zmtp.take_outgoing())

    async def _read(self) -> bytes:
        data = await self._reader.read(READ_SIZE)
        if not data:
            raise ConnectionError
        return data

    def say(self, *frames: bytes) -> None:
        self._writer.write(encode_message(list(frames)) if self._zmtp is not None else b"".join(frames))

    async def hear(self, beat_s: float) -> list[list[bytes]]:
        """What has come; nothing when `beat_s` have passed."""
        try:
            async with asyncio.timeout(beat_s):  # `wait_for` may swallow a cancel in Python 3.11
                data = await self._read()
        except TimeoutError:
            return []
        if self._zmtp is None:
            return self._risp.receive(data)
        messages = self._zmtp.receive(data)
        self._writer.write(self._zmtp.take_outgoing())
        return messages

    def close(self) -> None:
        self._writer.close()


def body_of(token: bytes) -> bytes:
    return json.dumps(["run", {"token": token.decode()}]).encode()


def token_of(body: bytes) -> bytes:
    return str(json.loads(body)[1]["token"]).encode()


def value_of(token: bytes) -> bytes:
    """What every worker answers, so that any client can tell whether the answer is its own."""
    return json.dumps({"value": token.decode()}).encode()
