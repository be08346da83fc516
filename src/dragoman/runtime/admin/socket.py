"""The admin socket: one JSON request per line, one JSON answer per line, on a unix socket that only its owner can open.

    → {"v":1,"id":1,"op":"status","args":{}}
    ← {"id":1,"progress":{"done":3,"total":10}}                              any number of these, for long work
    ← {"id":1,"event":{…}}                                                   and of these, for a stream
    ← {"id":1,"ok":true,"result":{…}}
    ← {"id":1,"ok":false,"error":{"code":"NOT_FOUND","message":"…"}}

Requests of one connection are answered in order. A stream continues until the client sends anything or disconnects. A request that cannot be
parsed, is too long or fails unexpectedly is answered with an error; the broker continues. docs/reference/admin.md lists the operations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog

from dragoman.errors import DragomanError
from dragoman.limits import ADMIN_CONNECTIONS_MAX, ADMIN_REQUEST_SIZE_MAX, ADMIN_STREAM_SIZE_MAX, ERROR_TEXT_SIZE_MAX
from dragoman.printable import cut, error_text
from dragoman.runtime.admin import changes, queries, tap
from dragoman.runtime.admin.operation import Operation, SendEvent, Server
from dragoman.runtime.admin.unix_path import bind_private

VERSION: Final = 1
OPERATIONS: Final = {
    found.name: found
    for module in (queries, changes, tap)
    for found in vars(module).values()
    if isinstance(found, Operation)
}
RunStream = Callable[[SendEvent], Coroutine[Any, Any, object]]

log = structlog.get_logger("dragoman.admin")


class Request(msgspec.Struct):
    """One line. `id` is chosen by the client and returned with the answer."""

    op: str
    v: int = VERSION
    id: int | str = 0
    args: dict[str, Any] = msgspec.field(default_factory=dict)


class AdminServer:
    """Serves the operations of one broker."""

    def __init__(self, server: Server) -> None:
        self._process = server
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self, path: Path) -> None:
        sock = bind_private(path)
        self._path = path
        self._server = await asyncio.start_unix_server(self._serve, sock=sock, limit=ADMIN_REQUEST_SIZE_MAX)

    async def stop(self) -> None:
        if self._server is None or self._path is None:
            return
        self._server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._open) >= ADMIN_CONNECTIONS_MAX:
            writer.write(_refusal(0, "TOO_MANY_CONNECTIONS", f"at most {ADMIN_CONNECTIONS_MAX} admin connections"))
            writer.close()
            return
        self._open.add(task)
        try:
            await self._converse(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client has disconnected, or the broker stops
        finally:
            self._open.discard(task)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                line = await reader.readline()
            except ValueError:  # no line end within the limit: the start of the next request is unknown
                writer.write(_refusal(0, "REQUEST_TOO_LONG", f"a request has at most {ADMIN_REQUEST_SIZE_MAX} bytes"))
                await writer.drain()
                return
            if not line:
                return
            if line.strip():
                writer.write(await self._answer_line(line, reader, writer))
                await writer.drain()

    async def _answer_line(self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        try:
            request = _decoder.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            return _refusal(0, "BAD_REQUEST", f"not a request: {error}")
        name = f"admin {request.op}" if request.op in OPERATIONS else "admin request"
        return await self._process.broker.watchdog.watched(self._answer(request, reader, writer), name)

    async def _answer(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        if request.v != VERSION:
            return _refusal(request.id, "BAD_VERSION", f"version {VERSION} is spoken here, not {request.v}")
        operation = OPERATIONS.get(request.op)
        if operation is None:
            return _refusal(request.id, "UNKNOWN_OPERATION", f"there is no operation {request.op!r}")

        def progress(done: int, total: int) -> None:
            writer.write(_line({"id": request.id, "progress": {"done": done, "total": total}}))

        try:
            given = msgspec.convert(request.args, operation.arguments)
            if operation.is_stream:
                run = partial(operation.run, self._process, given)
                result = await self._stream(run, request.id, reader, writer)
            else:
                result = await operation.run(self._process, given, progress)
            return _line({"id": request.id, "ok": True, "result": result})
        except msgspec.ValidationError as error:
            return _refusal(request.id, "BAD_ARGUMENT", str(error))
        except DragomanError as error:
            return _refusal(request.id, error.code, str(error))
        except OSError as error:
            return _refusal(request.id, "OS_ERROR", str(error))
        except Exception as error:
            # An internal error, but only of this request: the broker and other clients must not be affected.
            log.exception("an admin operation failed", op=request.op)
            return _refusal(request.id, "INTERNAL", f"{type(error).__name__}: {error_text(error)}")

    async def _stream(
        self, run: RunStream, request_id: int | str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> object:
        """Send events until the operation ends, or the client sends anything or disconnects. Events that it is too slow for are dropped and
        counted."""
        lost = 0

        def send(event: dict[str, object]) -> None:
            nonlocal lost
            if writer.transport.get_write_buffer_size() > ADMIN_STREAM_SIZE_MAX:
                lost += 1
                return
            if lost:
                writer.write(_line({"id": request_id, "event": {"kind": "lost", "count": lost}}))
                lost = 0
            writer.write(_line({"id": request_id, "event": event}))

        work = asyncio.ensure_future(run(send))
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            return work.result() if work.done() else {}
        finally:
            for task in (work, gone):
                task.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)


_decoder = msgspec.json.Decoder(Request)


def _line(answer: dict[str, object]) -> bytes:
    return msgspec.json.encode(answer) + b"\n"


def _refusal(request_id: int | str, code: str, message: str) -> bytes:
    return _line({"id": request_id, "ok": False, "error": {"code": code, "message": cut(message, ERROR_TEXT_SIZE_MAX)}})
