"""A publisher's connection: PUB peers send `channel, data` to our XSUB."""

from __future__ import annotations

from typing import final

from dragoman.dialects.ebus.words import NULL
from dragoman.dialects.session import Outboxes, ZmtpSession
from dragoman.limits import NAME_SIZE_MAX
from dragoman.model.words import EBUS


@final
class EbusPublisher(ZmtpSession):
    """A libzmq PUB sends nothing without a subscription, so it gets the empty subscription right after the handshake."""

    def __init__(self, listener: str, listener_no: int, outboxes: Outboxes) -> None:
        super().__init__(EBUS, listener, listener_no, outboxes, b"XSUB")

    def opened(self) -> None:
        subscription = self.zmtp.subscribe_bytes(b"")
        if subscription:
            self.free_out.write(subscription)
            self.touch()

    def on_message(self, frames: list[bytes]) -> None:
        channel = frames[0]
        if len(channel) > NAME_SIZE_MAX:
            self.exchange.note(self, "TOPIC_TOO_LONG")
        elif len(frames) > 2:
            self.exchange.note(self, "EBUS_ODD_NEWS")
        else:
            self.exchange.publish(self, channel, frames[1] if len(frames) == 2 else NULL)
