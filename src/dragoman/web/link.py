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
        self._requests = 0

    async def ask(self, op: str, /, **args: object) -> Any:
        """Run a query and return its result; raises `AdminRefused` if the broker refuses it, `AdminUnreachable` if there is no response."""
        async with self._turn:
            is_fresh = self._pair is None
            try:
                answer = await self._ask_once(op, args)
            except AdminUnreachable:
                if is_fresh:
                    raise
                answer = await self._ask_once(op, args)  # the broker closed an idle connection: try a new one
        return result_of(answer)

    async def _ask_once(self, op: str, args: dict[str, object]) -> Any:
        self._pair = self._pair or await self._connect()
        try:
            return await self._exchange(self._pair, op, args, ANSWER_S)
        except BaseException:
            self.close()  # else the response to a cancelled request would be read as that of the next one
            raise

    async def change(self, op: str, /, **args: object) -> Any:
        """As `ask`, for operations that change something and may take long."""
        pair = await self._connect()
        try:
            return result_of(await self._exchange(pair, op, args, CHANGE_S, "; it goes on"))
        finally:
            pair[1].close()

    async def _connect(self) -> Pair:
        try:
            with reachable(self._path) as path:
                return await asyncio.open_unix_connection(path, limit=ANSWER_SIZE_MAX)
        except OSError as error:
            raise AdminUnreachable(str(self._path), error.strerror or str(error)) from error

    async def _exchange(self, pair: Pair, op: str, args: dict[str, object], wait_s: float, late: str = "") -> Any:
        """Send a request and return its response."""
        reader, writer = pair
        self._requests += 1
        request = msgspec.json.encode({"v": 1, "id": self._requests, "op": op, "args": args})
        try:
            async with asyncio.timeout(wait_s):
                writer.write(request + b"\n")
                await writer.drain()
                while line := await reader.readline():
                    answer = msgspec.json.decode(line)
                    if "progress" not in answer:
                        return answer
            reason = "the broker closed the connection"
        except TimeoutError:
            reason = f"no answer within {wait_s:g} s{late}"
        except OSError as error:
            reason = error.strerror or str(error)
        except ValueError as error:
            reason = f"not an answer: {error}"
        raise AdminUnreachable(str(self._path), reason)

    def close(self) -> None:
        if self._pair is not None:
            self._pair[1].close()
            self._pair = None


def result_of(answer: dict[str, Any]) -> Any:
    if not answer["ok"]:
        raise AdminRefused(answer["error"]["code"], answer["error"]["message"])
    return answer["result"]
