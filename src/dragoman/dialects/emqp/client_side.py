"""The client's end of eMQP: requests to bytes, the broker's bytes to answers. No sockets, no clock.

A call is known by its message id, and everything the broker says about it ends with that id:

    ACK    id', id            kept: the request is in the journal (asked for with `ack-requested`)
    REPLY  id', id            handed to a worker; of no use to a caller, so it is not reported
    REPLY  id', value, id     the answer, or why there will be none
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter

from dragoman.dialects.emqp.words import (
    ACK,
    PUBLISH,
    REPLY,
    REQUEST_OPENING,
    SCHEDULE,
    UNSCHEDULE,
    VERSION,
    VERSION_MAJOR,
    opening,
)
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message, write_frame

# Extensions of ours on the client port: what became of a request, and its end if it is not settled. Answered like a request.
STATE: Final = b"STATE"
CANCEL: Final = b"CANCEL"

KEPT: Final = 1
ANSWERED: Final = 2

PUBLISH_OPENING: Final = opening(PUBLISH)


@final
class MessageIds:
    """Ids in the shape of a uuid4: 24 random characters of this client, then a count."""

    def __init__(self, prefix: bytes) -> None:
        assert len(prefix) == 24
        self.prefix = prefix
        self.count: int = 0

    def take(self) -> bytes:
        self.count += 1
        return self.prefix + b"%012x" % self.count


@final
class RequestForm:
    """A REQUEST with everything filled in but its id and its body; most calls of a job share one."""

    def __init__(self, queue: bytes, headers: bytes) -> None:
        out = BytesWriter()
        write_frame(out, queue, True)
        self.queue_frame = out.getvalue()
        self.headers = headers

    def encode(self, message_id: bytes, body: bytes) -> bytes:
        return self.encode_with(message_id, self.headers, body)

    def encode_deduped(self, message_id: bytes, body: bytes) -> bytes:
        """The same with the id as dedupe key: sent twice, it is still accepted once."""
        return self.encode_with(message_id, self.headers + b",dedupe:" + message_id, body)

    def encode_with(self, message_id: bytes, headers: bytes, body: bytes) -> bytes:
        out = BytesWriter()
        out.write(REQUEST_OPENING)
        write_frame(out, message_id, True)
        out.write(self.queue_frame)
        write_frame(out, headers, True)
        write_frame(out, body, False)
        return out.getvalue()


def encode_schedule(
    is_new: bool, message_id: bytes, queue: bytes, headers: bytes, interval_s: bytes, body: bytes, cron: bytes
) -> bytes:
    """SCHEDULE or UNSCHEDULE; `interval_s` is `-1` for cron."""
    command = SCHEDULE if is_new else UNSCHEDULE
    return encode_message([b"", VERSION, command, message_id, queue, headers, interval_s, body, cron])


def encode_question(command: bytes, message_id: bytes, request_id: bytes) -> bytes:
    """STATE or CANCEL of an earlier request."""
    return encode_message([b"", VERSION, command, message_id, request_id])


def encode_publish(message_id: bytes, topic: bytes, body: bytes) -> bytes:
    out = BytesWriter()
    out.write(PUBLISH_OPENING)
    write_frame(out, message_id, True)
    write_frame(out, topic, True)
    write_frame(out, body, False)
    return out.getvalue()


@final
class ClientSide:
    """One client connection."""

    def __init__(self, identity: bytes, message_size_max: int) -> None:
        assert identity, "EventMQ's router ends on a peer without an identity"
        self.zmtp = ZmtpConnection(b"DEALER", False, identity, message_size_max)

    def receive(self, data: bytes) -> list[tuple[int, bytes, bytes]]:
        """What the bytes say: (KEPT or ANSWERED, request id, value). Raises a PeerError when the broker breaks ZMTP."""
        said: list[tuple[int, bytes, bytes]] = []
        for frames in self.zmtp.receive(data):
            count = len(frames)
            if count < 5 or frames[0] or (frames[1] != VERSION and not frames[1].startswith(VERSION_MAJOR)):
                continue
            command = frames[2]
            if command == REPLY:
                if count > 5:
                    said.append((ANSWERED, frames[5], frames[4]))
            elif command == ACK:
                said.append((KEPT, frames[4], b""))
        return said


@final
class SubscriberSide:
    """One connection to the publish-out port."""

    def __init__(self, message_size_max: int) -> None:
        self.zmtp = ZmtpConnection(b"SUB", False, b"", message_size_max)

    def receive(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """The news: (topic, body)."""
        news: list[tuple[bytes, bytes]] = []
        for frames in self.zmtp.receive(data):
            if len(frames) >= 2:
                news.append((frames[0], frames[1]))
        return news
