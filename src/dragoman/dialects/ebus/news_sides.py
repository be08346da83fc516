"""The ends of ebus for those who publish and subscribe: a PUB and a SUB. No sockets, no clock."""

from __future__ import annotations

from typing import final

from librt.strings import BytesWriter

from dragoman.dialects.sides import PublisherSide, SubscriberSide
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import write_frame


@final
class EbusPublisherSide(PublisherSide):
    """Sends everything: the broker's XSUB wants every channel."""

    def __init__(self, message_size_max: int) -> None:
        super().__init__()
        self.zmtp = ZmtpConnection(b"PUB", False, b"", message_size_max)
        self.out = BytesWriter()

    def opening(self) -> bytes:
        return self.zmtp.greeting()

    def receive(self, data: bytes) -> None:
        self.zmtp.receive(data)
        self.is_ready = self.zmtp.is_ready

    def publish(self, topic: bytes, body: bytes) -> None:
        write_frame(self.out, topic, True)
        write_frame(self.out, body, False)

    def beat(self, now_s: float) -> None:
        """Publishers give no signs of life."""

    def take_out(self) -> bytes:
        data = self.zmtp.take_outgoing()
        if self.is_ready and len(self.out) > 0:
            data += self.out.getvalue()
            self.out = BytesWriter()
        return data


@final
class EbusSubscriberSide(SubscriberSide):
    """Hears every channel that begins with one of its prefixes."""

    def __init__(self, message_size_max: int) -> None:
        super().__init__()
        self.zmtp = ZmtpConnection(b"SUB", False, b"", message_size_max)
        self.waiting: list[bytes] = []  # subscriptions made before the handshake was done

    def opening(self) -> bytes:
        return self.zmtp.greeting()

    def subscribe(self, prefix: bytes) -> None:
        self.waiting.append(prefix)

    def receive(self, data: bytes) -> list[tuple[bytes, bytes]]:
        news: list[tuple[bytes, bytes]] = []
        for frames in self.zmtp.receive(data):
            if len(frames) >= 2:
                news.append((frames[0], frames[1]))
        self.is_ready = self.zmtp.is_ready
        return news

    def beat(self, now_s: float) -> None:
        """Subscribers give no signs of life."""

    def take_out(self) -> bytes:
        data = self.zmtp.take_outgoing()
        if self.is_ready and self.waiting:
            for prefix in self.waiting:
                data += self.zmtp.subscribe_bytes(prefix)
            self.waiting = []
        return data
