"""Plays a story: repeats the actions of peers and operators at their instants, and records the broker's facts.

A row is `(at_s, who, what, …)`. Where the broker acts by its clock (a timeout, an expiry, a silent worker), the row waits for
it, so that the next rows still come in the original order.

A message that the very next row takes, at the instant at which it is sent, found an idle worker: that worker gets a free slot before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partialmethod
from typing import Any

from dragoman.core import operator
from dragoman.core.core import Core
from dragoman.core.lifecycle import WAITING
from dragoman.model.enums import HANDOVER_WANTED, INTERNAL, REASON_NAMES, TIMED_OUT, WORKER_LOST
from dragoman.model.facts.layout import NO_DIALECT
from dragoman.model.message import NOWHERE, Message
from dragoman.model.units import SECOND_NS
from dragoman_lab.replay.play.peers import VALUE, WORKERS, ReplayClient, ReplayWorker
from dragoman_lab.replay.play.stage import Fact, Stage
from dragoman_lab.replay.tables import BY_SCHEDULE, MessageRow, PeerRow, Row, Table
from dragoman_lab.replay.telling import TOLD, Told, tell
from dragoman_lab.sim.machine.net import StillWire, WirePeer
from dragoman_lab.sim.peers.emqp import VERSION

PATIENCE_NS = 3 * SECOND_NS  # beyond a row's instant, for what the broker does by its clock
# Verbs of clients and workers, and the methods of both.
PEER_VERBS = {
    "goes away": "die",
    "serves": "serve",
    "dies": "die",
    "misbehaves": "misbehave",
    "falls silent": "fall_silent",
}
STRANGER = "stranger"  # for a reply over a connection that no worker has


class Stumble(Exception):
    """A row of the story cannot be played."""


@dataclass
class Lease:
    """One lease, from its worker's view."""

    message: str
    is_open: bool = True
    is_answered: bool = False


class Notebook:
    """Records the facts of a replay: which message is which, which worker has leased what, and the history of each message.

    Numbers are the replayed broker's own; names are the story's. A worker's leases are in order: it receives messages in the same
    order, so its n-th arrival belongs to its n-th lease. `on_lease` is called for each lease. Until `has_begun` only acceptances are part of a
    history.
    """

    def __init__(self, has_begun: bool, on_lease: Callable[[str, str], None]) -> None:
        self.told = Told()
        self.has_begun = has_begun
        self.coming = ""  # the worker of the next worker_joined fact
        self.asking = ""  # the message of the next accepted fact
        self.numbers: dict[str, int] = {}  # of messages
        self.worker_numbers: dict[str, int] = {}  # of connected workers
        self.gives: dict[str, int] = {}  # how often a message was given out
        self._on_lease = on_lease
        self._names: dict[int, str] = {}
        self._worker_names: dict[int, str] = {}
        self._leases: dict[str, list[Lease]] = {}
        self._open: dict[str, Lease] = {}  # message → its open lease

    def on_fact(self, fact: Fact) -> None:
        name = fact["fact"]
        if name == "worker_joined" and fact["worker_no"] not in self._worker_names:
            self._worker_names[fact["worker_no"]] = self.coming
            self.worker_numbers[self.coming] = fact["worker_no"]
        elif name == "worker_left":
            self.worker_numbers.pop(self._worker_names.get(fact["worker_no"], ""), None)
        elif name == "accepted" and self.asking:
            self._names[fact["message_no"]] = self.asking
            self.numbers[self.asking] = fact["message_no"]
            self.asking = ""
        if name in TOLD and fact["message_no"] in self._names:
            self._note(self._names[fact["message_no"]], name, fact)

    def _note(self, message: str, name: str, fact: Fact) -> None:
        worker = self._worker_names.get(fact.get("worker_no", 0), "")
        if name == "leased" and worker:
            self._open[message] = lease = Lease(message)
            self._leases.setdefault(worker, []).append(lease)
        elif name in ("released", "closed", "quarantined") and message in self._open:
            self._open.pop(message).is_open = False
        if name == "leased" and self.has_begun:
            self.gives[message] = self.gives.get(message, 0) + 1
            self.told.leases.append((message, worker))
        if name == "leased" and worker:
            self._on_lease(message, worker)
        if self.has_begun or name == "accepted":
            self.told.lives.setdefault(message, []).append(tell(fact, worker))

    def leases_of(self, worker: str, arrivals: list[bytes]) -> list[tuple[Lease, bytes]]:
        """A worker's leases, each with the key that its reply must contain."""
        return list(zip(self._leases.get(worker, []), arrivals, strict=False))

    def is_leased(self, message: str) -> bool:
        return message in self._open

    def is_over(self, message: str) -> bool:
        return self.told.lives.get(message, [""])[-1].startswith("closed")


class Player:
    """Plays one story on one stage."""

    def __init__(self, clients: Table, workers: Table, messages: Table, story: list[Row]) -> None:
        self.notes = Notebook(not any(row[2] == "goes on" for row in story), self._on_lease)
        self.stage: Stage
        self._client_rows, self._worker_rows, self._story = clients, workers, story
        self._messages = {name: MessageRow(name, row) for name, row in messages.items()}
        self._clients: dict[str, ReplayClient] = {}
        self._workers: dict[str, ReplayWorker] = {}
        self._takes: dict[str, int] = {}  # how often a message should have been given out by now
        self._rooms: set[str] = set()  # workers that got a free slot ahead of the row that takes
        self._until_ns = 0
        self._row_no = 0  # index in the story

    def play(self, stage: Stage) -> Told:
        self.stage = stage
        if not self.notes.has_begun:
            stage.running.core.dispatch.is_stopped = True  # first set up what was open when the story begins
        first_s = self._story[0][0]
        for row_no, (at_s, who, what, *details) in enumerate(self._story):
            self._row_no = row_no
            at_ns = round((at_s - first_s) * SECOND_NS)
            self._until_ns = at_ns + PATIENCE_NS
            stage.advance(at_ns)
            verb = getattr(self, "on_" + what.replace(" ", "_"), None)
            assert verb or what in PEER_VERBS, f"row {row_no + 1}: {what!r} is no word of a story"
            try:
                if verb is not None:
                    verb(who, *details)
                else:
                    peer = self._client(who) if who in self._client_rows else self._worker(who)
                    getattr(peer, PEER_VERBS[what])(*details)
            except Stumble as stumble:
                text = " ".join([who, what, *map(str, details)])
                self.notes.told.troubles.append(f"at {at_s} s, {text}: {stumble}")
        stage.settle()
        return self.notes.told

    def _on_lease(self, message: str, worker: str) -> None:
        """Check that a lease is the one at this row of the story; a message that found an idle worker is one row ahead."""
        self._shut_gate(worker)
        now, ahead = self._row(0), self._row(1)
        expected = ahead if now[2] in ("asks", "makes") else now
        told = self.notes.told
        if self.notes.has_begun and told.astray < 0 and (expected[1], *expected[3:]) != (worker, message):
            told.astray = self._row_no

    def _row(self, ahead: int) -> Row:
        row_no = self._row_no + ahead
        return self._story[row_no] if row_no < len(self._story) else (0.0, "", "")

    def on_asks(self, who: str, message: str) -> None:
        self._must_run()
        self._be_idle(message)
        self.notes.asking = message
        if who == BY_SCHEDULE:
            self.stage.act(lambda core: submit_scheduled(core, self._messages[message]))
        else:
            self._client(who).request(self._messages[message])
        if self.notes.asking:
            self.notes.asking = ""
            raise Stumble("it was not accepted")

    on_makes = on_asks  # of a schedule

    def _be_idle(self, message: str) -> None:
        if self._row(1)[2:] != ("takes", message):
            return
        who = self._row(1)[1]
        worker = self._workers.get(who)
        if worker is None or not worker.is_connected:
            return
        # While others wait, a worker that requests each message cannot have been idle: it made its request after this one came.
        queues = self.stage.running.core.state.queues
        is_crowded = any(queues[name].waiting > 0 for name in worker.queues if name in queues)
        if worker.is_gated or not is_crowded:
            self.on_has_room(who)

    def on_cancels(self, who: str, message: str, reason: str = "by_client") -> None:
        self._must_run()
        is_sent = who in self._client_rows and self._client(who).cancel(self._messages[message])
        if not is_sent:
            self._change(message, lambda core, m: core.cancel(m, REASON_NAMES.index(reason)))

    def on_comes_back(self, who: str) -> None:
        self._must_run()
        self._client(who).come()

    def _client(self, name: str) -> ReplayClient:
        if name not in self._clients:
            self._clients[name] = ReplayClient(self.stage, PeerRow(name, self._client_rows[name]))
        return self._clients[name]

    def on_joins(self, who: str) -> None:
        self._must_run()
        peer = PeerRow(who, self._worker_rows[who])
        self.notes.coming = who
        self._workers[who] = worker = WORKERS[peer.dialect](self.stage, peer)
        worker.come()
        if who not in self.notes.worker_numbers:
            raise Stumble("the broker did not accept it")

    def on_has_room(self, who: str) -> None:
        self._make_room(who, self._worker(who))
        self._rooms.add(who)

    def on_takes(self, who: str, message: str) -> None:
        self._takes[message] = self._takes.get(message, 0) + 1
        has_room = who in self._rooms
        self._rooms.discard(who)
        if self._is_given(message):
            return
        worker = self._worker(who)
        if not has_room:
            self._make_room(who, worker)
        self._wait(lambda: self._is_given(message), "the broker did not give it out")

    def on_is_given(self, who: str, message: str) -> None:
        """Lease a message to this worker, regardless of the queue's order."""
        self._takes[message] = self._takes.get(message, 0) + 1
        self._worker(who)
        self.on_holds(who, message)
        if not self._is_given(message):
            raise Stumble("it does not wait")

    def _make_room(self, who: str, worker: ReplayWorker) -> None:
        if not worker.is_silent:
            worker.send("has room")
            self._free_stale(who, worker)
        if worker.is_gated and who in self.notes.worker_numbers:
            number = self.notes.worker_numbers[who]
            self.stage.act(lambda core: open_gate(core, number, worker))

    def _shut_gate(self, who: str) -> None:
        worker = self._workers[who]
        if worker.is_gated and self.stage.life is not None and who in self.notes.worker_numbers:
            peer = self.stage.running.core.workers.get(self.notes.worker_numbers[who])
            if peer is not None:
                peer.is_blocked = True
                peer.work.slots += worker.spare
            worker.spare = 0

    def _is_given(self, message: str) -> bool:
        return self.notes.gives.get(message, 0) >= self._takes[message]

    def _free_stale(self, who: str, worker: ReplayWorker) -> None:
        """Return one message whose lease ended and that the worker will not answer, if its dialect requires a reply for it."""
        if not worker.minds_stale:
            return
        late = {row[3] for row in self._story[self._row_no :] if row[1:3] == (who, "answers")}
        for lease, key in self.notes.leases_of(who, worker.arrivals):
            if not lease.is_open and not lease.is_answered and lease.message not in late:
                lease.is_answered = True
                worker.send("returns", key)
                return

    def on_answers(self, who: str, message: str) -> None:
        if who == STRANGER:
            self._answer_as_stranger(message)
        else:
            self._send("answers", who, message)

    def _send(self, what: str, who: str, message: str) -> None:
        worker = self._worker(who)
        pairs = self.notes.leases_of(who, worker.arrivals)
        found = [(lease, key) for lease, key in pairs if lease.message == message and not lease.is_answered]
        if found:
            lease, key = found[-1]
            lease.is_answered = what != "confirms"
        else:
            key = self._key_from_before(worker, message)
        if not worker.send(what, key):
            raise Stumble(f"{worker.peer.dialect} has no message for it")

    on_confirms = partialmethod(_send, "confirms")
    on_fails = partialmethod(_send, "fails")
    on_rejects = partialmethod(_send, "rejects")
    on_returns = partialmethod(_send, "returns")

    def _key_from_before(self, worker: ReplayWorker, message: str) -> bytes:
        """The key of a message that a worker got on an earlier connection: it counted as lost and came back with a reply."""
        for name, other in reversed(self._workers.items()):
            if type(other) is type(worker) and not worker.minds_stale:
                keys = [key for lease, key in self.notes.leases_of(name, other.arrivals) if lease.message == message]
                if keys:
                    return keys[-1]
        raise Stumble("it was not given to it")

    def _answer_as_stranger(self, message: str) -> None:
        """Reply over a new connection, as EventMQ's own workers may do."""
        self._must_run()
        core = self.stage.running.core
        found = core.state.messages.get(self._number(message))
        if found is None:
            raise Stumble("it is not open")
        stranger = StillWire(self.stage, WirePeer(), "emqp.worker", b"stranger")
        stranger.say([b"", VERSION, b"REPLY", b"re", VALUE, core.ids.of(found)])
        stranger.close()
        self.stage.settle()

    def on_parts(self, who: str) -> None:
        if not self._worker(who).send("parts"):
            raise Stumble("its dialect has no message for it")

    def on_is_sent_away(self, who: str, reason: str) -> None:
        number = self.notes.worker_numbers.get(who, 0)

        def lose(core: Core) -> None:
            if number in core.workers:
                core.lose(core.workers[number], REASON_NAMES.index(reason))

        self.stage.act(lose)

    def on_is_lost(self, who: str) -> None:
        self._wait(lambda: who not in self.notes.worker_numbers, "the broker does not miss it")
        self._worker(who).die()

    def _worker(self, name: str) -> ReplayWorker:
        worker = self._workers.get(name)
        if worker is None or not worker.is_connected:
            raise Stumble("it is not there")
        return worker

    def on_times_out(self, who: str) -> None:
        self._wait(lambda: not self.notes.is_leased(who), "its worker still has it")

    def on_expires(self, who: str) -> None:
        self._wait(lambda: self.notes.is_over(who), "it is still open")

    def _wait(self, is_over: Callable[[], bool], trouble: str) -> None:
        self._must_run()
        self.stage.advance(self._until_ns, is_over)
        if not is_over():
            raise Stumble(trouble)

    def _switch(self, is_paused: bool, is_draining: bool, who: str, queue: str) -> None:
        def switch(core: Core) -> None:
            core.roster.queue_of(queue.encode())
            operator.switch(core, queue.encode(), is_paused, is_draining)

        self._act(switch)

    on_pauses = partialmethod(_switch, True, False)
    on_resumes = partialmethod(_switch, False, False)
    on_drains = partialmethod(_switch, False, True)

    def on_requeues(self, who: str, message: str) -> None:
        self._change(message, operator.requeue)

    def _change(self, message: str, change: Callable[[Core, Message], object]) -> None:
        """Change a message if it is still open."""
        number = self._number(message)

        def changed(core: Core) -> None:
            m = core.state.take(number)
            if m is not None:
                change(core, m)

        self._act(changed)

    def _act(self, change: Callable[[Core], object]) -> None:
        self._must_run()
        self.stage.act(change)

    def _number(self, message: str) -> int:
        if message not in self.notes.numbers:
            raise Stumble("it was not accepted")
        return self.notes.numbers[message]

    def on_gives_nothing_more(self, who: str) -> None:
        """Stop giving out messages: the broker drains, or dies before its next lease; no fact says which."""
        self._must_run()
        self.stage.running.core.dispatch.is_stopped = True

    def on_ends(self, who: str) -> None:
        self.stage.end()
        self.notes.worker_numbers.clear()

    def on_starts(self, who: str) -> None:
        if self.stage.life is None:
            self.stage.start()

    def on_goes_on(self, who: str) -> None:
        """End the setup of what was open before the story."""
        self.notes.has_begun = True
        self._act(go_on)

    def on_had(self, who: str, past: dict[str, Any]) -> None:
        """A message that expired before the story begins is not changed."""
        self._change(who, lambda core, m: put_past(core, m, past))

    def on_holds(self, who: str, message: str) -> None:
        """Lease a waiting message to this worker, regardless of the queue's order."""
        self._worker(who)
        worker_no = self.notes.worker_numbers.get(who, 0)
        self._change(message, lambda core, m: give(core, m, worker_no))

    def _must_run(self) -> None:
        if self.stage.life is None:
            raise Stumble("the broker does not run")


def submit_scheduled(core: Core, row: MessageRow) -> None:
    """Submit a message of a due schedule. The schedule itself is not part of the story."""
    m = Message(INTERNAL, row.queue, b"", row.body)
    m.headers, m.flags, m.priority, m.retries_left = row.headers, row.flags, row.priority, row.retries
    m.timeout_ns = int(row.timeout_s * SECOND_NS)
    m.expires_ns = core.now_ns + int(row.expires_s * SECOND_NS) if row.expires_s else 0
    core.submit(m)


def put_past(core: Core, m: Message, past: dict[str, Any]) -> None:
    """Set up a message's earlier attempts: `attempts`, how many of them were `deaths` of workers, `retries_left`, `due_s` (from now),
    `handed_over` (its client was notified that a worker has it), `quarantined` (the reason)."""
    queue = core.state.queues_by_no[m.queue_no]
    attempts, deaths = past["attempts"], past.get("deaths", 0)
    due_ns = core.now_ns + int(past["due_s"] * SECOND_NS) if "due_s" in past else 0
    for attempt in range(attempts):
        worker_no = core.state.take_number()
        is_death = attempt < deaths
        core.log.leased(m, worker_no)
        core.state.on_leased(m, queue, worker_no)
        if attempt == attempts - 1 and "quarantined" in past:
            reason = REASON_NAMES.index(past["quarantined"])
            core.log.quarantined(m, worker_no, NO_DIALECT, reason, worker_no if is_death else 0)
            core.state.on_quarantined(m, queue, reason, worker_no if is_death else 0, b"")
            return
        reason = WORKER_LOST if is_death else TIMED_OUT
        core.log.released(m, worker_no, NO_DIALECT, past["retries_left"], due_ns, reason, is_death)
        core.state.on_released(m, queue, past["retries_left"], due_ns, reason, worker_no if is_death else 0)
    m.is_handed_over = past.get("handed_over", False) and m.flags & HANDOVER_WANTED != 0


def give(core: Core, m: Message, worker_no: int) -> None:
    peer = core.workers.get(worker_no)
    if m.state != WAITING or peer is None:
        return
    peer.work.slots = max(peer.work.slots, 1)
    queue = core.state.queues_by_no[m.queue_no]
    if m.where != NOWHERE:
        core.state.unline(m, queue)
    core.state.ensure_body(m)
    core.dispatch.lease(m, queue, peer)


def open_gate(core: Core, worker_no: int, worker: ReplayWorker) -> None:
    """Let a worker read again with one free slot; its other slots are withheld for now."""
    peer = core.workers.get(worker_no)
    if peer is not None and peer.is_blocked:
        spare = max(peer.work.slots - 1, 0)
        peer.work.slots -= spare
        worker.spare += spare
        core.unblock(peer)


def go_on(core: Core) -> None:
    core.dispatch.is_stopped = False
    for peer in list(core.workers.values()):
        core.dispatch.feed(peer)
