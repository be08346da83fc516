"""A child process of a worker: a crew behind a pipe. Only the parent starts it: `python -m dragoman.client.worker.child FD ORDERS`.

It ends when the pipe is closed, so the children of a killed parent end, too.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from typing import Any

import msgspec
import uvloop

from dragoman import log_lines
from dragoman.client.app import App
from dragoman.client.worker import SWITCH_INTERVAL_S, WorkerSettings, target
from dragoman.client.worker.crew import LocalCrew
from dragoman.client.worker.pipe import CANCEL, ENDED, HELLO, RUN, Pipe
from dragoman.client.worker.worker import Duties
from dragoman.errors import BadTarget, NotInDialect, OperatorError
from dragoman.printable import error_text


class Orders(msgspec.Struct):
    """The parent's instructions to a child, passed at its start."""

    target: str
    url: str
    has_duties: bool  # one child of a program declares schedules and subscribes to news
    log_level: str
    settings: WorkerSettings


class Child:
    """The crew, and the pipe from the parent."""

    def __init__(self, app: App, orders: Orders) -> None:
        self._gone = asyncio.Event()
        self._pipe = Pipe(self._hear, self._gone.set)
        self._crew = LocalCrew(app, orders.settings, asyncio.get_running_loop(), self._ended)
        self._duties = Duties(app, self._crew) if orders.has_duties else None
        self._queues = target.queues_of(app, orders.settings)

    async def serve(self, sock: socket.socket) -> None:
        await asyncio.get_running_loop().create_connection(lambda: self._pipe, sock=sock)
        self._crew.start()
        if self._duties is not None:
            self._duties.start()
        self._pipe.say(HELLO, self._queues)
        await self._gone.wait()
        if self._duties is not None:
            await self._duties.stop()
        self._crew.stop()

    def _hear(self, word: int, content: Any) -> None:
        if word == RUN:
            self._crew.give([(run_no, body) for run_no, body in content])
        elif word == CANCEL:
            self._crew.cancel(content)

    def _ended(self, done: list[tuple[int, bytes]]) -> None:
        self._pipe.say(ENDED, done)


async def serve(app: App, sock: socket.socket, orders: Orders) -> None:
    await Child(app, orders).serve(sock)


def main() -> int:
    fd, text = sys.argv[1:]
    orders = msgspec.json.decode(text, type=Orders)
    log_lines.configure(orders.log_level, log_lines.WORKER_FORM)
    # The terminal's ^C and a supervisor's TERM reach the whole process group; the parent decides when a child ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        app = target.load(orders.target, orders.url)
        target.check(app, orders.settings)
    except (OperatorError, NotInDialect) as error:
        print(f"dragoman: {error_text(error)} [{error.code}]", file=sys.stderr)  # noqa: T201 - a program's last word
        return error.exit_code if isinstance(error, OperatorError) else BadTarget.exit_code
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(app, socket.socket(fileno=int(fd)), orders))
    return 0


if __name__ == "__main__":
    sys.exit(main())
