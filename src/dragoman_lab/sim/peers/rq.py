"""Sources and consumers of RQ: ids that are reused as soon as they are free, in both directions."""

from __future__ import annotations

from collections import defaultdict

from dragoman_lab.sim.checks.facts import token_in
from dragoman_lab.sim.checks.ledger import Request
from dragoman_lab.sim.machine import risp
from dragoman_lab.sim.machine.loop import MS_NS
from dragoman_lab.sim.machine.net import Wire
from dragoman_lab.sim.peers.sim_peers import SimClient, SimWorker

FINAL = (b"REPLY", b"UNDELIVERED")
RANKS = (10, 20, 20, 20, 30)


class RqClient(SimClient):
    """A source. It takes the smallest free id, as librq does; `kind` wide: ids of all 32 bits."""

    listener = "rq"

    def prepare(self) -> None:
        self._live: defaultdict[int, dict[int, Request]] = defaultdict(dict)  # by connection: id → its request
        self._confirmed: set[str] = set()

    def ask(self, token: str, queue: bytes, body: bytes) -> None:
        chance = self.world.chance
        live = self._live[self.open_wire.number]
        number = 2**32 - 1 if self.kind == "wide" else 0
        while number in live:
            number += -1 if self.kind == "wide" else 1
        is_noreply = chance.random() < 0.25
        request = Request(token, self.name, wants_reply=not is_noreply, wants_handover=True)
        live[number] = request
        pieces = [risp.request_id(number), risp.queue(queue), risp.payload(body)]
        if is_noreply:
            pieces.append(risp.NOREPLY)
        if chance.random() < 0.5:
            pieces.append(risp.retries(chance.choice((0, 1, 3))))
        if chance.random() < 0.4:
            pieces.append(risp.timeout(chance.choice((1, 2, 5))))
        chance.shuffle(pieces)
        self.send_request(request, [risp.CLEAR, *pieces, risp.REQUEST])

    def do_own(self) -> None:
        queue = self.world.chance.choice(self.world.plan.queues)
        self.open_wire.say([risp.CLEAR, risp.queue(queue), risp.payload(b"news"), risp.BROADCAST])

    def show_life(self) -> None:
        self.open_wire.say([risp.PING])

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        name, ledger = frames[0], self.world.ledger
        if name not in (b"DELIVERED", *FINAL):
            return
        request = self._live[wire.number].get(int(frames[1]))
        token = request.token if request is not None else None
        if name == b"DELIVERED":
            assert token not in self._confirmed, f"{token} was DELIVERED twice"
            ledger.handed_over(self.name, token)
            self._confirmed.add(token or "")
        elif name == b"REPLY":
            assert token in self._confirmed, f"a REPLY to {token} before its DELIVERED"
            ledger.answered(self.name, token, frames[4])
        else:
            ledger.refused(self.name, token, frames[4])

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        """Free the ids of requests that have ended."""
        live = self._live[wire.number]
        if frames[0] == b"PING":
            wire.say([risp.PONG])
        elif frames[0] in FINAL or (frames[0] == b"DELIVERED" and not live[int(frames[1])].wants_reply):
            del live[int(frames[1])]


class RqWorker(SimWorker):
    """A consumer. `shape`: plain, exclusive, spectator (broadcasts only)."""

    listener = "rq"
    confirms = True
    forgets_share = 1.0  # ids mean nothing on another connection

    def prepare(self) -> None:
        self._names: dict[bytes, bytes] = {}  # queue id → name
        self._leased: dict[bytes, bytes] = {}  # unanswered ids → queue id
        self._noreply: set[bytes] = set()
        self._confirmed: set[bytes] = set()

    def arrive(self) -> None:
        self._names, self._leased, self._noreply, self._confirmed = {}, {}, set(), set()
        is_spectator = self.shape == "spectator" and not self.is_healing
        for name in self.queues:
            rank = 0 if is_spectator else self.world.chance.choice(RANKS)
            pieces = [risp.queue(name), risp.most(self.slots), risp.priority(rank)]
            if self.shape == "exclusive" and not self.is_healing:
                pieces.insert(0, risp.EXCLUSIVE)
            self.open_wire.say([risp.CLEAR, *pieces, risp.CONSUME])

    def job_in(self, frames: list[bytes]) -> bytes | None:
        return frames[4] if frames[0] == b"REQUEST" else None

    def receive(self, wire: Wire, frames: list[bytes]) -> None:
        name, key, queue_id, queue, body = frames[:5]
        if name == b"CONSUMING":
            assert queue in self.queues, frames
            assert queue_id not in self._names, "one CONSUMING for one CONSUME"
            self._names[queue_id] = queue
        elif name == b"REQUEST":
            assert queue_id in self._names, "a queue it does not consume"
            assert key not in self._leased, f"{self.name} was given id {key.decode()}, which it has not answered"
            self._leased[key] = queue_id
            leased = list(self._leased.values()).count(queue_id)
            assert leased <= self.slots, f"{self.name} has {leased} of a queue, and its MAX is {self.slots}"
            if b"NOREPLY" in frames[5:]:
                self._noreply.add(key)
            elif self.world.chance.random() < 0.7:
                self._confirm(wire, key)
            self.take_job(wire, key, token_in(body))
        elif name == b"PING" and not self.is_silent:
            wire.say([risp.PONG])
        elif name == b"CLOSING":
            self.go(wire)

    def _confirm(self, wire: Wire, key: bytes) -> None:
        self._confirmed.add(key)
        wire.say([risp.CLEAR, risp.request_id(int(key)), risp.DELIVERED])

    def _answered(self, key: bytes) -> None:
        self._leased.pop(key, None)
        self._noreply.discard(key)
        self._confirmed.discard(key)

    def reply(self, wire: Wire, key: bytes, token: str, how: str) -> None:
        number = risp.request_id(int(key))
        if how == "fail":
            wire.say([risp.CLEAR, number, risp.UNDELIVERED])
        elif key in self._noreply:
            wire.say([risp.CLEAR, number, risp.DELIVERED])
        else:
            if key not in self._confirmed and how != "out_of_time":  # else its REPLY counts as both
                self._confirm(wire, key)
            wire.say([risp.CLEAR, number, risp.payload(b"done " + token.encode()), risp.REPLY])
        self._answered(key)

    def answer_twice(self, wire: Wire, key: bytes, token: str) -> None:
        """A second REPLY could be taken for a newer message's. It confirms twice instead."""
        if key not in self._noreply:
            self._confirm(wire, key)
        self.reply(wire, key, token, "ok")

    def give_up(self, wire: Wire, key: bytes) -> None:
        """The id stays in use, and counts, while this connection lasts."""
        self.world.timeline.after(4_000 * MS_NS, lambda: wire.cut() if self.wire is wire else None)

    def part(self, wire: Wire) -> None:
        if self.world.chance.random() < 0.5:
            wire.say([risp.CLEAR, risp.queue(self.queues[0]), risp.CANCEL_QUEUE])
        else:
            wire.say([risp.CLOSING])
