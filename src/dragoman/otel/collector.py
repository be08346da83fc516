"""OTLP over HTTP: one POST per batch, on a persistent connection.

    2xx                         accepted
    400, 413                    refused for good: this batch will never be accepted
    all else, or no response    unavailable: retried later; a `Retry-After` is respected

One timeout covers everything from connecting to the response's last byte, so a collector that sends a byte now and then is unavailable,
too. No redirect is followed and no proxy used: spans go only to the configured address.
"""

from __future__ import annotations

import gzip
import http.client
import io
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from dragoman.errors import CollectorAway, SpansRefused

PATH: Final = "/v1/traces"
TIMEOUT_S: Final = 10.0
RESPONSE_SIZE_MAX: Final = 64 * 1024
WORDS_SIZE_MAX: Final = 200  # characters of a collector's text that we repeat
RETRY_AFTER_S_MAX: Final = 300.0
REFUSALS: Final = (400, 413)
# A name that cannot be looked up is a ValueError.
FAILURES: Final = (OSError, http.client.HTTPException, ValueError)


class Collector:
    """The client of one endpoint."""

    def __init__(
        self, endpoint: str, headers: Mapping[str, str], compression: str = "none", timeout_s: float = TIMEOUT_S
    ) -> None:
        self.endpoint = endpoint
        self._timeout_s = timeout_s
        self._parts = urlsplit(endpoint)
        self._path = self._parts.path.rstrip("/") + PATH
        self._headers = {"Content-Type": "application/x-protobuf", "User-Agent": "dragoman", **headers}
        self._is_zipped = compression == "gzip"
        if self._is_zipped:
            self._headers["Content-Encoding"] = "gzip"
        self._connection: http.client.HTTPConnection | None = None

    def post(self, body: bytes) -> bytes:
        """Send a request and return the response's body; raises `CollectorAway` or `SpansRefused` if it is not accepted."""
        if self._is_zipped:
            body = gzip.compress(body, 1)
        end_s = time.monotonic() + self._timeout_s
        for was_open in (self._connection is not None, False):
            try:
                return self._post(body, end_s)
            except FAILURES as error:
                self.close()
                # A server may close an idle connection at any time: then the request is sent once more.
                if not was_open or isinstance(error, TimeoutError):
                    text = str(error)[:WORDS_SIZE_MAX] or type(error).__name__
                    raise CollectorAway(self.endpoint, text) from error
        raise AssertionError("the second attempt returns or raises")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _post(self, body: bytes, end_s: float) -> bytes:
        connection = self._connection or self._connect(left_s(end_s))
        connection.sock.settimeout(left_s(end_s))
        connection.request("POST", self._path, body, self._headers)
        connection.sock.settimeout(left_s(end_s))
        response = connection.getresponse()
        body = response.read(RESPONSE_SIZE_MAX + 1)
        if len(body) > RESPONSE_SIZE_MAX or response.will_close:
            self.close()
        if 200 <= response.status < 300:
            return body
        problem = f"it answers {response.status} {response.reason[:WORDS_SIZE_MAX]}"
        if response.status in REFUSALS:
            raise SpansRefused(self.endpoint, problem)
        raise CollectorAway(self.endpoint, problem, retry_after_s(response.getheader("Retry-After")))

    def _connect(self, timeout_s: float) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)
        connection.response_class = TimelyResponse
        connection.connect()
        self._connection = connection
        return connection


def left_s(end_s: float) -> float:
    """Seconds until `end_s`; raises TimeoutError if none are left."""
    seconds = end_s - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("timed out")
    return seconds


def retry_after_s(text: str | None) -> float:
    """The header's seconds; 0 for a date, so that our own backoff applies."""
    return min(float(text), RETRY_AFTER_S_MAX) if text is not None and text.isdecimal() and len(text) < 10 else 0.0


class TimelyResponse(http.client.HTTPResponse):
    """An HTTP response that must end within the socket's timeout; a socket applies it to each read, so a slow trickle would never time out."""

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
        self._sock.settimeout(left_s(self._end_s))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
