"""Generated clients of several dialects: a stream of messages for every queue, at the rate of its rate_curve, each made as its dialect would: ids,
flags, bounds and bodies."""

from __future__ import annotations

from typing import Final

from dragoman.core.lifecycle import LEASED
from dragoman.dialects.description import CLIENT
from dragoman.dialects.registry import DESCRIPTIONS
from dragoman.model import enums
from dragoman.model.enums import BY_CLIENT, DIALECT_NAMES, RQ
from dragoman.model.message import Message
from dragoman.model.quiet_peer import QuietPeer
from dragoman.model.units import SECOND_NS
from dragoman_lab.generate.broker import BITS, EXPONENTIALS, NORMALS, Chance, GeneratedBroker
from dragoman_lab.generate.services import RateCurve, Service

DOORS: Final = {described.number: described.by_role[CLIENT] for described in DESCRIPTIONS}
TURNS: Final = 64  # a power of two: the next client is chosen by six random bits
BATCH_MAX: Final = 80
CANCEL_MEAN_S: Final = 4.0
AWAY_MEAN_S: Final = 25.0
POOL_SIZE: Final = 1 << 16
BODY_SIZE_MAX: Final = 8_000
EBUS_STALES_S: Final = 3600.0
DELAY_MEDIAN_S: Final = 900.0


class MessageMaker:
    """Makes messages. Bodies are pieces of one long random text."""

    def __init__(self, chance: Chance) -> None:
        self.chance = chance
        size = POOL_SIZE + BODY_SIZE_MAX
        self.pool = b"%0*x" % (size, chance.bits(4 * size))
        self.ids = 0
        self.sizes = [2.0**normal for normal in NORMALS]  # factors on a body's usual size

    def message(self, dialect: int, service: Service, queue: bytes, now_ns: int) -> Message:
        self.ids += 1
        m = Message(dialect, queue, self._client_id(dialect), self._body(service))
        m.flags = enums.REPLY_WANTED
        if dialect == enums.EMQP:
            self._set_emqp(m, service, now_ns)
        elif dialect == enums.EBUS:
            m.flags |= enums.EXPIRES_HELD
            m.expires_ns = now_ns + int((service.expires_s or EBUS_STALES_S) * SECOND_NS)
        elif dialect == enums.RQ:
            is_kept = self.chance.unit() < 0.3
            m.flags = enums.FAILURE_FINAL | (
                enums.KEPT_WANTED if is_kept else enums.REPLY_WANTED | enums.HANDOVER_WANTED
            )
            m.retries_left = service.retries
            self._bounds(m, service, now_ns)
        return m

    def piece(self, size: int) -> bytes:
        at = self.chance.bits(16)
        return self.pool[at : at + size]

    def _body(self, service: Service) -> bytes:
        bits = self.chance.bits
        at = bits(16)
        return self.pool[at : at + min(int(self.sizes[bits(BITS)] * service.body_size), BODY_SIZE_MAX)]

    def _client_id(self, dialect: int) -> bytes:
        if dialect == enums.EMQP:
            digits = b"%032x" % self.chance.bits(128)
            return b"-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        if dialect == enums.EBUS:
            return b"%x" % self.ids
        if dialect == enums.RQ:
            return (self.ids & 0x7FFF).to_bytes(4, "big")
        return b"task-%d" % self.ids if dialect == enums.SCALE0 else b""

    def _set_emqp(self, m: Message, service: Service, now_ns: int) -> None:
        kind = self.chance.unit()
        if kind < 0.5:
            m.flags = enums.REPLY_WANTED
        elif kind < 0.75:
            m.flags = enums.KEPT_WANTED
        else:
            m.flags = enums.HANDOVER_WANTED
        if kind * 10 % 1 < 0.3:
            m.flags |= enums.GUARANTEED
        m.retries_left = service.retries
        m.timeout_ns = int(service.timeout_s * SECOND_NS)
        self._bounds(m, service, now_ns)

    def _bounds(self, m: Message, service: Service, now_ns: int) -> None:
        """Set a delay, a priority or an expiry: rare, and never more than one of them."""
        odds = self.chance.unit()
        if odds < service.is_delayed:
            m.due_ns = now_ns + int(DELAY_MEDIAN_S * 2 ** (2 * self.chance.normal()) * SECOND_NS)
        elif odds < service.is_delayed + service.is_urgent:
            m.priority = 1 + self.chance.bits(3)
        elif service.expires_s != 0 and odds > 0.7:
            m.expires_ns = now_ns + int(service.expires_s * SECOND_NS)


class Client:
    """One client program. rq's are anonymous: after a disconnect their replies cannot be delivered."""

    def __init__(self, broker: GeneratedBroker, dialect: int, name: str) -> None:
        self.broker = broker
        self.dialect = dialect
        self.identity = b"" if dialect == RQ else name.encode()
        self.peer = self.connected()

    def connected(self) -> QuietPeer:
        listener = DOORS[self.dialect]
        return self.broker.connect(self.dialect, listener.name, listener.number, self.identity)

    def come_back(self, _: object) -> None:
        if not self.peer.is_connected:
            self.peer = self.connected()


class Stream:
    """The messages of one queue."""

    def __init__(self, service: Service, rate_curve: RateCurve, turns: list[Client]) -> None:
        self.service = service
        self.queue = service.name.encode()
        self.rate_curve = rate_curve
        self.turns = turns
        self.rate, self.until_ns = rate_curve.at(rate_curve.start_ns)
        self.is_arrival = False  # whether the scheduled event is the next message, or only the rate_curve's next slot


class Clients:
    """All clients of a broker."""

    def __init__(self, broker: GeneratedBroker, maker: MessageMaker, services: list[tuple[Service, RateCurve]]) -> None:
        self.broker = broker
        self.maker = maker
        self.scale = 1.0  # factor on every rate_curve's rate, to reach the planned number of facts
        self.streams = [Stream(service, rate_curve, self._cast(service)) for service, rate_curve in services]
        self.by_name = {stream.service.name: stream for stream in self.streams}
        self.everybody = list({id(client): client for stream in self.streams for client in stream.turns}.values())

    def start(self) -> None:
        for stream in self.streams:
            self.broker.at(self.broker.now_ns, self.flow, stream)

    def flow(self, stream: Stream) -> None:
        """Send a message or adopt the rate_curve's new rate; then schedule the next event, however long that takes at this rate."""
        broker = self.broker
        now_ns = broker.now_ns
        if stream.is_arrival:
            broker.sent += 1
            self.send(stream)
            if stream.service.is_batched and broker.chance.unit() < stream.service.is_batched:
                self.send_batch(stream)
        if now_ns >= stream.until_ns:
            stream.rate, stream.until_ns = stream.rate_curve.at(now_ns)
        until_ns = next_ns = stream.until_ns
        if stream.rate > 0:
            next_ns = now_ns + int(EXPONENTIALS[broker.chance.bits(BITS)] / (stream.rate * self.scale) * SECOND_NS)
        stream.is_arrival = next_ns < until_ns
        broker.at(next_ns if stream.is_arrival else until_ns, self.flow, stream)

    def send(self, stream: Stream) -> Message:
        broker = self.broker
        service = stream.service
        client = stream.turns[broker.chance.bits(6)]
        if not client.peer.is_connected:
            client.come_back(None)
        m = self.maker.message(client.dialect, service, stream.queue, broker.now_ns)
        m.client = client.peer
        m.address = client.peer.address
        broker.core.submit(m)
        if service.is_cancelled and broker.chance.unit() < service.is_cancelled:
            broker.later(CANCEL_MEAN_S * broker.chance.exponential(), self.cancel, m)
        return m

    def send_batch(self, stream: Stream) -> None:
        for _ in range(4 + self.broker.chance.below(BATCH_MAX)):
            self.broker.sent += 1
            self.send(stream)

    def cancel(self, m: Message) -> None:
        if m.state <= LEASED:
            self.broker.core.cancel(m, BY_CLIENT)

    def cut(self, _: object) -> None:
        """Disconnect a random client; replies until it is back are undeliverable."""
        client = self.broker.chance.one_of(self.everybody)
        if client.peer.is_connected:
            self.broker.core.goodbye(client.peer)
            self.broker.later(AWAY_MEAN_S * self.broker.chance.exponential(), client.come_back, None)

    def start_again(self) -> None:
        """Reconnect all clients after a restart of the broker."""
        for client in self.everybody:
            client.peer.is_connected = False
            client.come_back(None)

    def _cast(self, service: Service) -> list[Client]:
        """The clients of a queue, two or three of each dialect, as a table of TURNS entries."""
        chance = self.broker.chance
        mixed = chance.mix(service.clients, TURNS)
        programs: dict[int, list[Client]] = {}
        for dialect in service.clients:
            names = [f"{service.name}-{DIALECT_NAMES[dialect]}-{i}" for i in range(2 + chance.below(2))]
            programs[dialect] = [Client(self.broker, dialect, name) for name in names]
        return [chance.one_of(programs[mixed[i % len(mixed)]]) for i in range(TURNS)]
