"""Converts a history to the tables of a test: each fact becomes the row that causes it.

What a journal does not record is inferred so that the same facts result (see guesses, for workers): a client was disconnected when a reply
was undeliverable, and a broker that stopped gave out nothing after its last lease.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from dragoman.errors import NotReplayable
from dragoman.model.enums import DIALECT_NAMES, REPLY_WANTED, RQ
from dragoman.model.units import SECOND_NS
from dragoman.runtime.config import Config
from dragoman.runtime.search.instants import written
from dragoman_lab.replay import replay
from dragoman_lab.replay.export.cast import STEPS, Cast, Entry, Rows, can_come_back, queues_of
from dragoman_lab.replay.export.guesses import Guesses, leased_ns
from dragoman_lab.replay.export.history import ExportedMessage, Fact, History, Worker, switch_word
from dragoman_lab.replay.play.player import STRANGER
from dragoman_lab.replay.tables import BY_SCHEDULE, KEPT, Row
from dragoman_lab.replay.telling import Told, differ, tell

Cause = tuple[str, str] | None  # what, and who: "worker", "holder", "message", "client" or "operator"

SAYS: Final[dict[str, Cause]] = {
    "failed": ("fails", "holder"),
    "timed_out": ("times out", "message"),
    "returned": ("returns", "holder"),
    "refused_by_worker": ("rejects", "worker"),
    "worker_lost": None,
    "worker_left": None,
    "workers_died": None,
    "broker_started": None,
}
BY_CLIENT_DIALECTS: Final = ("emqp", "ebus")  # whose clients can send a cancel
BEFORE_MAX_NS: Final = 600 * SECOND_NS  # a story may start this long before its beginning, to set up what was open
RELAYED: Final = "it came over a link from another rq controller"  # no simulated client can send it
BY_HAND_MAX: Final = 40  # a story that needs more no longer tests the broker's own order


@dataclass
class Script:
    """The contents of an exported test."""

    start_ns: int
    settings: dict[str, Any]
    cast: Cast
    story: list[Row]
    lives: dict[str, list[str]]
    left_out: dict[str, str] = field(default_factory=dict)  # message → why
    is_ordered: bool = True  # whether the order of leases is reproduced, too
    by_hand: int = 0  # leases that the story gives, not the broker


class Writer:
    def __init__(self, history: History, config: Config, settings: dict[str, Any]) -> None:
        self._history, self._config, self._settings = history, config, settings
        self._from_ns = history.wanted.from_ns
        first_ns = history.facts[0]["time_ns"] if history.facts else self._from_ns
        start_ns = max(self._from_ns, first_ns if not self._from_ns else 0) // 1000 * 1000
        for life in history.lives.values():
            earliest_ns = max(life.accepted_ns, start_ns - BEFORE_MAX_NS)
            life.placed_ns = life.accepted_ns if life.is_new else min(earliest_ns, start_ns)
        self._cast = Cast(history.lives)
        self._rows = Rows(start_ns)
        self._guesses = Guesses(history, config, self._cast, self._rows)
        self._needed = needed_workers(history)
        self._away: set[str] = set()  # clients
        self._boot_took: Fact | None = None  # the last lease or acceptance of this boot
        self._before: Fact | None = None  # the fact before

    def write(self) -> Script:
        self._open()
        for fact in self._history.facts:
            self._fact(fact)
            self._before = fact
        self._guesses.finish()
        played = dict(sorted(self._history.lives.items())).values()
        left_out = {life.name: RELAYED for life in played if life.message.dialect == RQ and life.message.headers}
        lives = {life.name: life.lines for life in played if life.name not in left_out}
        return Script(self._rows.start_ns, self._settings, self._cast, self._rows.story(), lives, left_out)

    def _open(self) -> None:
        begun = [life for life in self._history.lives.values() if not life.is_new]
        start_ns, holding = self._rows.start_ns, []
        # Negative: before any fact of the first instant.
        positions = iter(range(-(4 * len(begun) + len(self._history.workers) + len(self._history.switched) + 1), -1))
        for life in sorted(begun, key=lambda life: life.lsn):
            self._accept(life, life.placed_ns, next(positions))
        for worker in self._history.workers.values():
            if worker.joins[0]["time_ns"] < self._from_ns and worker.number in self._needed:
                self._join(worker, start_ns, next(positions))
        for queue, what in sorted(self._history.switched.items()):
            self._rows.add(start_ns, next(positions), "operator", what, queue)
        for life in begun:
            past = past_of(life, self._from_ns, start_ns)
            if past.had:
                # Nothing expires in quarantine: the message must be there before its expiry.
                at_ns = life.placed_ns if "quarantined" in past.had else start_ns
                self._rows.add(at_ns, next(positions), life.name, "had", past.had)
            if past.leased is not None and past.leased["worker_no"] in self._history.workers:
                holding.append((past.leased["lsn"], life, past))
        for _, life, past in sorted(holding, key=lambda one: one[0]):
            assert past.leased is not None
            holder = self._history.workers[past.leased["worker_no"]]
            self._rows.add(start_ns, next(positions), self._cast.worker(holder), "holds", life.name)
            if past.is_delivered:
                self._rows.add(start_ns, next(positions), holder.name, "confirms", life.name)
            self._guesses.leased(life, holder)
        if begun:
            self._rows.add(start_ns, -1, "broker", "goes on")

    def _fact(self, fact: Fact) -> None:
        name = fact["fact"]
        if name == "started":
            self._started(fact)
        elif name == "worker_joined":
            self._joined(fact, self._history.workers[fact["worker_no"]])
        elif name == "worker_left":
            self._left(fact)
        elif name in ("paused", "resumed"):
            if fact["queue"] and self._history.wanted.queue in ("", fact["queue"]):
                self._rows.at(fact, "operator", switch_word(fact), fact["queue"])
        else:
            self._of_message(fact, self._history.lives[fact["message_no"]])

    def _of_message(self, fact: Fact, life: ExportedMessage) -> None:
        name = fact["fact"]
        worker = self._history.workers.get(fact.get("worker_no", 0))
        if name == "accepted":
            self._boot_took = fact
            self._accept(life, fact["time_ns"], fact["lsn"] * STEPS)
            return
        life.lines.append(tell(fact, self._cast.worker(worker) if worker is not None else ""))
        if name == "leased" and worker is not None:
            self._leased(fact, life, worker)
        elif name == "delivered" and worker is not None:
            self._acts(fact, worker, "confirms", life.name)
        elif name == "requeued":
            self._guesses.waits(life)
            self._rows.at(fact, "operator", "requeues", life.name)
        elif name in ("released", "quarantined", "closed"):
            self._ended(fact, life)

    def _accept(self, life: ExportedMessage, time_ns: int, position: int) -> None:
        client = self._cast.client_of(life.message)
        self._away.discard(client)
        self._guesses.waits(life)
        self._rows.add(time_ns, position, client, "makes" if client == BY_SCHEDULE else "asks", life.name)

    def _leased(self, fact: Fact, life: ExportedMessage, worker: Worker) -> None:
        self._boot_took = fact
        self._rows.at(fact, self._cast.worker(worker), "takes", life.name)
        self._guesses.leased(life, worker)
        before = self._before
        if before is not None and before.get("reason") == "returned" and before["time_ns"] == fact["time_ns"]:
            # It went to this worker at once because that had a free slot already.
            self._rows.at(before, self._cast.worker(worker), "has room", step=-2)

    def _ended(self, fact: Fact, life: ExportedMessage) -> None:
        """Add the rows for the end of a lease, and possibly of the message."""
        holder = self._guesses.ended(life)
        if fact["fact"] == "released":
            self._guesses.waits(life)
        self._presence(fact, life)
        found = cause_of(fact, life.message.dialect, self._scene(fact, life, holder))
        if found is None:
            return
        what, who = found
        if who == "message":
            self._rows.at(fact, life.name, what)
            if what == "times out":
                self._guesses.timed_out(fact, life, holder)
        elif who == "client":
            self._rows.at(fact, self._cast.client_of(life.message), what, life.name)
        elif who == "operator":
            self._rows.at(fact, "operator", what, life.name, fact["reason"])
        else:
            self._worker_ended(fact, what, life.name, fact.get("worker_no", 0) if who == "worker" else holder)

    def _worker_ended(self, fact: Fact, what: str, message: str, number: int) -> None:
        worker = self._history.workers.get(number)
        if worker is None:
            self._rows.at(fact, STRANGER, what, message)
            return
        self._acts(fact, worker, what, message)
        if what == "fails" and worker.dialect == "pingpong":
            worker.entry["shape"] = "json"

    def _scene(self, fact: Fact, life: ExportedMessage, holder: int) -> Scene:
        worker = self._history.workers.get(holder or fact.get("worker_no", 0))
        left = worker.left if worker is not None else None
        bound_ns = life.message.timeout_ns or int(self._config.queues.timeout_s * SECOND_NS)
        return Scene(
            has_worker_left=left is not None and left["time_ns"] == fact["time_ns"] and left["lsn"] < fact["lsn"],
            is_overdue=0 < bound_ns <= fact["time_ns"] - leased_ns(life, fact),
            worker_dialect=worker.dialect if worker is not None else "",
        )

    def _acts(self, fact: Fact, worker: Worker, what: str, message: str) -> None:
        self._guesses.acts(worker, fact["time_ns"])
        self._rows.at(fact, self._cast.worker(worker), what, message)

    def _presence(self, fact: Fact, life: ExportedMessage) -> None:
        """Add rows that connect or disconnect the client, so that its reply is delivered or not as in the journal."""
        client = self._cast.client_of(life.message)
        is_answer = fact["fact"] == "closed" and fact["outcome"] == "done" and life.message.flags & REPLY_WANTED
        if client == BY_SCHEDULE or not is_answer:
            return
        is_away = fact["reason"] == "reply_undeliverable"
        if is_away and client not in self._away:
            self._away.add(client)
            self._rows.at(fact, client, "goes away", step=-3)
        elif not is_away and client in self._away and can_come_back(life.message):
            self._away.discard(client)
            self._rows.at(fact, client, "comes back", step=-3)

    def _joined(self, fact: Fact, worker: Worker) -> None:
        if worker.number not in self._needed:
            return
        if fact is worker.joins[0]:
            self._join(worker, fact["time_ns"], fact["lsn"] * STEPS)
        else:
            self._rows.at(fact, self._cast.worker(worker), "serves", queues_of(fact))

    def _join(self, worker: Worker, time_ns: int, position: int) -> None:
        name = self._cast.worker(worker)
        known = [join for join in worker.joins if join["time_ns"] <= time_ns]
        worker.entry["queues"] = queues_of(known[-1] if known[1:] else worker.joins[0])
        self._guesses.acts(worker, time_ns)
        self._rows.add(time_ns, position, name, "joins")

    def _left(self, fact: Fact) -> None:
        worker, reason = self._history.workers.get(fact["worker_no"]), fact["reason"]
        name = worker.name if worker is not None else ""
        whats = {"connection_ended": "dies", "heartbeat_lost": "is lost", "protocol_fault": "misbehaves"}
        if not name or reason == "worker_left":
            return  # its announcement has a row of its own
        if reason in whats:
            self._rows.at(fact, name, whats[reason])
        else:
            self._rows.at(fact, name, "is sent away", reason)

    def _started(self, fact: Fact) -> None:
        if not self._rows.placed:
            return
        if self._boot_took is not None:
            self._rows.at(self._boot_took, "broker", "gives nothing more", step=6)
        if self._before is not None:
            self._rows.at(self._before, "broker", "ends", step=7)
        else:
            self._rows.at(fact, "broker", "ends", step=-1)
        self._rows.at(fact, "broker", "starts")
        self._boot_took = None
        self._guesses.all_gone()
        self._away = set(self._cast.clients)


def needed_workers(history: History) -> set[int]:
    """The workers that any fact names; and all of them if the others matter: a message was returned, or one has a body that not every
    worker accepts."""
    needed = {fact.get("worker_no", 0) for life in history.lives.values() for fact in life.facts}
    is_returned = any(fact.get("reason") == "returned" for fact in history.facts)
    is_unfit = any(life.body_kind == "bytes" or life.body in KEPT for life in history.lives.values())
    if is_returned or is_unfit:
        wanted = history.wanted.queue
        needed |= {
            number
            for number, worker in history.workers.items()
            if not wanted or any(wanted in queues_of(join) for join in worker.joins)
        }
    return needed


@dataclass(frozen=True)
class Scene:
    """The circumstances of a fact: whether its worker left at that instant, and whether its lease had expired."""

    has_worker_left: bool
    is_overdue: bool
    worker_dialect: str


def cause_of(fact: Fact, client_dialect: int, scene: Scene) -> Cause:
    """The cause of a released, quarantined or closed fact: `what, who` of a story's row, or None if an earlier row caused it.

    Most reasons name the cause. A message that had no retries left, or had expired when its worker ended the attempt, ended for two reasons
    of which the fact keeps one: the other is inferred from the facts around it.
    """
    outcome, reason = fact.get("outcome", ""), fact["reason"]
    if outcome == "done":
        return "answers", "worker"
    if outcome == "cancelled":
        is_said = reason == "by_client" and DIALECT_NAMES[client_dialect] in BY_CLIENT_DIALECTS
        return "cancels", "client" if is_said else "operator"
    if outcome == "expired" and not fact["worker_no"]:
        return "expires", "message"
    if reason in SAYS:
        return SAYS[reason]
    return hidden_cause(fact, scene)


def hidden_cause(fact: Fact, scene: Scene) -> Cause:
    if scene.has_worker_left:
        return None
    if fact.get("reply_size", 0):
        return SAYS["failed"]
    if scene.is_overdue:
        return SAYS["timed_out"]
    return SAYS["returned"] if scene.worker_dialect == "rq" else SAYS["failed"]


@dataclass
class Past:
    """What had happened to a message before the story: attempts that ended, and the open lease."""

    had: Entry  # empty: nothing
    leased: Fact | None
    is_delivered: bool = False
    is_handed_over: bool = False


def past_of(life: ExportedMessage, from_ns: int, start_ns: int) -> Past:
    past = Past({}, None)
    dead: set[int] = set()
    for fact in life.facts:
        if fact["time_ns"] >= from_ns:
            break
        if fact["fact"] == "leased":
            past.leased, past.is_delivered = fact, False
        elif fact["fact"] == "delivered":
            past.is_delivered = True
        elif fact["fact"] == "requeued":
            past.had.pop("due_s", None)
            if past.had.pop("quarantined", None) is not None:  # a requeue out of a backoff keeps the count of deaths
                dead.clear()
        else:
            past.leased = None
            past.had = ended_attempts(fact, life, start_ns)
            # An rq worker confirms delivery itself; for any other dialect the broker has notified the client.
            past.is_handed_over = past.is_handed_over or past.is_delivered or fact.get("worker_dialect") != "rq"
            if fact.get("is_death") or fact.get("died_with"):
                dead.add(fact["worker_no"])
    first = next((fact["attempt"] for fact in life.facts if fact["fact"] == "leased"), 1)
    if not past.had and first > 1:  # attempts older than what the journal keeps
        past.had = {"attempts": first - 1, "retries_left": life.message.retries_left}
    if dead:
        past.had["deaths"] = len(dead)
    if past.had and past.is_handed_over:
        past.had["handed_over"] = True
    return past


def ended_attempts(fact: Fact, life: ExportedMessage, start_ns: int) -> Entry:
    """The state after a released or quarantined fact."""
    had: Entry = {"attempts": fact["attempt"], "retries_left": fact.get("retries_left", life.message.retries_left)}
    if fact.get("due_ns", 0) > start_ns:
        had["due_s"] = round((fact["due_ns"] - start_ns) / SECOND_NS, 6)
    if fact["fact"] == "quarantined":
        had["quarantined"] = fact["reason"]
    return had


def prove(script: Script) -> None:
    """Play a script before it is written: remove from `script.lives` what cannot be checked, a message whose history differs from the journal,
    and record why; raises `NotReplayable` if nothing is left.

    Where several clients' messages wait, the next one also depends on state that no fact records (which worker was idle a moment before).
    Where the broker would give out another message than it did, the story gives it explicitly and notes that.
    """
    told = play(script)
    while told.astray >= 0 and script.by_hand < BY_HAND_MAX:
        at = told.astray + (script.story[told.astray][2] in ("asks", "makes"))
        if script.story[at : at + 1] == [] or script.story[at][2] != "takes":
            break
        at_s, who, _, message = script.story[at]
        script.story[at] = (at_s, who, "is given", message)
        script.by_hand += 1
        told = play(script)
    first = ""
    for message, expected in list(script.lives.items()):
        was = told.lives.get(message, [])
        difference = differ(message, expected, was)
        if difference:
            first = first or difference
            del script.lives[message]
            script.left_out[message] = in_short(expected, was)
    if not script.lives:
        on_the_way = f"; {told.troubles[0]}" if told.troubles else ""
        raise NotReplayable(
            f"no life of this slice comes out of the simulator as the journal tells it: {first}{on_the_way}"
        )
    try:
        told.check_order(script.story, script.lives)
    except AssertionError:
        script.is_ordered = False


def play(script: Script) -> Told:
    cast = script.cast
    return replay(
        start=written(script.start_ns),
        settings=script.settings,
        clients=cast.clients,
        workers=cast.workers,
        messages=cast.messages,
        story=script.story,
    )


def in_short(expected: list[str], was: list[str]) -> str:
    pairs = zip([*expected, "no more"], [*was, "no more"], strict=False)
    should, did = next(pair for pair in pairs if pair[0] != pair[1])
    return f"the journal says {should!r}, the simulator {did!r}"
