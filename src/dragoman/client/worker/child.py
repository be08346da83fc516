"""A child process of a worker: a crew at the end of a pipe. Only the parent starts it: `python -m dragoman.client.worker.child FD ORDERS`.

It ends when the pipe is closed, so the children of a killed parent end, too.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any, Final, cast

import msgspec
import uvloop

from dragoman import log_lines
from dragoman.client.app import App
from dragoman.client.worker import SWITCH_INTERVAL_S, WorkerSettings
from dragoman.client.worker.crew import LocalCrew
from dragoman.client.worker.worker import Duties, check, load_app, queues_of
from dragoman.errors import BadTarget, NotInDialect, OperatorError
from dragoman.printable import error_text

HELLO: Final = 0
RUN: Final = 1
CANCEL: Final = 2
ENDED: Final = 3
HEAD_SIZE: Final = 4

encode: Final = msgspec.msgpack.Encoder().encode
decode: Final = msgspec.msgpack.Decoder().decode


class Pipe(asyncio.Protocol):
    """One end of the pipe between a parent and a child. `receive` gets each message's type and content; `lost` is called when it is closed.

        size(4, little end.)  MessagePack of [message type, content]

        parent → child   RUN     [(run number, body), …]        child → parent   HELLO   [(weight, queue), …]
                         CANCEL  run number                                      ENDED   [(run number, value), …]

    End of file means that the other process has ended, for whatever reason.
    """

    def __init__(self, receive: Callable[[int, Any], None], lost: Callable[[], None]) -> None:
        self._receive = receive
        self._lost = lost
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast: uvloop's transports have the methods but not the base class.
        self._transport = cast(asyncio.Transport, transport)

    def send(self, kind: int, content: object) -> None:
        if self._transport is not None and not self._transport.is_closing():
            data = encode((kind, content))
            self._transport.write(len(data).to_bytes(HEAD_SIZE, "little") + data)

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        at = 0
        while len(received) - at >= HEAD_SIZE:
            end = at + HEAD_SIZE + int.from_bytes(received[at : at + HEAD_SIZE], "little")
            if len(received) < end:
                break
            kind, content = decode(memoryview(received)[at + HEAD_SIZE : end])
            at = end
            self._receive(kind, content)
        if at:
            del received[:at]

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class Orders(msgspec.Struct):
    """The parent's instructions to a child, passed at its start."""

    target: str
    url: str
    has_duties: bool  # one child of a program declares schedules and subscribes to news
    log_level: str
    settings: WorkerSettings


async def serve(app: App, sock: socket.socket, orders: Orders) -> None:
    """Run the parent's jobs until it closes the pipe."""
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()

    def receive(kind: int, content: Any) -> None:
        if kind == RUN:
            crew.give([(run_no, body) for run_no, body in content])
        elif kind == CANCEL:
            crew.cancel(content)

    pipe = Pipe(receive, gone.set)
    crew = LocalCrew(app, orders.settings, loop, lambda done: pipe.send(ENDED, done))
    duties = Duties(app, crew)
    await loop.create_connection(lambda: pipe, sock=sock)
    crew.start()
    if orders.has_duties:
        duties.start()
    pipe.send(HELLO, queues_of(app, orders.settings))
    await gone.wait()
    if orders.has_duties:
        await duties.stop()
    crew.stop()


def main() -> int:
    fd, text = sys.argv[1:]
    orders = msgspec.json.decode(text, type=Orders)
    log_lines.configure(orders.log_level, log_lines.WORKER_FORM)
    # The terminal's ^C and a supervisor's TERM reach the whole process group; the parent decides when a child ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        app = load_app(orders.target, orders.url)
        check(app, orders.settings)
    except (OperatorError, NotInDialect) as error:
        print(f"dragoman: {error_text(error)} [{error.code}]", file=sys.stderr)  # noqa: T201 - a program's last word
        return error.exit_code if isinstance(error, OperatorError) else BadTarget.exit_code
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(app, socket.socket(fileno=int(fd)), orders))
    return 0


if __name__ == "__main__":
    sys.exit(main())
