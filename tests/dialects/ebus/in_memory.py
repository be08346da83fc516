"""Far ends of ebus connections on an in-memory broker: what many sentences about ebus begin with."""

from __future__ import annotations

import json
import zlib
from typing import Any

from dragoman.core.core import Core
from dragoman.core.settings import CoreSettings
from dragoman.core.storage.replay import Replay
from dragoman.core.timers import Timers
from dragoman.dialects.ebus.dialect import EbusDialect
from dragoman.dialects.registry import Dialects
from dragoman.dialects.session import Outboxes, Session
from dragoman.limits import MESSAGE_SIZE_MAX
from dragoman.wire.zmtp.frames import encode_message
from tests.core.harness import FIRST_POSITION, End, InMemoryBroker


class EbusBroker(InMemoryBroker):
    """One broker without a process, with ebus ends."""

    @property
    def ebus(self) -> EbusDialect:
        return self.dialects.ebus

    def ebus_client(self, identity: bytes = b"client", listener: str = "ebus.client") -> EbusClient:
        return EbusClient(self, listener, identity)

    def ebus_worker(self, service: bytes = b"hello", identity: bytes = b"worker", *more: bytes) -> EbusWorker:
        """A worker that has said READY."""
        ebus_worker = EbusWorker(self, "ebus.worker", identity)
        ebus_worker.tell(b"READY", b"null", service, *more)
        return ebus_worker

    def subscriber(self, *prefixes: bytes) -> End:
        end = End(self, "ebus.subscribe", b"", b"SUB")
        for prefix in prefixes:
            end.give(end.zmtp.subscribe_bytes(prefix))
        return end

    def is_finished(self, session: Session) -> bool:
        """Whether the runtime is asked to end the connection; it does so here."""
        if session in self.outboxes.finished:
            self.outboxes.finished.remove(session)
            session.ended()
            self.commit()
            return True
        return False

    def restarted(self) -> EbusBroker:
        """The broker after this one, with everything it has kept."""
        self.commit()
        after = EbusBroker()
        after.records, after.blocks = self.records, list(self.blocks)
        after.core = Core(CoreSettings(), after.load)
        replay = Replay(after.core)
        position = FIRST_POSITION
        for time_ns, records in self.blocks:
            replay.block(records, position, time_ns)
            position += len(records)
        after.now_ns = self.now_ns
        after.timers = Timers(after.core)
        after.outboxes = Outboxes(after.core)
        after.outboxes.message_size_max = MESSAGE_SIZE_MAX
        after.outboxes.boot_no = 2
        after.dialects = Dialects(after.outboxes, b"\x08" * 10)
        after.core.set_time(after.now_ns)
        after.core.log.base_position = position
        after.core.start(2, b"0.1.0", bytes(16))
        after.commit()
        after.ebus.listening()
        return after


class EbusPeer(End):
    """Hears whole messages, empty frame and all."""

    def take_all(self) -> list[list[bytes]]:
        """Everything heard so far but signs of life; it is forgotten here."""
        self.hear()
        heard, self.heard = self.heard, []
        return [frames for frames in heard if frames[-1] not in (b"HEARTBEAT", b"PING")]

    def take_words(self, word: bytes) -> list[list[bytes]]:
        """What was heard of one word, whole; the rest stays."""
        self.hear()
        found = [frames for frames in self.heard if word in frames[:3]]
        self.heard = [frames for frames in self.heard if word not in frames[:3]]
        return found

    def raw(self, *frames: bytes) -> None:
        self.give(encode_message(list(frames)))


class EbusClient(EbusPeer):
    """A client in the original's shape."""

    def tell(self, *frames: bytes) -> None:
        self.raw(b"", b"EBC01", *frames)

    def ask(self, service: bytes, rid: bytes, data: bytes = b"data", stales_ms: bytes = b"2500") -> None:
        self.tell(b"REQ", service, rid, data, stales_ms)


class EbusWorker(EbusPeer):
    """A worker in the original's shape."""

    def tell(self, *frames: bytes) -> None:
        self.raw(b"EBW01", *frames)

    def jobs(self) -> list[tuple[bytes, bytes]]:
        """(rid, data) of the requests it was given since the last look."""
        return [(frames[2], frames[3]) for frames in self.take_words(b"REQ")]

    def job(self) -> tuple[bytes, bytes]:
        jobs = self.jobs()
        assert len(jobs) == 1, jobs
        return jobs[0]


def unpack(data: bytes) -> Any:
    """The value in the broker's own data: as much of BSON as is needed to read it."""
    if data[:1] in (b"{", b"[", b'"'):
        return json.loads(data)
    return read_document(zlib.decompress(data), 0, False)[0]["l"]


def read_document(data: bytes, at: int, is_array: bool) -> tuple[Any, int]:
    end = at + int.from_bytes(data[at : at + 4], "little")
    at += 4
    items: dict[str, Any] = {}
    while data[at]:
        kind = data[at]
        stop = data.index(b"\0", at + 1)
        name = data[at + 1 : stop].decode()
        at = stop + 1
        if kind == 2:
            size = int.from_bytes(data[at : at + 4], "little")
            items[name] = data[at + 4 : at + 3 + size].decode()
            at += 4 + size
        elif kind in (3, 4):
            items[name], at = read_document(data, at, kind == 4)
        elif kind in (16, 18):
            size = 4 if kind == 16 else 8
            items[name] = int.from_bytes(data[at : at + size], "little", signed=True)
            at += size
        else:
            raise AssertionError(f"BSON type {kind}")
    assert at == end - 1
    return (list(items.values()) if is_array else items), end
