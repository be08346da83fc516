"""The worker role of an ebus connection: READY for its services, requests out, answers in.

    READY ──► joined ──► REQ … REPLY or REJECT … ──► DISCONNECT: it leaves, and may still answer the requests it has
    anything else before READY, READY twice ──► DISCONNECT, and its requests go back to the queue

An ebus worker has no slots: a limit on its pending requests replaces them (a setting, or less by the fifth frame of READY).
"""

from __future__ import annotations

from typing import Final

from dragoman.dialects.ebus import commands
from dragoman.dialects.ebus.client_role import ClientRole
from dragoman.dialects.ebus.dialect import EbusDialect
from dragoman.dialects.ebus.stales import in_ms
from dragoman.dialects.session import Outboxes
from dragoman.model.enums import EBUS, HEARTBEAT_LOST, PROTOCOL_FAULT, REFUSAL_TEXTS, TAKEN
from dragoman.model.message import Message
from dragoman.model.wire_ids import DIGITS
from dragoman.wire.zmtp.frames import write_frame

WEIGHT: Final = 10  # the same for all services of an ebus worker


class WorkerRole(ClientRole):
    """Handles all messages signed EBW01."""

    def __init__(self, listener: str, listener_no: int, outboxes: Outboxes, dialect: EbusDialect) -> None:
        super().__init__(listener, listener_no, outboxes, dialect)
        self.is_chosen_by_load = True
        self.worker_envelope: int = 0
        self.is_plain_worker: bool = True
        self.services: list[bytes] = []  # the services of its READY
        self.requests_max: int = 0  # the limit on its pending requests
        self.slots_owed: int = 0  # slots of withdrawn requests, returned as soon as the core may be called
        self.next_beat_ns: int = 0
        self.pings: int = 0  # sent since its last message

    # -- messages from the worker ---------------------------------------------------------------------------------------

    def on_worker(self, word: bytes, frames: list[bytes], at: int) -> None:
        """`at` is the index of the first frame after the command."""
        if word == commands.REPLY or word == commands.REJECT:
            if self.is_worker:
                self.on_answer(word, frames, at)
            else:
                self.disconnect_at_fault(b"not ready: say READY first")
        elif word == commands.READY:
            self.on_ready(frames, at)
        elif not self.is_worker:
            # Its READY went to the previous broker, or it was taken for lost: DISCONNECT makes it reconnect.
            self.disconnect_at_fault(b"not ready: say READY first")
        elif word == commands.PING:
            self.send_worker_now([commands.HEARTBEAT])
        elif word == commands.HEARTBEAT:
            pass
        elif word == commands.DISCONNECT:
            self.exchange.leave(self)
        else:
            self.exchange.note(self, "EBUS_UNKNOWN_MESSAGE")
            self.disconnect_at_fault(b"unknown message type")

    def on_answer(self, word: bytes, frames: list[bytes], at: int) -> None:
        if len(frames) <= at:
            self.exchange.note(self, "EBUS_SHORT_MESSAGE")
            self.disconnect_at_fault(b"an answer needs a rid")
            return
        rid = frames[at]
        value = frames[at + 1] if len(frames) > at + 1 else commands.NULL
        digits = rid
        if len(rid) != DIGITS:  # rids from before there was a key are shorter
            digits = rid.rjust(DIGITS, b"0") if len(rid) < DIGITS else b""
        m = self.exchange.by_digits(self, digits, 0)  # a worker that knows the rid has, or had, the request
        has_it = m is not None and m.worker is self
        if m is not None and not has_it and m.queue not in self.services:
            m = None  # it cannot have had a request of a service that it does not serve
        if m is None or m.attempt == 0:
            self.exchange.late(self, self.exchange.ids.fact_id(digits, 0, rid))
        elif word == commands.REPLY:
            self.exchange.reply(self, m, value, False)
        else:
            self.exchange.reject(self, m, value)
        if has_it:
            self.give_slots(1)

    def on_ready(self, frames: list[bytes], at: int) -> None:
        """`null, service`, or the service alone. Our extension: after these two, the most requests it wants, and more services."""
        if self.is_worker and not self.work.is_leaving:
            self.disconnect_at_fault(b"READY was said already")
            return
        count = len(frames)
        service = (
            frames[at + 1] if count > at + 1 else frames[at] if count > at and frames[at] != commands.NULL else b""
        )
        if not service:
            self.disconnect_at_fault(b"READY needs a service")
            return
        queues = [(WEIGHT, service)]
        for name in frames[at + 3 :]:
            if name and (WEIGHT, name) not in queues:
                queues.append((WEIGHT, name))
        refusal = self.exchange.join(self, queues)
        if refusal != TAKEN:
            self.disconnect_at_fault(REFUSAL_TEXTS[refusal].encode())
            return
        self.services = [name for _, name in queues]
        slots = self.ebus.settings.worker_requests_max
        if count > at + 2 and frames[at + 2].isdigit() and len(frames[at + 2]) <= 9:
            slots = max(min(int(frames[at + 2]), slots), 1)
        self.requests_max = slots
        self.slots_owed = 0
        self.pings = 0
        self.next_beat_ns = self.exchange.now_ns + self.ebus.settings.heartbeat_ns
        self.give_slots(slots)

    # -- callbacks of the core ------------------------------------------------------------------------------------------

    def deliver(self, message: Message) -> None:
        now_ns = self.exchange.now_ns
        if message.dialect == EBUS and message.accepted_ns == now_ns:
            stales = message.headers
        elif message.expires_ns > 0:
            stales = in_ms(message.expires_ns - now_ns)
        elif message.timeout_ns > 0:
            stales = in_ms(message.timeout_ns)
        else:
            stales = self.ebus.stales.default_text
        if self.is_plain_worker:
            out = self.held_out
            out.write(commands.REQ_OPENING)
            self.ebus.write_rid(out, message.number)
            self.write_body(out, message.body, True)
            write_frame(self.held_out, stales, False)
            self.touch()
        else:
            self.send_worker([commands.REQ, self.ebus.rid_of(message.number), message.body, stales])

    def withdraw(self, message: Message, reason: int) -> None:
        """Tell the worker to stop. Its slot is free immediately: the limit is on what it still has to do."""
        self.slots_owed += 1
        rid = self.ebus.rid_of(message.number)
        self.send_worker([commands.CANCEL, rid])

    # -- time -----------------------------------------------------------------------------------------------------------

    def beat_worker(self, now_ns: int) -> None:
        """Our own heartbeats follow the broker's clock, the worker's silence is measured in the core's time."""
        settings = self.ebus.settings
        self.give_slots_back()
        if self.is_unread:
            self.last_sign_ns = self.exchange.now_ns
        seconds_silent = (self.exchange.now_ns - self.last_sign_ns) // settings.ping_ns
        if seconds_silent == 0:
            self.pings = 0
        elif seconds_silent > settings.pings_max:
            self.exchange.lose(self, HEARTBEAT_LOST)
            self.disconnect_worker(b"no heartbeat")
            return
        elif seconds_silent > self.pings:
            self.pings = seconds_silent
            self.send_worker_now([commands.PING])
        if settings.heartbeat_ns > 0 and now_ns >= self.next_beat_ns:
            self.next_beat_ns = now_ns + settings.heartbeat_ns
            self.send_worker_now([commands.HEARTBEAT])

    def give_slots_back(self) -> None:
        if self.slots_owed > 0:
            slots = self.slots_owed
            self.slots_owed = 0
            self.give_slots(slots)

    def give_slots(self, slots: int) -> None:
        """Add slots, within the limit: a worker that left and came back may have more requests than its limit now."""
        room = self.requests_max - self.work.slots - len(self.work.leases)
        if room > 0 and self.is_worker and not self.work.is_leaving:
            self.exchange.ready(self, slots if slots < room else room)

    def disconnect_at_fault(self, why: bytes) -> None:
        """Disconnect a worker that violated the protocol; its requests go to other workers."""
        self.exchange.lose(self, PROTOCOL_FAULT)
        self.disconnect_worker(why)

    def disconnect_worker(self, why: bytes) -> None:
        self.send_worker([commands.DISCONNECT, why])
        self.finish()

    def send_worker(self, frames: list[bytes]) -> None:
        self.say([b""] * self.worker_envelope + [commands.CLIENT, *frames])

    def send_worker_now(self, frames: list[bytes]) -> None:
        self.say_now([b""] * self.worker_envelope + [commands.CLIENT, *frames])
