"""The worker's end of eMQP: answers to bytes, the broker's bytes to jobs. No sockets, no clock.

INFORM ──► ACK ──► READY per free slot ──► REQUEST … REPLY + READY …
HEARTBEAT both ways; DISCONNECT: begin again under a new identity; KBYE: the broker stops.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter

from dragoman.dialects.emqp.client_side import MessageIds
from dragoman.dialects.emqp.words import (
    ACK,
    BYTES,
    DISCONNECT,
    DISMISSED,
    HEARTBEAT,
    INFORM,
    KBYE,
    READY_OPENING,
    REPLY_OPENING,
    REQUEST,
    VERSION,
    VERSION_MAJOR,
    WORKER,
)
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message, write_frame

TIMEOUT: Final = b"timeout"


@final
class WorkerSide:
    """One worker connection. What is to be sent gathers until `take_out`."""

    def __init__(self, identity: bytes, message_size_max: int, ids: MessageIds) -> None:
        assert identity, "EventMQ's router ends on a peer without an identity"
        self.zmtp = ZmtpConnection(b"DEALER", False, identity, message_size_max)
        self.ids = ids
        self.inform_id = b""
        self.is_acknowledged: bool = False
        self.is_sent_away: bool = False  # DISCONNECT: inform again
        self.is_dismissed: bool = False  # by the operator: nothing comes until we are admitted
        self.is_broker_leaving: bool = False  # KBYE
        self.out = BytesWriter()

    def receive(self, data: bytes) -> list[tuple[bytes, float, bytes]]:
        """The jobs in these bytes: (request id, seconds it may take or 0, body). The rest shows in the attributes."""
        jobs: list[tuple[bytes, float, bytes]] = []
        for frames in self.zmtp.receive(data):
            count = len(frames)
            if count < 4 or frames[0] or (frames[1] != VERSION and not frames[1].startswith(VERSION_MAJOR)):
                continue
            command = frames[2]
            if command == REQUEST:
                if count >= 7:
                    jobs.append((frames[3], timeout_s_of(frames[5]), frames[6]))
            elif command == ACK:
                self.is_acknowledged = self.is_acknowledged or (count > 4 and frames[4] == self.inform_id)
            elif command == DISCONNECT:
                self.is_sent_away = True
            elif command == HEARTBEAT:
                self.is_dismissed = count > 5 and frames[5] == DISMISSED
            elif command == KBYE:
                self.is_broker_leaving = True
        return jobs

    def inform(self, queues: bytes) -> None:
        """Serve these queues: JSON pairs of weight and name. The last frame says that any body is welcome."""
        self.inform_id = self.ids.take()
        self.out.write(encode_message([b"", VERSION, INFORM, self.inform_id, queues, WORKER, BYTES]))

    def ready(self, slots: int) -> None:
        out = self.out
        for _ in range(slots):
            out.write(READY_OPENING)
            write_frame(out, self.ids.take(), False)

    def reply(self, request_id: bytes, value: bytes) -> None:
        out = self.out
        out.write(REPLY_OPENING)
        write_frame(out, self.ids.take(), True)
        write_frame(out, value, True)
        write_frame(out, request_id, False)

    def heartbeat(self, now: bytes) -> None:
        self.out.write(encode_message([b"", VERSION, HEARTBEAT, self.ids.take(), now]))

    def goodbye(self) -> None:
        self.out.write(encode_message([b"", VERSION, KBYE, self.ids.take()]))

    def take_out(self) -> bytes:
        if len(self.out) == 0:
            return b""
        data = self.out.getvalue()
        self.out = BytesWriter()
        return data


def timeout_s_of(headers: bytes) -> float:
    """The `timeout:` among the headers; 0 when there is none that can be read."""
    if TIMEOUT not in headers.lower():
        return 0.0
    for item in headers.split(b","):
        name, _, value = item.partition(b":")
        if name.strip().lower() == b"timeout":
            try:
                seconds = float(value)
            except ValueError:
                return 0.0
            return seconds if 0.0 < seconds < 1e9 else 0.0
    return 0.0
