"""The web page beside the broker: a child process that serves the listener `http`, started again whenever it ends.

The broker binds the port and keeps the socket, so that people who look wait for a new child instead of being refused. The child asks
the admin socket and reads the journal's files like any other asker; what it must not let others see (tokens) it is told on its stdin,
where neither `ps` nor a log shows it.

    from the child  hello                      it is there and wants to be told
    to the child    settings <json>            tokens, allowed hosts, the key its cookies are signed with
    from the child  trouble <words>
"""

from __future__ import annotations

import asyncio
import errno
import secrets
import socket
from typing import Any, Final

import msgspec
import structlog

from dragoman.runtime.binding import bind
from dragoman.runtime.child import Child
from dragoman.runtime.config import Config, Listener
from dragoman.runtime.home import Home

FINISH_S: Final = 5.0
BACKLOG: Final = 128
# A killed broker's page holds the port until it has noticed: some milliseconds.
PATIENCE_S: Final = 5.0
LOOK_S: Final = 0.05

log = structlog.get_logger("dragoman.web")


async def bind_patiently(listener: Listener, home: Home) -> socket.socket:
    """As `bind`, but a port that a predecessor's page may still hold is waited for."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + (PATIENCE_S if home.is_after_crash else 0.0)
    while True:
        try:
            return bind(listener, BACKLOG)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or loop.time() >= end_s:
                raise
        await asyncio.sleep(LOOK_S)


class Webpage:
    """One child at a time, until the broker stops."""

    def __init__(self, config: Config, home: Home, sock: socket.socket) -> None:
        host, port = sock.getsockname()[:2]
        self.address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self.trouble = ""
        self._sock = sock
        self._settings = {
            "token": config.web.token,
            "read_token": config.web.read_token,
            "metrics_queues_max": config.web.metrics_queues_max,
            "past_s": config.web.past_s,
            "request_s": config.limits.handshake_s,
            "hosts": [*config.web.hosts, *([] if host in ("0.0.0.0", "::") else [host])],
            "key": secrets.token_hex(32),  # of this boot: a page that was open outlives a child
        }
        arguments = ["--data", str(home.path), "--fd", str(sock.fileno())]
        self._child = Child("web page", "dragoman.web", arguments, self._hear, self._fail, pass_fds=(sock.fileno(),))
        self._tellers: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._child.start()

    async def stop(self) -> None:
        await self._child.stop("", FINISH_S)
        self._sock.close()

    def view(self) -> dict[str, Any]:
        """For `dragoman status`."""
        return {"address": self.address, "pid": self._child.pid, "trouble": self.trouble}

    def _fail(self, trouble: str) -> None:
        self.trouble = self.trouble or trouble  # what the child said of itself says more

    def _hear(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "hello":
            self.trouble = ""
            told = msgspec.json.encode(self._settings).decode()
            teller = asyncio.ensure_future(self._child.tell(f"settings {told}"))
            self._tellers.add(teller)
            teller.add_done_callback(self._tellers.discard)
        elif word == "trouble":
            log.error("the web page cannot be served", trouble=rest)
            self.trouble = rest
