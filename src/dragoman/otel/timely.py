"""An HTTP response with one timeout for all of it: a socket's own timeout applies to each read, so a slow trickle would never time out."""

from __future__ import annotations

import http.client
import io
import socket
import time
from typing import Any


class TimelyResponse(http.client.HTTPResponse):
    """An HTTP response for which the socket's timeout, as set when the response begins, covers the whole response."""

    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp = io.BufferedReader(TimelyBytes(sock, self.fp.detach()))


class TimelyBytes(io.RawIOBase):
    """Reads from a socket until the deadline; then raises TimeoutError."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase) -> None:
        super().__init__()
        self._sock, self._raw = sock, raw
        self._end_s = time.monotonic() + (sock.gettimeout() or 0.0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._end_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left_s)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
