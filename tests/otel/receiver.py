"""An OTLP/HTTP collector in this process: it parses every request as a real one does, and can be told to be in a mood."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from dragoman.cli.ports import lasting_addresses


class Receiver:
    """Spans in the order they came. `answer`: the status of the next requests; only 200 takes anything."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.answer = 200
        self.spans_taken_max = 1_000_000  # more in one request is refused with 413
        self.hated_ids: set[bytes] = set()  # a request with one of these spans is refused with 400
        self.away_after = 1_000_000  # with so many spans it has had enough: 503
        self.requests: list[dict[str, str]] = []
        self.spans: list[Span] = []
        self.resources: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), handler_of(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        with self._lock:
            self.requests.append({"path": path, **headers})
            if self.answer != 200:
                return self.answer
            data = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
            request = ExportTraceServiceRequest.FromString(data)
            found = [
                span for traced in request.resource_spans for scoped in traced.scope_spans for span in scoped.spans
            ]
            if len(self.spans) >= self.away_after:
                return 503
            if len(found) > self.spans_taken_max:
                return 413
            if any(span.span_id in self.hated_ids for span in found):
                return 400
            self.spans += found
            self.resources += [values(traced.resource.attributes) for traced in request.resource_spans]
            return 200

    def by_id(self) -> dict[bytes, Span]:
        """Each span once. One that came twice must have come alike, but for the name of a worker that has left since."""
        found: dict[bytes, Span] = {}
        with self._lock:
            for span in self.spans:
                known = found.setdefault(span.span_id, span)
                assert nameless(known) == nameless(span), "two spans with one id"
        return found

    def named(self, name: str) -> list[Span]:
        return sorted(
            (span for span in self.by_id().values() if span.name == name), key=lambda span: span.start_time_unix_nano
        )

    def attribute_values(self, name: str, key: str) -> list[Any]:
        return [values(span.attributes).get(key) for span in self.named(name)]


def handler_of(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = receiver.take(self.path, headers, body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Nothing: a test's output is for its failures."""

    return Handler


def nameless(span: Span) -> bytes:
    copy = Span.FromString(span.SerializeToString())
    kept = [pair for pair in copy.attributes if pair.key != "dragoman.worker.name"]
    del copy.attributes[:]
    copy.attributes.extend(kept)
    return copy.SerializeToString(deterministic=True)


def values(attributes: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in attributes}


@contextmanager
def receiver(is_started: bool = True) -> Iterator[Receiver]:
    address = lasting_addresses(["otel"])["otel"]
    made = Receiver(int(address.rpartition(":")[2]))
    if is_started:
        made.start()
    try:
        yield made
    finally:
        made.stop()
