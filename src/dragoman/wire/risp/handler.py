"""Who hears the operations that a RISP stream carries: one method for each acting command."""

from __future__ import annotations

from mypy_extensions import i64


class RispHandler:
    """A peer's ear. The reader calls it as soon as an acting byte has come, with what has gathered until then.

    `queue` is empty and `queue_id` is UNSAID (-1) where the peer gave none; QUEUE wins over QUEUEID. An id is its four bytes where it
    is only passed on, a number where it is looked up. What does not belong to this end of a connection is ignored by `on_stray`.
    """

    def on_request(
        self,
        request_id: bytes,
        queue: bytes,
        queue_id: i64,
        body: bytes,
        is_noreply: bool,
        retries: i64,
        timeout_s: i64,
    ) -> None:
        raise NotImplementedError

    def on_delivered(self, request_id: i64) -> None:
        raise NotImplementedError

    def on_reply(self, request_id: i64, body: bytes) -> None:
        raise NotImplementedError

    def on_undelivered(self, request_id: i64) -> None:
        raise NotImplementedError

    def on_broadcast(self, queue: bytes, queue_id: i64, body: bytes) -> None:
        raise NotImplementedError

    def on_consume(self, queue: bytes, queue_id: i64, messages_max: i64, priority: i64, is_exclusive: bool) -> None:
        raise NotImplementedError

    def on_consuming(self, queue: bytes, queue_id: i64) -> None:
        raise NotImplementedError

    def on_cancel_queue(self, queue: bytes, queue_id: i64) -> None:
        raise NotImplementedError

    def on_ping(self) -> None:
        raise NotImplementedError

    def on_pong(self) -> None:
        raise NotImplementedError

    def on_closing(self) -> None:
        raise NotImplementedError

    def on_server_full(self) -> None:
        raise NotImplementedError

    def on_stray(self, command: i64) -> None:
        """An acting command that rq does not have."""
        raise NotImplementedError
