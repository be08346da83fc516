"""Blocking client of the admin socket (runtime/admin/socket is the server), one request at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman.errors import AdminRefused, AdminUnreachable
from dragoman.runtime.admin.unix_path import connect

CONNECT_S: Final = 5.0
ANSWER_S: Final = 60.0
CHUNK_SIZE: Final = 1 << 20
PAGE: Final = 1000  # rows
SOCKET_NAME: Final = "admin.sock"

Progress = Callable[[int, int], None]


class AdminClient:
    """A connection to the admin socket of one data directory."""

    def __init__(self, data: Path) -> None:
        self._path = data / SOCKET_NAME
        self._requests = 0
        try:
            self._socket = connect(self._path, CONNECT_S)
        except FileNotFoundError as error:
            raise AdminUnreachable(str(self._path), "there is no such socket") from error
        except OSError as error:
            raise AdminUnreachable(str(self._path), error.strerror or str(error)) from error
        # An operation with progress sends often; one without must respond within this.
        self._socket.settimeout(ANSWER_S)
        self._lines = self._socket.makefile("rb", CHUNK_SIZE)

    def __enter__(self) -> AdminClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

    def ask(self, op: str, progress: Progress | None = None, /, **args: object) -> Any:
        """Run an operation and return its result; raises `AdminRefused` if the broker refuses it."""
        self._requests += 1
        args = {name: shown(value) if isinstance(value, str) else value for name, value in args.items()}
        request = {"v": 1, "id": self._requests, "op": op, "args": args}
        try:
            self._socket.sendall(msgspec.json.encode(request) + b"\n")
            while True:
                answer = self._answer()
                if "progress" not in answer:
                    break
                if progress is not None:
                    progress(answer["progress"]["done"], answer["progress"]["total"])
        except TimeoutError as error:
            raise AdminUnreachable(str(self._path), f"no answer within {ANSWER_S:g} s") from error
        except OSError as error:
            raise AdminUnreachable(str(self._path), error.strerror or str(error)) from error
        if not answer["ok"]:
            raise AdminRefused(answer["error"]["code"], answer["error"]["message"])
        return answer["result"]

    def stream(self, op: str, end_s: float | None = None, /, **args: object) -> Iterator[dict[str, Any]]:
        """The events of a stream, until it ends or the monotonic clock reaches `end_s`; the connection cannot be used afterwards."""
        self._socket.sendall(msgspec.json.encode({"v": 1, "id": 0, "op": op, "args": args}) + b"\n")
        while True:
            self._socket.settimeout(None if end_s is None else max(end_s - time.monotonic(), 0.001))
            try:
                answer = self._answer()
            except TimeoutError:
                return
            except OSError as error:
                raise AdminUnreachable(str(self._path), error.strerror or str(error)) from error
            if "event" not in answer:
                break
            yield answer["event"]
        if not answer["ok"]:
            raise AdminRefused(answer["error"]["code"], answer["error"]["message"])

    def pages(self, op: str, **args: object) -> Iterator[dict[str, Any]]:
        """Every page of a list operation."""
        offset, total = 0, 1
        while offset < total:
            page = self.ask(op, offset=offset, limit=PAGE, **args)
            total = page["total"]
            offset += PAGE
            yield page

    def _answer(self) -> Any:
        line = self._lines.readline()
        if not line.endswith(b"\n"):
            raise ConnectionResetError("the broker closed the connection")
        return msgspec.json.decode(line)


def shown(text: str) -> str:
    """Escape an argument that is not Unicode as the broker escapes such names, because JSON carries Unicode only."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def ask(data: Path, op: str, progress: Progress | None = None, /, **args: object) -> Any:
    """Run one operation on a connection of its own."""
    with AdminClient(data) as client:
        return client.ask(op, progress, **args)


def is_running(data: Path) -> bool:
    """Whether a broker responds in this data directory."""
    try:
        AdminClient(data).close()
    except AdminUnreachable:
        return False
    return True


def queue_names(data: Path) -> dict[int, str]:
    """Names of all queues by number, from the running broker; empty if none runs. For facts that have only a number because the queue was
    named before the oldest stored fact."""
    try:
        with AdminClient(data) as client:
            return {queue["queue_no"]: queue["queue"] for page in client.pages("queues") for queue in page["queues"]}
    except AdminUnreachable:
        return {}
