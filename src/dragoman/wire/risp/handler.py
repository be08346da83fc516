"""The interface that receives the operations of a RISP stream: one method for each acting command."""

from __future__ import annotations

from mypy_extensions import i64


class RispHandler:
    """Receives one peer's operations. The reader calls it at each acting byte, with the parameters accumulated so far.

    `queue` is empty and `queue_id` is UNSAID (-1) where the peer gave none; QUEUE wins over QUEUEID. An id is passed as its four bytes where
    it is only forwarded, as a number where it is looked up. Acting commands that rq does not have go to `on_stray`.
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
        """Receive an acting command that rq does not have."""
        raise NotImplementedError
