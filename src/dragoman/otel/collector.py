"""OTLP over HTTP: one POST for each batch, on a connection that is kept.

    2xx                       taken
    400, 413                  refused for good: as it is, it will never be taken
    all else, or no answer    away: offered again later; a `Retry-After` is kept to

No redirect is followed and no proxy asked: spans go where the operator said.
"""

from __future__ import annotations

import gzip
import http.client
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from dragoman.errors import CollectorAway, SpansRefused

PATH: Final = "/v1/traces"
TIMEOUT_S: Final = 10.0
RESPONSE_SIZE_MAX: Final = 64 * 1024
RETRY_AFTER_S_MAX: Final = 300.0
REFUSALS: Final = (400, 413)


class Collector:
    """One endpoint."""

    def __init__(self, endpoint: str, headers: Mapping[str, str], compression: str = "none") -> None:
        self.endpoint = endpoint
        self._parts = urlsplit(endpoint)
        self._path = self._parts.path.rstrip("/") + PATH
        self._headers = {"Content-Type": "application/x-protobuf", "User-Agent": "dragoman", **headers}
        self._is_zipped = compression == "gzip"
        if self._is_zipped:
            self._headers["Content-Encoding"] = "gzip"
        self._connection: http.client.HTTPConnection | None = None

    def post(self, body: bytes) -> bytes:
        """Send a request; what the collector says to it. `CollectorAway` or `SpansRefused` where it is not taken."""
        if self._is_zipped:
            body = gzip.compress(body, 1)
        is_kept = self._connection is not None
        try:
            return self._post(body)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if not is_kept:
                raise CollectorAway(self.endpoint, str(error) or type(error).__name__) from error
        # A server may end an idle connection at any time; that is no trouble.
        try:
            return self._post(body)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise CollectorAway(self.endpoint, str(error) or type(error).__name__) from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _post(self, body: bytes) -> bytes:
        connection = self._connection or self._connect()
        connection.request("POST", self._path, body, self._headers)
        response = connection.getresponse()
        answer = response.read(RESPONSE_SIZE_MAX + 1)
        if len(answer) > RESPONSE_SIZE_MAX or response.will_close:
            self.close()
        if 200 <= response.status < 300:
            return answer
        problem = f"it answers {response.status} {response.reason}"
        if response.status in REFUSALS:
            raise SpansRefused(self.endpoint, problem)
        raise CollectorAway(self.endpoint, problem, retry_after_s(response.getheader("Retry-After")))

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            self._connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)
        else:
            self._connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
        return self._connection


def retry_after_s(text: str | None) -> float:
    """Seconds, where it says seconds; a date is a wait of our own choice."""
    return min(float(text), RETRY_AFTER_S_MAX) if text is not None and text.isdecimal() and len(text) < 10 else 0.0
