"""The client side of ebus: endpoints for clients, workers, publishers and subscribers. No sockets, no clock.

    client      REQ ──► REPLY or REJECT with its rid           PING after half a second of silence, DISCONNECT or five misses: over
    worker      READY, PING ──► HEARTBEAT: accepted ──► REQ … REPLY … ──► DISCONNECT: we leave
                DISCONNECT from the broker, or five PINGs without a reply: over, reconnect with a new identity
    publisher   a PUB; the broker's XSUB subscribes to every channel
    subscriber  a SUB

A call's id is its rid. Sent again on another connection with the same identity, or with the same data, it attaches to the first.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.dialects import endpoint as sdk
from dragoman.dialects.ebus import commands
from dragoman.dialects.ebus.data import text_in
from dragoman.dialects.ebus.stales import in_ms
from dragoman.limits import FRAMES_MAX
from dragoman.model.enums import REFUSAL_CODES
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message, write_frame

HEARTBEAT_S: Final = 0.5
MISSES_MAX: Final = 5
REFUSALS: Final = [code.encode() for code in REFUSAL_CODES[1:]]
# A bare REJECT means that the request has expired.
EXPIRED: Final = b"PAST_EXPIRY: past expiry"
SERVICES_MAX: Final = FRAMES_MAX - 4


@final
class Pulse:
    """Checks whether the broker is alive: any message counts as a heartbeat. A PING is due after each interval of silence; after
    MISSES_MAX of them the broker counts as dead, and `endpoint` is over."""

    def __init__(self, endpoint: sdk.Endpoint) -> None:
        self.endpoint = endpoint
        self.has_received: bool = True  # received a message since the last beat
        self.received_s: float = 0.0
        self.misses: int = 0

    def is_ping_due(self, now_s: float) -> bool:
        if self.has_received:
            self.has_received = False
            self.received_s = now_s
            self.misses = 0
        if now_s - self.received_s < HEARTBEAT_S * (self.misses + 1):
            return False
        self.misses += 1
        if self.misses > MISSES_MAX:
            self.endpoint.is_over = True
            self.endpoint.problem = "the broker is silent"
        return not self.endpoint.is_over


@final
class EbusClientEndpoint(sdk.ClientEndpoint):
    """One client connection."""

    def __init__(self, setup: sdk.EndpointSetup) -> None:
        self.zmtp = ZmtpConnection(b"DEALER", setup.identity, setup.message_size_max)
        super().__init__(self.zmtp)
        self.pulse = Pulse(self)
        self.services: dict[bytes, bytes] = {}  # rid → service of requests without an answer

    def receive(self, data: bytes) -> list[tuple[int, bytes, bytes]]:
        outcomes: list[tuple[int, bytes, bytes]] = []
        for frames in self.zmtp.receive(data):
            self.receive_message(frames, outcomes)
        self.is_ready = self.zmtp.is_ready
        return outcomes

    def receive_message(self, frames: list[bytes], outcomes: list[tuple[int, bytes, bytes]]) -> None:
        count = len(frames)
        if count < 3 or frames[0] or frames[1] != commands.WORKER:
            return  # not addressed to a client
        self.pulse.has_received = True
        word = frames[2]
        if word == commands.REPLY or word == commands.REJECT:
            # Ignore an answer to a request that we did not send, or that is already answered.
            if count < 4 or self.services.pop(frames[3], None) is None:
                return
            value = frames[4] if count > 4 else b""
            if word == commands.REPLY:
                outcomes.append((sdk.ANSWERED, frames[3], value))
            else:
                reason = text_in(value) if value else EXPIRED
                is_refusal = reason.partition(b":")[0] in REFUSALS
                outcomes.append((sdk.REFUSED if is_refusal else sdk.FAILED, frames[3], reason))
        elif word == commands.PING:
            self.send([commands.HEARTBEAT])
        elif word == commands.DISCONNECT:
            self.is_over = True
            self.problem = frames[3].decode("utf-8", "replace") if count > 3 else "the broker sent us away"

    def request(self, call_id: bytes, options: sdk.CallOptions, body: bytes) -> None:
        """Send a request. An expiry is sent as `stales ms`; without one, the timeout of the single attempt is used."""
        self.services[call_id] = options.queue
        stales_ns = max(1, options.expires_ns) if options.expires_ns != sdk.NOT_GIVEN else options.timeout_ns
        out = self.unsent
        out.write(commands.ASK_OPENING)
        write_frame(out, options.queue, True)
        write_frame(out, call_id, True)
        write_frame(out, body, stales_ns > 0)
        if stales_ns > 0:
            write_frame(out, in_ms(stales_ns), False)

    def give_up(self, call_id: bytes) -> None:
        service = self.services.get(call_id)
        if service is not None:
            self.send([commands.CANCEL, service, call_id])

    def beat(self, now_s: float) -> None:
        if self.is_ready and not self.is_over and self.pulse.is_ping_due(now_s):
            self.send([commands.PING])

    def send(self, frames: list[bytes]) -> None:
        self.unsent.write(encode_message([b"", commands.CLIENT, *frames]))


@final
class EbusWorkerEndpoint(sdk.WorkerEndpoint):
    """One worker connection. Output is buffered until `data_to_send`."""

    def __init__(self, setup: sdk.EndpointSetup) -> None:
        self.zmtp = ZmtpConnection(b"DEALER", setup.identity, setup.message_size_max)
        self.zmtp.program = setup.program
        super().__init__(self.zmtp)
        self.pulse = Pulse(self)
        self.service: bytes = b""
        self.last_heartbeat_s: float = 0.0

    def serve(self, queues: list[tuple[int, bytes]], slots: int) -> None:
        """Register for services. The number of slots and the services after the first are our extension of READY. Weights are not sent."""
        names = [name for _, name in queues]
        if not 0 < len(names) <= SERVICES_MAX:
            raise ValueError(f"an ebus worker serves 1 to {SERVICES_MAX} services, not {len(names)}")
        self.service = names[0]
        self.send([commands.READY, commands.NULL, names[0], b"%d" % max(slots, 1), *names[1:]])
        self.send([commands.PING])  # READY has no answer; PING has one, if the broker accepted us

    def receive(self, data: bytes) -> list[tuple[bytes, float, bytes]]:
        """Return the received jobs without a timeout: when `stales ms` has passed, the broker sends CANCEL."""
        jobs: list[tuple[bytes, float, bytes]] = []
        for frames in self.zmtp.receive(data):
            count = len(frames)
            if count < 2 or frames[0] != commands.CLIENT:
                continue
            self.pulse.has_received = True
            word = frames[1]
            if word == commands.REQ or word == commands.REQUEST:
                if count > 2:
                    jobs.append((frames[2], 0.0, frames[3] if count > 3 else commands.NULL))
            elif word == commands.HEARTBEAT:
                self.is_ready = True
            elif word == commands.CANCEL:
                self.cancelled.append(frames[2] if count > 2 else b"")
            elif word == commands.PING:
                self.send([commands.HEARTBEAT])
            elif word == commands.DISCONNECT:
                self.is_over = True
                self.problem = frames[2].decode("utf-8", "replace") if count > 2 else "the broker sent us away"
        return jobs

    def reply(self, request_id: bytes, value: bytes) -> None:
        out = self.unsent
        out.write(commands.ANSWER_OPENING)
        write_frame(out, request_id, True)
        write_frame(out, value, False)

    def goodbye(self) -> None:
        self.send([commands.DISCONNECT, self.service, b"leaving"])

    def beat(self, now_s: float) -> None:
        if not self.zmtp.is_ready or self.is_over:
            return
        if self.pulse.is_ping_due(now_s):
            self.send([commands.PING])
        if now_s - self.last_heartbeat_s >= HEARTBEAT_S and self.is_ready and not self.is_over:
            self.last_heartbeat_s = now_s
            self.send([commands.HEARTBEAT])

    def send(self, frames: list[bytes]) -> None:
        self.unsent.write(encode_message([commands.WORKER, *frames]))


@final
class EbusPublisherEndpoint(sdk.PublisherEndpoint):
    """A publisher connection. It sends everything: the broker's XSUB subscribes to every channel."""

    def __init__(self, setup: sdk.EndpointSetup) -> None:
        super().__init__(ZmtpConnection(b"PUB", b"", setup.message_size_max), beat_s=0.0)

    def publish(self, topic: bytes, body: bytes) -> None:
        write_frame(self.unsent, topic, True)
        write_frame(self.unsent, body, False)


client: Final = EbusClientEndpoint
worker: Final = EbusWorkerEndpoint
publisher: Final = EbusPublisherEndpoint
subscriber: Final = sdk.ZmtpSubscriberEndpoint  # receives every channel that begins with one of its prefixes
