"""The web page's child process, which serves the listener `http`; restarted whenever it ends.

The broker binds the port and keeps the socket open, so that browsers wait for a new child instead of being refused. The child uses
the admin socket and reads the journal's files like any other client. Secrets (tokens) are sent on its stdin, where neither `ps`
nor a log shows them.

    from the child  hello                      it is ready for its settings
    to the child    settings <json>            tokens, allowed hosts, the key that signs its cookies
    from the child  trouble <words>
"""

from __future__ import annotations

import asyncio
import errno
import secrets
import socket
from typing import Any, Final

import structlog

from dragoman.runtime.children.child import Child
from dragoman.runtime.children.followers import as_json
from dragoman.runtime.config import Config, Listener
from dragoman.runtime.process.home import Home
from dragoman.runtime.process.machine import bind

FINISH_S: Final = 5.0
BACKLOG: Final = 128
# The page of a killed broker keeps the port until it notices, some milliseconds later.
PATIENCE_S: Final = 5.0
LOOK_S: Final = 0.05

log = structlog.get_logger("dragoman.web")


async def bind_patiently(listener: Listener, home: Home) -> socket.socket:
    """Like `bind`, but after a crash it waits for a port that the previous broker's page may still use."""
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
            "past_s": 0.0 if config.journal.durability == "memory" else config.web.past_s,  # nothing is stored
            "request_s": config.limits.handshake_s,
            "hosts": [*config.web.hosts, *([] if host in ("0.0.0.0", "::") else [host])],
            "key": secrets.token_hex(32),  # for the whole boot, so that an open page survives a restart of the child
        }
        arguments = [str(home.path), str(sock.fileno())]
        self._child = Child(
            "web page", "dragoman.web.process", arguments, self._on_line, self._on_end, pass_fds=(sock.fileno(),)
        )
        self._sending: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._child.start()

    async def stop(self) -> None:
        await self._child.stop("", FINISH_S)
        self._sock.close()

    def view(self) -> dict[str, Any]:
        """For `dragoman status`."""
        return {"address": self.address, "pid": self._child.pid, "trouble": self.trouble}

    def _on_end(self, reason: str) -> None:
        self.trouble = self.trouble or reason  # the child's own report is more specific

    def _on_line(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "hello":
            self.trouble = ""
            sending = asyncio.ensure_future(self._child.send(f"settings {as_json(self._settings)}"))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)
        elif word == "trouble":
            log.error("the web page cannot be served", trouble=rest)
            self.trouble = rest
