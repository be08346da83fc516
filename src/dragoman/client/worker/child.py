"""A child of a worker program: a crew behind a pipe. `python -m dragoman.client.worker.child FD SETTINGS`, from the parent only.

It ends when the pipe does: a parent that died takes its children along once their jobs have ended.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from typing import Any

import msgspec
import uvloop

from dragoman.client.app import App
from dragoman.client.worker import target
from dragoman.client.worker.crew import LocalCrew
from dragoman.client.worker.duties import Duties
from dragoman.client.worker.pipe import CANCEL, ENDED, HELLO, RUN, Pipe
from dragoman.client.worker.settings import WorkerSettings
from dragoman.errors import OperatorError


class Orders(msgspec.Struct):
    """What the parent tells a child at its start."""

    target: str
    url: str
    has_duties: bool  # one child of a program declares schedules and hears news
    log_level: str
    settings: WorkerSettings


async def serve(app: App, sock: socket.socket, orders: Orders) -> None:
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    _, pipe = await loop.create_connection(lambda: Pipe(hear, gone.set), sock=sock)
    crew = LocalCrew(app.jobs, orders.settings, loop, lambda done: pipe.say(ENDED, done))

    def hear(word: int, content: Any) -> None:
        if word == RUN:
            crew.give([(run_no, body) for run_no, body in content])
        elif word == CANCEL:
            crew.cancel(content)

    crew.start()
    duties = Duties(app, crew)
    if orders.has_duties:
        duties.start()
    pipe.say(HELLO, target.queues_of(app, orders.settings))
    await gone.wait()
    await duties.stop()
    crew.stop()


def main() -> int:
    fd, text = sys.argv[1:]
    orders = msgspec.json.decode(text, type=Orders)
    logging.basicConfig(level=orders.log_level, format="%(asctime)s %(levelname)s %(process)d %(message)s")
    # The terminal's ^C and a supervisor's TERM reach the whole group; the parent decides when a child ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        app = target.load(orders.target, orders.url)
    except OperatorError as error:
        print(f"dragoman: {error} [{error.code}]", file=sys.stderr)  # noqa: T201 - a program's last word
        return error.exit_code
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(app, socket.socket(fileno=int(fd)), orders))
    return 0


if __name__ == "__main__":
    sys.exit(main())
