"""The client side of a dialect: the interface through which the SDK communicates with a broker. No sockets, no clock.

    connect ─► opening() is sent ─► receive(data) … until is_ready ─► request(…) … receive(data) reports the outcome of each
    after every call that may have made output: data_to_send()
    every `beat_s`, if that is not 0: beat(now_s), which writes the heartbeats that are due and detects a silent broker

An endpoint serves one connection; the next connection gets a new one, created by the functions `client`, `worker`, `publisher` and
`subscriber` of the dialect's module `endpoints`, for the roles that the dialect has. It may be a class in plain Python.

When `is_over` is set the connection cannot be used for new work: reconnect, to `moved_to` if it is set, else to the next address. If
`receive` set it, the broker closed the connection and may still settle pending work; if `beat` set it, the broker is silent and the
connection is aborted. Where the dialect allows it, a full or silent broker must be detected before `is_ready` (rq: the broker answers a
PING of ours first), so that nothing is sent to it and lost.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter
from mypy_extensions import mypyc_attr

from dragoman.limits import MESSAGE_SIZE_MAX
from dragoman.wire.zmtp.connection import ZmtpConnection

# A broker's report on a call: (kind, call id, value).
KEPT: Final = 1  # it is in the journal
ANSWERED: Final = 2  # the value is the worker's answer, unchanged
FAILED: Final = 3  # there will be no answer; the value is the reason, as text or as the worker's bytes
REFUSED: Final = 4  # the broker did not accept it; the value is the reason

NOT_GIVEN: Final = -1
BEAT_S: Final = 0.25
ENVELOPE_SIZE: Final = 1024  # the most bytes that a dialect adds to a body


@final
class CallOptions:
    """The options of a call. The description of each dialect declares which ones it has; the SDK refuses the others beforehand."""

    def __init__(self, queue: bytes) -> None:
        self.queue = queue
        self.wants_reply: bool = True
        self.retries: int = NOT_GIVEN
        self.timeout_ns: int = 0  # 0: not given
        self.expires_ns: int = NOT_GIVEN
        self.delay_ns: int = 0
        self.priority: int = 0
        self.is_guaranteed: bool = False
        self.dedupe: bytes = b""  # the broker accepts the first call with a key; empty: no key
        self.dedupes_by_id: bool = False  # the call's id is its key
        self.headers: bytes = b""  # further headers, comma-separated
        self.body_size_max: int = MESSAGE_SIZE_MAX - ENVELOPE_SIZE
        self.prepared: object | None = None  # cache for the encoding that all calls with these options share


@final
class MessageIds:
    """Ids in the format of a uuid4: 24 random characters of this program, then a counter."""

    def __init__(self, prefix: bytes) -> None:
        assert len(prefix) == 24
        self.prefix = prefix
        self.count: int = 0

    def take(self) -> bytes:
        self.count += 1
        return self.prefix + b"%012x" % self.count


@final
class EndpointSetup:
    """The parameters for the endpoint of a new connection. A dialect ignores those it does not need."""

    def __init__(self, identity: bytes, ids: MessageIds) -> None:
        self.identity = identity
        self.ids = ids  # for the endpoint's own messages
        self.program: bytes = b""  # identifies a worker program across all its connections
        self.is_alternate: bool = False  # this is not the preferred broker: ask it which one to use
        self.wall_s: float = 0.0  # the wall clock minus the clock of `beat`
        self.heartbeat_s: float = 3.0
        self.broker_lost_s: float = 15.0  # a broker silent for this long is given up
        self.message_size_max: int = MESSAGE_SIZE_MAX


@mypyc_attr(allow_interpreted_subclasses=True)
class Endpoint:
    """The base class of all roles. An endpoint writes its output to `unsent`; one over ZMTP passes its connection here."""

    def __init__(self, transport: ZmtpConnection | None = None, beat_s: float = BEAT_S) -> None:
        self.transport = transport
        self.unsent = BytesWriter()  # sent once the handshake of `transport`, if there is one, is done
        self.is_ready: bool = False  # the handshake is done: it may be used
        self.is_closing: bool = False  # the broker accepts nothing new; it still settles pending work here
        self.is_over: bool = False  # the broker closed the connection, or is silent: reconnect
        self.moved_to: bytes = b""  # the address that the broker redirected to; empty: the next address
        self.problem: str = ""  # why it is over
        self.beat_s = beat_s  # 0: it needs no beat

    def opening(self) -> bytes:
        """The first bytes to send."""
        return self.transport.greeting() if self.transport is not None else b""

    def beat(self, now_s: float) -> None:
        """Called every `beat_s`, with a monotonic clock."""

    def data_to_send(self) -> bytes:
        transport = self.transport
        data = transport.take_outgoing() if transport is not None else b""
        if (transport is None or transport.is_ready) and len(self.unsent) > 0:
            data += self.unsent.getvalue()
            self.unsent = BytesWriter()
        return data


@mypyc_attr(allow_interpreted_subclasses=True)
class ClientEndpoint(Endpoint):
    """One client connection. Each report of the broker on a call or a query has its id, a text unique in the program."""

    def receive(self, data: bytes) -> list[tuple[int, bytes, bytes]]:
        """Return the received reports: (KEPT, ANSWERED, FAILED or REFUSED, call id, value). Raises a PeerError."""
        raise NotImplementedError

    def request(self, call_id: bytes, options: CallOptions, body: bytes) -> None:
        """Send a request; raises ValueError if the dialect cannot express it."""
        raise NotImplementedError

    def give_up(self, call_id: bytes) -> None:
        """The program no longer waits for a call; the broker is notified where the dialect can express it."""

    def ask_state(self, question_id: bytes, call_id: bytes) -> None:
        """Query the state of an earlier call; the answer is JSON."""
        raise NotImplementedError

    def ask_cancel(self, question_id: bytes, call_id: bytes) -> None:
        """Cancel an earlier call if it is not settled; the answer is JSON."""
        raise NotImplementedError

    def schedule(self, call_id: bytes, options: CallOptions, interval_s: float, cron: bytes, body: bytes) -> None:
        """Have the broker enqueue a call every `interval_s`, or by a cron expression; the answer is KEPT."""
        raise NotImplementedError

    def unschedule(self, call_id: bytes, options: CallOptions, interval_s: float, cron: bytes, body: bytes) -> None:
        """Remove the schedule of such a call; the answer is KEPT."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class WorkerEndpoint(Endpoint):
    """One worker connection. `is_ready` means that the broker has accepted us."""

    def __init__(self, transport: ZmtpConnection | None = None) -> None:
        super().__init__(transport)
        self.is_dismissed: bool = False  # by the operator: no jobs arrive until we are admitted
        self.cancelled: list[bytes] = []  # request ids that the broker has withdrawn; the program removes them

    def serve(self, queues: list[tuple[int, bytes]], slots: int) -> None:
        """Serve these (weight, name) pairs with this many slots; called once, before the handshake. Raises ValueError."""
        raise NotImplementedError

    def receive(self, data: bytes) -> list[tuple[bytes, float, bytes]]:
        """Return the received jobs: (request id, timeout in seconds or 0, body). Raises a PeerError."""
        raise NotImplementedError

    def ready(self, slots: int) -> None:
        """Report free slots; called once for each job answered, after its answer."""

    def reply(self, request_id: bytes, value: bytes) -> None:
        raise NotImplementedError

    def goodbye(self) -> None:
        """Accept no new jobs; running jobs are still answered."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class PublisherEndpoint(Endpoint):
    """One publisher connection."""

    def receive(self, data: bytes) -> None:
        """Process what the broker sends: subscriptions, heartbeats. Raises a PeerError."""
        transport = self.transport
        assert transport is not None, "without a transport an endpoint has its own"
        transport.receive(data)
        self.is_ready = transport.is_ready

    def publish(self, topic: bytes, body: bytes) -> None:
        """Send a publication; raises ValueError if the dialect cannot express it."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class SubscriberEndpoint(Endpoint):
    """One subscriber connection."""

    def subscribe(self, prefix: bytes) -> None:
        raise NotImplementedError

    def receive(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """Return the received news: (topic, body). Raises a PeerError."""
        raise NotImplementedError


@final
class ZmtpSubscriberEndpoint(SubscriberEndpoint):
    """One SUB connection to a PUB or XPUB port that sends `topic, body`."""

    def __init__(self, setup: EndpointSetup) -> None:
        self.zmtp = ZmtpConnection(b"SUB", b"", setup.message_size_max)
        super().__init__(self.zmtp, beat_s=0.0)
        self.prefixes: list[bytes] = []  # not sent yet: their form depends on the broker's version

    def subscribe(self, prefix: bytes) -> None:
        self.prefixes.append(prefix)

    def receive(self, data: bytes) -> list[tuple[bytes, bytes]]:
        news: list[tuple[bytes, bytes]] = []
        for frames in self.zmtp.receive(data):
            if len(frames) >= 2:
                news.append((frames[0], frames[1]))
        self.is_ready = self.zmtp.is_ready
        return news

    def data_to_send(self) -> bytes:
        if self.is_ready:
            for prefix in self.prefixes:
                self.unsent.write(self.zmtp.subscribe_bytes(prefix))
            self.prefixes.clear()
        return super().data_to_send()
