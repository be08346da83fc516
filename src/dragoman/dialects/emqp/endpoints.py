"""The client side of eMQP: endpoints for clients, workers, publishers and subscribers. No sockets, no clock.

    client   REQUEST ──► ACK id', id          stored: the request is in the journal (requested with `ack-requested`)
                         REPLY id', id        handed to a worker; of no use to a caller, so it is not reported
                         REPLY id', value, id the answer, or the reason why there is none
    worker   INFORM ──► ACK ──► READY per free slot ──► REQUEST … REPLY … READY …
             HEARTBEAT both ways; DISCONNECT: reconnect with a new identity

Everything the broker sends about a call ends with the call's message id. The part of a REQUEST that all calls of a job share is encoded
once and stored in their options.
"""

from __future__ import annotations

from typing import Final, final

import msgspec
from librt.strings import BytesWriter

from dragoman.dialects import endpoint
from dragoman.dialects.emqp import commands
from dragoman.dialects.endpoint import CallOptions, EndpointSetup
from dragoman.model.enums import REFUSAL_CODES
from dragoman.model.units import SECOND_NS
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message, write_frame

PUBLISH_OPENING: Final = commands.opening(commands.PUBLISH)
DEDUPE: Final = b",dedupe:"
TIMEOUT: Final = b"timeout"
# The prefix of the broker's own refusals; a worker's error has its own type, or is formatted differently.
REFUSAL_START: Final = b'{"error":{"type":"'
REFUSALS: Final = [code.encode() for code in REFUSAL_CODES]


@final
class RequestForm:
    """The frames between the id and the body of a REQUEST, which most calls of a job share."""

    def __init__(self, queue: bytes, headers: bytes, dedupes_by_id: bool) -> None:
        out = BytesWriter()
        write_frame(out, queue, True)
        if not dedupes_by_id:
            write_frame(out, headers, True)
        self.frames = out.getvalue()
        self.headers = headers + DEDUPE
        self.dedupes_by_id = dedupes_by_id

    def write(self, out: BytesWriter, call_id: bytes, body: bytes) -> None:
        out.write(commands.REQUEST_OPENING)
        write_frame(out, call_id, True)
        out.write(self.frames)
        if self.dedupes_by_id:
            write_frame(out, self.headers + call_id, True)
        write_frame(out, body, False)


def form_of(options: CallOptions) -> RequestForm:
    """The encoded form of these options, built on first use."""
    prepared = options.prepared
    if isinstance(prepared, RequestForm):
        return prepared
    headers = header_text([b"reply-requested" if options.wants_reply else b"ack-requested"], options)
    if options.dedupe:
        headers += DEDUPE + options.dedupe
    form = RequestForm(options.queue, headers, options.dedupes_by_id)
    options.prepared = form
    return form


def header_text(headers: list[bytes], options: CallOptions) -> bytes:
    """A comma-separated text of these headers and those of the options, without a dedupe key."""
    if options.headers:
        headers.append(options.headers)
    if options.is_guaranteed:
        headers.append(b"guarantee")
    if options.retries != endpoint.NOT_GIVEN:
        headers.append(b"retry-count:%d" % options.retries)
    if options.timeout_ns != 0:
        headers.append(b"timeout:" + seconds_text(options.timeout_ns))
    if options.priority != 0:
        headers.append(b"priority:%d" % options.priority)
    if options.delay_ns != 0:
        headers.append(b"delay:" + seconds_text(options.delay_ns))
    if options.expires_ns != endpoint.NOT_GIVEN:
        headers.append(b"expires:" + seconds_text(options.expires_ns))
    return b",".join(headers)


def seconds_text(duration_ns: int) -> bytes:
    return b"%.9g" % (duration_ns / SECOND_NS)


def is_refusal(value: bytes) -> bool:
    """Whether an answer is the broker's own refusal of the request."""
    if not value.startswith(REFUSAL_START):
        return False
    start = len(REFUSAL_START)
    return value[start : value.find(b'"', start)] in REFUSALS


def dealer(setup: EndpointSetup) -> ZmtpConnection:
    assert setup.identity, "EventMQ's router ends on a peer without an identity"
    return ZmtpConnection(b"DEALER", setup.identity, setup.message_size_max)


@final
class EmqpClientEndpoint(endpoint.ClientEndpoint):
    """One client connection."""

    def __init__(self, setup: EndpointSetup) -> None:
        self.zmtp = dealer(setup)
        super().__init__(self.zmtp, beat_s=0.0)

    def receive(self, data: bytes) -> list[tuple[int, bytes, bytes]]:
        reports: list[tuple[int, bytes, bytes]] = []
        for frames in self.zmtp.receive(data):
            count = len(frames)
            if (
                count < 5
                or frames[0]
                or (frames[1] != commands.VERSION and not frames[1].startswith(commands.VERSION_MAJOR))
            ):
                continue
            command = frames[2]
            if command == commands.REPLY:
                if count > 5:
                    value = frames[4]
                    is_refused = value.startswith(commands.ERROR_START) and is_refusal(value)
                    reports.append((endpoint.REFUSED if is_refused else endpoint.ANSWERED, frames[5], value))
            elif command == commands.ACK:
                reports.append((endpoint.KEPT, frames[4], b""))
        self.is_ready = self.zmtp.is_ready
        return reports

    def request(self, call_id: bytes, options: CallOptions, body: bytes) -> None:
        form_of(options).write(self.unsent, call_id, body)

    def ask_state(self, question_id: bytes, call_id: bytes) -> None:
        self.unsent.write(encode_message([b"", commands.VERSION, commands.STATE, question_id, call_id]))

    def ask_cancel(self, question_id: bytes, call_id: bytes) -> None:
        self.unsent.write(encode_message([b"", commands.VERSION, commands.CANCEL, question_id, call_id]))

    def schedule(self, call_id: bytes, options: CallOptions, interval_s: float, cron: bytes, body: bytes) -> None:
        headers = header_text([b"ack-requested", b"nohaste", b"keep-same"], options)
        self.write_schedule([commands.SCHEDULE, call_id, options.queue, headers], interval_s, cron, body)

    def unschedule(self, call_id: bytes, options: CallOptions, interval_s: float, cron: bytes, body: bytes) -> None:
        self.write_schedule([commands.UNSCHEDULE, call_id, options.queue, b"ack-requested"], interval_s, cron, body)

    def write_schedule(self, frames: list[bytes], interval_s: float, cron: bytes, body: bytes) -> None:
        interval = b"-1" if cron else b"%.9g" % interval_s
        self.unsent.write(encode_message([b"", commands.VERSION, *frames, interval, body, cron]))


@final
class EmqpWorkerEndpoint(endpoint.WorkerEndpoint):
    """One worker connection. Without `serve` it is ready after the handshake, to answer jobs of an earlier connection."""

    def __init__(self, setup: EndpointSetup) -> None:
        self.zmtp = dealer(setup)
        self.zmtp.program = setup.program
        super().__init__(self.zmtp)
        self.ids = setup.ids
        self.wall_s = setup.wall_s
        self.heartbeat_s = setup.heartbeat_s
        self.broker_lost_s = setup.broker_lost_s
        self.beat_s = min(self.beat_s, setup.heartbeat_s)
        self.inform_id = b""
        self.is_acknowledged: bool = False
        self.is_leaving: bool = False
        self.ready_due: int = 0  # READYs to send, after the answers and not before the ACK
        self.has_received: bool = True
        self.received_s: float = 0.0
        self.next_heartbeat_s: float = 0.0

    def serve(self, queues: list[tuple[int, bytes]], slots: int) -> None:
        """Register for queues. The last frame tells the broker that this worker accepts any body."""
        self.inform_id = self.ids.take()
        pairs = msgspec.json.encode([(weight, name.decode("utf-8", "replace")) for weight, name in queues])
        self.unsent.write(
            encode_message(
                [b"", commands.VERSION, commands.INFORM, self.inform_id, pairs, commands.WORKER, commands.BYTES]
            )
        )
        self.ready_due = slots

    def receive(self, data: bytes) -> list[tuple[bytes, float, bytes]]:
        self.has_received = True
        jobs: list[tuple[bytes, float, bytes]] = []
        for frames in self.zmtp.receive(data):
            count = len(frames)
            if (
                count < 4
                or frames[0]
                or (frames[1] != commands.VERSION and not frames[1].startswith(commands.VERSION_MAJOR))
            ):
                continue
            command = frames[2]
            if command == commands.REQUEST:
                if count >= 7:
                    jobs.append((frames[3], timeout_s_of(frames[5]), frames[6]))
            elif command == commands.ACK:
                self.is_acknowledged = self.is_acknowledged or (count > 4 and frames[4] == self.inform_id)
            elif command == commands.DISCONNECT:
                self.is_over = True
                self.problem = "the broker sent us away: we inform again"
            elif command == commands.HEARTBEAT:
                self.is_dismissed = count > 5 and frames[5] == commands.DISMISSED
        self.is_ready = self.is_acknowledged or (self.zmtp.is_ready and not self.inform_id)
        return jobs

    def ready(self, slots: int) -> None:
        self.ready_due += slots

    def reply(self, request_id: bytes, value: bytes) -> None:
        out = self.unsent
        out.write(commands.REPLY_OPENING)
        write_frame(out, self.ids.take(), True)
        write_frame(out, value, True)
        write_frame(out, request_id, False)

    def goodbye(self) -> None:
        self.is_leaving = True
        if self.inform_id:
            self.unsent.write(encode_message([b"", commands.VERSION, commands.KBYE, self.ids.take()]))

    def beat(self, now_s: float) -> None:
        if self.has_received:
            self.has_received = False
            self.received_s = now_s
        elif now_s - self.received_s > self.broker_lost_s:
            self.is_over = True
            self.problem = f"the broker was silent for {self.broker_lost_s:g} s"
        if self.next_heartbeat_s == 0.0:
            self.next_heartbeat_s = now_s + self.heartbeat_s
        elif now_s >= self.next_heartbeat_s - self.beat_s / 2:  # the nearest beat, because timers are not exact
            self.next_heartbeat_s = now_s + self.heartbeat_s
            if self.is_acknowledged and not self.is_leaving:
                wall_text = b"%.6f" % (self.wall_s + now_s)
                self.unsent.write(
                    encode_message([b"", commands.VERSION, commands.HEARTBEAT, self.ids.take(), wall_text])
                )

    def data_to_send(self) -> bytes:
        if self.ready_due > 0 and self.is_acknowledged and not self.is_leaving:
            out = self.unsent
            for _ in range(self.ready_due):
                out.write(commands.READY_OPENING)
                write_frame(out, self.ids.take(), False)
            self.ready_due = 0
        return super().data_to_send()


def timeout_s_of(headers: bytes) -> float:
    """The `timeout:` among the headers; 0 when there is none or it is invalid."""
    if TIMEOUT not in headers.lower():
        return 0.0
    for item in headers.split(b","):
        name, _, value = item.partition(b":")
        if name.strip().lower() == TIMEOUT:
            try:
                seconds = float(value)
            except ValueError:
                return 0.0
            return seconds if 0.0 < seconds < 1e9 else 0.0
    return 0.0


@final
class EmqpPublisherEndpoint(endpoint.PublisherEndpoint):
    """One connection to the publish port."""

    def __init__(self, setup: EndpointSetup) -> None:
        super().__init__(dealer(setup), beat_s=0.0)
        self.ids = setup.ids

    def publish(self, topic: bytes, body: bytes) -> None:
        out = self.unsent
        out.write(PUBLISH_OPENING)
        write_frame(out, self.ids.take(), True)
        write_frame(out, topic, True)
        write_frame(out, body, False)


client: Final = EmqpClientEndpoint
worker: Final = EmqpWorkerEndpoint
publisher: Final = EmqpPublisherEndpoint
subscriber: Final = endpoint.ZmtpSubscriberEndpoint
