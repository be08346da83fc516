"""State shared by all ebus sessions of a broker: settings, the table of requests, rids towards workers, and the broker's own channels."""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter

from dragoman.dialects.contract import Dialect
from dragoman.dialects.ebus.data import pack
from dragoman.dialects.ebus.requests import Requests
from dragoman.dialects.ebus.roll import Roll, active, mark_of
from dragoman.dialects.ebus.settings import EbusSettings
from dragoman.dialects.ebus.stales import StalesMeanings
from dragoman.dialects.ebus.words import SHUTDOWN_CHANNEL, STARTED_CHANNEL, WORKERS_CHANNEL
from dragoman.dialects.session import Outboxes
from dragoman.model.units import SECOND_NS
from dragoman.model.wire_ids import DIGITS
from dragoman.model.words import EBUS
from dragoman.wire.zmtp.frames import MORE, write_frame

# `ebus/started` is published this long after the ports opened: subscribers of the previous broker need time to reconnect.
STARTED_AFTER_NS: Final = SECOND_NS


@final
class EbusDialect(Dialect):
    """Shared by the sessions of all ebus listeners."""

    def __init__(self, outboxes: Outboxes, settings: EbusSettings) -> None:
        super().__init__(outboxes)
        self.settings = settings
        self.stales = StalesMeanings()
        self.requests = Requests(outboxes.exchange)
        self.started_due_ns: int = 0  # when `ebus/started` is due; 0: already published, or not to be
        self.workers_mark: int = 0  # changes with the set of workers
        self.last_roll: Roll | None = None
        self.is_closing: bool = False
        for channel in (STARTED_CHANNEL, SHUTDOWN_CHANNEL, WORKERS_CHANNEL):
            self.exchange.topics.reserved.add(channel)
        self.reconfigured()

    def reconfigured(self) -> None:
        settings = self.settings
        self.stales.set_default(settings.stales_ns)
        self.requests.is_json = settings.is_json
        self.requests.kept_ns = settings.answers_kept_ns
        self.requests.answers_max = settings.answers_max
        self.requests.size_max = settings.answers_size_max

    def rid_of(self, number: int) -> bytes:
        """A message's rid towards workers, made by the broker: two clients may use the same rid, and workers remember rids."""
        ids = self.exchange.ids
        return ids.digits(number) if number >= ids.first else b"%x" % number

    def write_rid(self, out: BytesWriter, number: int) -> None:
        """Append the rid as a frame that is not the last."""
        ids = self.exchange.ids
        if number >= ids.first:
            out.append(MORE)
            out.append(DIGITS)
            ids.write(out, number)
        else:
            write_frame(out, self.rid_of(number), True)

    def listening(self) -> None:
        self.requests.load()
        self.started_due_ns = self.exchange.now_ns + STARTED_AFTER_NS

    def sweep(self, now_ns: int) -> None:
        for session in list(self.sessions.values()):
            session.beat(now_ns)
        self.requests.sweep(self.exchange.now_ns)
        if not self.is_closing:
            self.tell_news(now_ns)

    def tell_news(self, now_ns: int) -> None:
        """Publish on the broker's own channels, at most a tenth of a second after an event, so that many events make one message."""
        if 0 < self.started_due_ns <= now_ns:
            self.started_due_ns = 0
            self.tell(STARTED_CHANNEL, {"ebusmessage": "broker starting"})
        mark = mark_of(self.exchange.all_workers())
        if mark != self.workers_mark:
            self.workers_mark = mark
            names: list[object] = [name for name, _ in active(self.exchange.all_workers())]
            self.tell(WORKERS_CHANNEL, {"ebusmessage": "active workers", "workers": names})

    def closing(self) -> None:
        self.is_closing = True
        self.tell(SHUTDOWN_CHANNEL, {"ebusmessage": "broker stopping"})
        for session in list(self.sessions.values()):
            session.say_goodbye()

    def roll(self) -> Roll:
        """The list of services and workers, packed at most once per tick: a client that asks repeatedly must not keep the broker busy."""
        workers = self.exchange.all_workers()
        mark = mark_of(workers)
        roll = self.last_roll
        if roll is None or roll.made_ns != self.exchange.now_ns or roll.mark != mark:
            roll = Roll(workers, mark, self.exchange.now_ns, self.settings.is_json)
            self.last_roll = roll
        return roll

    def tell(self, channel: bytes, items: dict[str, object]) -> None:
        self.exchange.topics.publish(channel, pack(items, self.settings.is_json), EBUS)
