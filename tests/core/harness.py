"""A core with real eMQP sessions around it, driven by bytes and by hand-turned time: no sockets, no journal, no waiting.

`InMemoryBroker` is the broker: it keeps the clock, hands bytes back and forth and collects the facts as the journal would.
`Client` and `Worker` are the far ends of connections: they speak ZMTP and eMQP as programs in the field do.
"""

from __future__ import annotations

import itertools

from dragoman.core.core import Core
from dragoman.core.settings import CoreSettings
from dragoman.core.timers import Timers
from dragoman.dialects.emqp.settings import EmqpSettings
from dragoman.dialects.registry import Dialects
from dragoman.dialects.session import Outboxes
from dragoman.errors import RecordDamaged
from dragoman.limits import MESSAGE_SIZE_MAX, READ_WHOLE_SIZE
from dragoman.model.facts.decode import decode_block
from dragoman.model.facts.fields import body_at
from dragoman.model.facts.records import carried_at
from dragoman.model.units import SECOND_NS
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message

START_NS = 1_700_000_000 * SECOND_NS  # 2023-11-14 22:13:20 UTC
FIRST_POSITION = 1 << 32


class InMemoryBroker:
    """One broker without a process."""

    def __init__(self, settings: CoreSettings | None = None, emqp_settings: EmqpSettings | None = None) -> None:
        self.records = b""  # everything written so far, as one long block
        self.damaged: set[int] = set()  # places whose records cannot be read
        self.blocks: list[tuple[int, bytes]] = []  # (instant, records) of each commit
        self.read_whole_size = READ_WHOLE_SIZE  # larger records are given without their bodies
        self.core = self.new_core(settings or CoreSettings())
        self.timers = Timers(self.core)
        self.outboxes = Outboxes(self.core)
        self.outboxes.message_size_max = MESSAGE_SIZE_MAX
        self.dialects = Dialects(self.outboxes, b"\x07" * 10)
        self.emqp = self.dialects.emqp
        if emqp_settings is not None:
            self.emqp.settings = emqp_settings
        self.ids = itertools.count(1)
        self.now_ns = START_NS
        self.core.set_time(START_NS)
        self.core.log.base_position = FIRST_POSITION
        self.core.start(1, b"0.1.0", bytes(16))
        self.outboxes.boot_no = 1
        self.commit()

    def load(self, position: int, number: int) -> bytes:
        if position in self.damaged:
            raise RecordDamaged("0000000001.seg", position - FIRST_POSITION, "the record's CRC does not match")
        at = position - FIRST_POSITION
        size = int.from_bytes(self.records[at : at + 4], "little")
        return self.records[at : at + size]

    def look(self, position: int, number: int, body_most: int) -> bytes:
        record = self.load(position, number)
        if len(record) <= self.read_whole_size:
            return record
        return record[: body_at(record, carried_at(record)) + body_most]

    def new_core(self, settings: CoreSettings) -> Core:
        """A core that reads the records kept here."""
        return Core(settings, self.load, self.look)

    def go_on(self) -> int:
        """Take all turns that it takes to end what was broken off; how many."""
        turns = 0
        while self.core.roster.has_more():
            self.core.roster.go_on()
            self.commit()
            turns += 1
            assert turns < 100_000, "it never ends"
        return turns

    def commit(self) -> None:
        """Keep what the log holds, as the journal would."""
        if self.core.log.count or self.core.log.size():
            records = self.core.log.take()
            self.records += records
            self.blocks.append((self.core.now_ns, records))
            self.core.log.base_position = FIRST_POSITION + len(self.records)

    def facts(self, *names: str) -> list[dict[str, object]]:
        """All facts so far, or those of some names."""
        self.commit()
        return [fact for fact in decode_block(self.records) if not names or fact["fact"] in names]

    def pass_time(self, seconds: float) -> None:
        """Let time pass in steps of a tenth of a second, with everything that falls due."""
        end_ns = self.now_ns + int(seconds * SECOND_NS)
        while self.now_ns < end_ns:
            self.commit()
            self.now_ns = min(self.now_ns + SECOND_NS // 10, end_ns)
            self.core.set_time(self.now_ns)
            self.timers.sweep(self.now_ns, self.now_ns)
            for dialect in self.dialects.all:
                dialect.sweep(self.now_ns)
        self.commit()

    def connect(self, listener: str, identity: bytes, socket_type: bytes = b"DEALER") -> End:
        return End(self, listener, identity, socket_type)

    def client(self, identity: bytes = b"client") -> Client:
        return Client(self, "emqp.client", identity)

    def worker(self, identity: bytes = b"worker") -> Worker:
        return Worker(self, "emqp.worker", identity)

    def next_id(self, prefix: str = "id") -> bytes:
        return f"{prefix}-{next(self.ids)}".encode()


class End:
    """The far end of one connection."""

    def __init__(self, broker: InMemoryBroker, listener: str, identity: bytes, socket_type: bytes = b"DEALER") -> None:
        self.broker = broker
        self.session = broker.dialects.session(listener)
        self.session.remote = "127.0.0.1:50000"
        self.zmtp = ZmtpConnection(socket_type, identity)
        self.session.start()
        self.heard: list[list[bytes]] = []
        self.give(self.zmtp.greeting())
        self.hear()

    def give(self, data: bytes) -> None:
        """Bytes to the broker; what it answers is heard."""
        self.session.receive(data)
        self.hear()

    def hear(self) -> None:
        """Take what the broker has for us, as if every commit were instant."""
        self.broker.commit()
        while True:
            data = self.session.take_all()
            self.heard.extend(self.zmtp.receive(data) if data else [])
            out = self.zmtp.take_outgoing()
            if not out:
                return
            self.session.receive(out)

    def say(self, *frames: bytes) -> None:
        """An eMQP message: command, id and what follows."""
        self.give(encode_message([b"", b"eMQP/1.0", *frames]))

    def take(self, command: bytes) -> list[list[bytes]]:
        """What was heard of one command, each from its message id on; it is forgotten here."""
        self.hear()
        found = [frames[3:] for frames in self.heard if frames[2:3] == [command]]
        self.heard = [frames for frames in self.heard if frames[2:3] != [command]]
        return found

    def leave(self) -> None:
        """The connection ends without a word."""
        self.session.ended()
        self.broker.commit()


class Client(End):
    """Sends requests."""

    def request(self, queue: bytes, body: bytes = b"{}", headers: bytes = b"", message_id: bytes = b"") -> bytes:
        message_id = message_id or self.broker.next_id("job")
        self.say(b"REQUEST", message_id, queue, headers, body)
        return message_id


class Worker(End):
    """Serves queues. `inform` takes anything, as our own workers do; `inform_as_original` is EventMQ's own shape."""

    def inform(self, *queues: tuple[int, bytes]) -> None:
        self.say(b"INFORM", self.broker.next_id(), queue_list(queues), b"worker", b"bytes")

    def inform_as_original(self, *queues: tuple[int, bytes]) -> None:
        self.say(b"INFORM", self.broker.next_id(), queue_list(queues), b"worker")

    def ready(self, slots: int = 1) -> None:
        for _ in range(slots):
            self.say(b"READY", self.broker.next_id())

    def jobs(self) -> list[bytes]:
        """Ids of the requests it was given since the last look."""
        return [frames[0] for frames in self.take(b"REQUEST")]

    def reply(self, request_id: bytes, value: bytes = b'{"value":1}') -> None:
        self.say(b"REPLY", self.broker.next_id(), value, request_id)

    def heartbeat(self) -> None:
        self.say(b"HEARTBEAT", self.broker.next_id(), b"1.0")


def queue_list(queues: tuple[tuple[int, bytes], ...]) -> bytes:
    return b"[" + b",".join(b'[%d,"%s"]' % (weight, name) for weight, name in queues) + b"]"
