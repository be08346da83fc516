"""A broker of nothing but a TCP listener: it says exactly the bytes that a test makes it say, or nothing at all."""

from __future__ import annotations

import asyncio

DEADLINE_S = 60.0


class Visit:
    """One connection to it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def hear(self, wanted: bytes) -> None:
        """The next bytes must be these."""
        async with asyncio.timeout(DEADLINE_S):
            heard = await self._reader.readexactly(len(wanted))
        assert heard == wanted, f"heard {heard.hex(' ')} and not {wanted.hex(' ')}"

    async def take(self, size: int) -> bytes:
        async with asyncio.timeout(DEADLINE_S):
            return await self._reader.readexactly(size)

    async def end(self) -> bytes:
        """What is said until the other side closes."""
        async with asyncio.timeout(DEADLINE_S):
            return await self._reader.read()

    def say(self, data: bytes) -> None:
        self._writer.write(data)

    def close(self) -> None:
        self._writer.close()


class RawBroker:
    """`async with` listens at a free port; `visit` waits for the next connection."""

    def __init__(self) -> None:
        self._visits: asyncio.Queue[Visit] = asyncio.Queue()
        self._all: list[Visit] = []
        self.port = 0

    async def visit(self) -> Visit:
        async with asyncio.timeout(DEADLINE_S):
            return await self._visits.get()

    @property
    def visits(self) -> int:
        """How many connections there were."""
        return len(self._all)

    def _came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visit = Visit(reader, writer)
        self._all.append(visit)
        self._visits.put_nowait(visit)

    async def __aenter__(self) -> RawBroker:
        self._server = await asyncio.start_server(self._came, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for visit in self._all:
            visit.close()
