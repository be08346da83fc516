"""Generated clients of several dialects: a stream of messages for every queue, at the rate of its tide."""

from __future__ import annotations

from typing import Final

from dragoman.core.lifecycle import LEASED
from dragoman.dialects.description import CLIENT
from dragoman.dialects.registry import DESCRIPTIONS
from dragoman.model.message import Message
from dragoman.model.quiet_peer import QuietPeer
from dragoman.model.units import SECOND_NS
from dragoman.model.words import BY_CLIENT, DIALECT_NAMES, RQ
from dragoman_lab.generate.chance import BITS, EXPONENTIALS
from dragoman_lab.generate.house import House
from dragoman_lab.generate.services import Service
from dragoman_lab.generate.tides import Tide
from dragoman_lab.generate.wishes import Wishes

DOORS: Final = {described.number: described.by_role[CLIENT] for described in DESCRIPTIONS}
TURNS: Final = 64  # a power of two: the next client is chosen by six random bits
BATCH_MAX: Final = 80
CANCEL_MEAN_S: Final = 4.0
AWAY_MEAN_S: Final = 25.0


class Client:
    """One client program. rq's are anonymous: after a disconnect their replies cannot be delivered."""

    def __init__(self, house: House, dialect: int, name: str) -> None:
        self.house = house
        self.dialect = dialect
        self.identity = b"" if dialect == RQ else name.encode()
        self.peer = self.connected()

    def connected(self) -> QuietPeer:
        listener = DOORS[self.dialect]
        return self.house.connect(self.dialect, listener.name, listener.number, self.identity)

    def come_back(self, _: object) -> None:
        if not self.peer.is_connected:
            self.peer = self.connected()


class Stream:
    """The messages of one queue."""

    def __init__(self, service: Service, tide: Tide, turns: list[Client]) -> None:
        self.service = service
        self.queue = service.name.encode()
        self.tide = tide
        self.turns = turns
        self.rate, self.until_ns = tide.at(tide.start_ns)
        self.is_arrival = False  # whether the scheduled event is the next message, or only the tide's next slot


class Clients:
    """All clients of a broker."""

    def __init__(self, house: House, wishes: Wishes, services: list[tuple[Service, Tide]]) -> None:
        self.house = house
        self.wishes = wishes
        self.scale = 1.0  # factor on every tide's rate, to reach the planned number of facts
        self.streams = [Stream(service, tide, self._cast(service)) for service, tide in services]
        self.by_name = {stream.service.name: stream for stream in self.streams}
        self.everybody = list({id(client): client for stream in self.streams for client in stream.turns}.values())

    def start(self) -> None:
        for stream in self.streams:
            self.house.at(self.house.now_ns, self.flow, stream)

    def flow(self, stream: Stream) -> None:
        """Send a message or adopt the tide's new rate; then schedule the next event, however long that takes at this rate."""
        house = self.house
        now_ns = house.now_ns
        if stream.is_arrival:
            house.sent += 1
            self.send(stream)
            if stream.service.is_batched and house.chance.unit() < stream.service.is_batched:
                self.send_batch(stream)
        if now_ns >= stream.until_ns:
            stream.rate, stream.until_ns = stream.tide.at(now_ns)
        until_ns = next_ns = stream.until_ns
        if stream.rate > 0:
            next_ns = now_ns + int(EXPONENTIALS[house.chance.bits(BITS)] / (stream.rate * self.scale) * SECOND_NS)
        stream.is_arrival = next_ns < until_ns
        house.at(next_ns if stream.is_arrival else until_ns, self.flow, stream)

    def send(self, stream: Stream) -> Message:
        house = self.house
        service = stream.service
        client = stream.turns[house.chance.bits(6)]
        if not client.peer.is_connected:
            client.come_back(None)
        m = self.wishes.message(client.dialect, service, stream.queue, house.now_ns)
        m.client = client.peer
        m.address = client.peer.address
        house.core.submit(m)
        if service.is_cancelled and house.chance.unit() < service.is_cancelled:
            house.later(CANCEL_MEAN_S * house.chance.exponential(), self.cancel, m)
        return m

    def send_batch(self, stream: Stream) -> None:
        for _ in range(4 + self.house.chance.below(BATCH_MAX)):
            self.house.sent += 1
            self.send(stream)

    def cancel(self, m: Message) -> None:
        if m.state <= LEASED:
            self.house.core.cancel(m, BY_CLIENT)

    def cut(self, _: object) -> None:
        """Disconnect a random client; replies until it is back are undeliverable."""
        client = self.house.chance.one_of(self.everybody)
        if client.peer.is_connected:
            self.house.core.goodbye(client.peer)
            self.house.later(AWAY_MEAN_S * self.house.chance.exponential(), client.come_back, None)

    def start_again(self) -> None:
        """Reconnect all clients after a restart of the broker."""
        for client in self.everybody:
            client.peer.is_connected = False
            client.come_back(None)

    def _cast(self, service: Service) -> list[Client]:
        """The clients of a queue, two or three of each dialect, as a table of TURNS entries."""
        chance = self.house.chance
        mixed = chance.mix(service.clients, TURNS)
        programs: dict[int, list[Client]] = {}
        for dialect in service.clients:
            names = [f"{service.name}-{DIALECT_NAMES[dialect]}-{i}" for i in range(2 + chance.below(2))]
            programs[dialect] = [Client(self.house, dialect, name) for name in names]
        return [chance.one_of(programs[mixed[i % len(mixed)]]) for i in range(TURNS)]
