"""Records every operation of a RISP stream in order."""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from dragoman.wire.risp.reader import RispHandler


@final
class Transcript(RispHandler):
    """Stores each operation as a tuple: its name, then its parameters."""

    def __init__(self) -> None:
        self.operations: list[tuple[object, ...]] = []

    def on_request(
        self, request_id: bytes, queue: bytes, queue_id: i64, body: bytes, no_reply: bool, retries: i64, timeout_s: i64
    ) -> None:
        self.operations.append(
            ("request", request_id, queue, int(queue_id), body, no_reply, int(retries), int(timeout_s))
        )

    def on_delivered(self, request_id: i64) -> None:
        self.operations.append(("delivered", int(request_id)))

    def on_reply(self, request_id: i64, body: bytes) -> None:
        self.operations.append(("reply", int(request_id), body))

    def on_undelivered(self, request_id: i64) -> None:
        self.operations.append(("undelivered", int(request_id)))

    def on_broadcast(self, queue: bytes, queue_id: i64, body: bytes) -> None:
        self.operations.append(("broadcast", queue, int(queue_id), body))

    def on_consume(self, queue: bytes, queue_id: i64, messages_max: i64, priority: i64, is_exclusive: bool) -> None:
        self.operations.append(("consume", queue, int(queue_id), int(messages_max), int(priority), is_exclusive))

    def on_consuming(self, queue: bytes, queue_id: i64) -> None:
        self.operations.append(("consuming", queue, int(queue_id)))

    def on_cancel_queue(self, queue: bytes, queue_id: i64) -> None:
        self.operations.append(("cancel", queue, int(queue_id)))

    def on_ping(self) -> None:
        self.operations.append(("ping",))

    def on_pong(self) -> None:
        self.operations.append(("pong",))

    def on_closing(self) -> None:
        self.operations.append(("closing",))

    def on_server_full(self) -> None:
        self.operations.append(("full",))

    def on_stray(self, command: i64) -> None:
        self.operations.append(("stray", int(command)))
