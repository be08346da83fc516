"""Async client of the broker's admin socket.

Queries share one connection, on which responses come in the order of requests. Each change uses a connection of its own: a purge of a
million messages must not delay the queries of all viewers.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman.errors import AdminRefused, AdminUnreachable
from dragoman.runtime.admin.unix_path import reachable

SOCKET_NAME: Final = "admin.sock"
ANSWER_S: Final = 10.0
CHANGE_S: Final = 60.0
ANSWER_SIZE_MAX: Final = 64 * 1024 * 1024

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Link:
    """A connection to the admin socket that opens on first use and reopens when it has ended."""

    def __init__(self, data: Path) -> None:
        self._path = data / SOCKET_NAME
        self._pair: Pair | None = None
        self._turn = asyncio.Lock()
        self._asked = 0

    async def ask(self, op: str, /, **args: object) -> Any:
        """Run a query and return its result; raises `AdminRefused` if the broker refuses it, `AdminUnreachable` if there is no response."""
        async with self._turn:
            is_fresh = self._pair is None
            try:
                return await self._ask_once(op, args)
            except AdminUnreachable:
                if is_fresh:
                    raise
                return await self._ask_once(op, args)  # the broker closed an idle connection: try a new one

    async def _ask_once(self, op: str, args: dict[str, object]) -> Any:
        try:
            if self._pair is None:
                self._pair = await self._connect()
            async with asyncio.timeout(ANSWER_S):
                return await self._converse(self._pair, op, args)
        except AdminUnreachable:
            self.close()
            raise
        except TimeoutError as error:
            self.close()
            raise AdminUnreachable(str(self._path), f"no answer within {ANSWER_S:g} s") from error
        except asyncio.CancelledError:
            self.close()  # else its response would be taken for the next request's
            raise

    async def change(self, op: str, /, **args: object) -> Any:
        """As `ask`, for operations that change something and may take long."""
        pair = await self._connect()
        try:
            async with asyncio.timeout(CHANGE_S):
                return await self._converse(pair, op, args)
        except TimeoutError as error:
            raise AdminUnreachable(str(self._path), f"no answer within {CHANGE_S:g} s; it goes on") from error
        finally:
            pair[1].close()

    async def _connect(self) -> Pair:
        try:
            with reachable(self._path) as path:
                return await asyncio.open_unix_connection(path, limit=ANSWER_SIZE_MAX)
        except OSError as error:
            raise AdminUnreachable(str(self._path), error.strerror or str(error)) from error

    async def _converse(self, pair: Pair, op: str, args: dict[str, object]) -> Any:
        reader, writer = pair
        self._asked += 1
        request = msgspec.json.encode({"v": 1, "id": self._asked, "op": op, "args": args})
        try:
            writer.write(request + b"\n")
            await writer.drain()
            while True:
                line = await reader.readline()
                if not line:
                    raise AdminUnreachable(str(self._path), "the broker closed the connection")
                answer = msgspec.json.decode(line)
                if "progress" not in answer:
                    break
        except OSError as error:
            raise AdminUnreachable(str(self._path), error.strerror or str(error)) from error
        except ValueError as error:
            raise AdminUnreachable(str(self._path), f"not an answer: {error}") from error
        if not answer["ok"]:
            raise AdminRefused(answer["error"]["code"], answer["error"]["message"])
        return answer["result"]

    def close(self) -> None:
        if self._pair is not None:
            self._pair[1].close()
            self._pair = None
