"""Infers what a journal does not record about workers, so that the same facts result.

Slots: the most leases it had at once. Bodies it does not accept: the kinds it never took while they waited. When it fell silent: as
long before it was lost as the settings say. When it announced that it leaves: after the last message that it took.
"""

from __future__ import annotations

from typing import Final

from dragoman.model.units import SECOND_NS
from dragoman.runtime.config import Config
from dragoman_lab.replay.export.cast import Cast, Rows, queues_of
from dragoman_lab.replay.export.history import ExportedMessage, Fact, History, Worker

SWEEP_NS: Final = SECOND_NS // 10  # how often a broker checks its timers
# Dialect → the shape of its workers that do not accept every kind of body, and the kinds that they accept.
PICKY: Final = {"emqp": ("original", {"job"}), "pingpong": ("json", {"job", "json", "text"})}


class Guesses:
    """Receives each lease and each end of one; adds its rows at the end."""

    def __init__(self, history: History, config: Config, cast: Cast, rows: Rows) -> None:
        self._history, self._config, self._cast, self._rows = history, config, cast, rows
        self._leased: dict[int, set[int]] = {}  # by worker
        self._waiting: dict[str, dict[int, str]] = {}  # queue → messages and their kinds
        self._kinds: dict[int, set[str]] = {}  # by worker: kinds of bodies
        self._passed: dict[int, set[str]] = {}  # and those that waited when it took another
        self._punctual: set[int] = set()  # workers whose timeouts were without EventMQ's grace
        self._last_acts: dict[int, int] = {}  # when a worker last sent something

    def waits(self, life: ExportedMessage) -> None:
        self._waiting.setdefault(life.queue, {})[life.message.number] = life.body_kind

    def leased(self, life: ExportedMessage, worker: Worker) -> None:
        number = life.message.number
        self._kinds.setdefault(worker.number, set()).add(life.body_kind)
        self._waiting.get(life.queue, {}).pop(number, None)
        for queue in queues_of(worker.joins[-1]):
            self._passed.setdefault(worker.number, set()).update(self._waiting.get(queue, {}).values())
        self._leased.setdefault(worker.number, set()).add(number)
        if worker.dialect in ("ebus", "rq"):
            self._cast.worker(worker)
            worker.entry["slots"] = max(worker.entry.get("slots", 1), len(self._leased[worker.number]))

    def ended(self, life: ExportedMessage) -> int:
        """Record the end of a lease or of a message; return the worker that had it, or 0."""
        number = life.message.number
        self._waiting.get(life.queue, {}).pop(number, None)
        holder = next((worker for worker, leased in self._leased.items() if number in leased), 0)
        self._leased.get(holder, set()).discard(number)
        return holder

    def timed_out(self, fact: Fact, life: ExportedMessage, holder: int) -> None:
        """Detect EventMQ's own workers, which have a grace, and a timeout where the message has none."""
        worker = self._history.workers.get(holder)
        if worker is None or worker.dialect != "emqp":
            return
        bound_ns = life.message.timeout_ns or int(self._config.queues.timeout_s * SECOND_NS)
        grace_ns = int(self._config.dialects["emqp"].timeout_grace_s * SECOND_NS)
        took_ns = fact["time_ns"] - leased_ns(life, fact)
        if bound_ns == 0 or took_ns >= bound_ns + grace_ns > bound_ns:
            self._cast.worker(worker)
            worker.entry["shape"] = "original"
        else:
            self._punctual.add(holder)

    def acts(self, worker: Worker, time_ns: int) -> None:
        self._last_acts[worker.number] = time_ns

    def all_gone(self) -> None:
        self._leased.clear()

    def finish(self) -> None:
        for worker in self._history.workers.values():
            if worker.name:
                self._shape(worker)
                self._silence(worker)
                self._parting(worker)

    def _shape(self, worker: Worker) -> None:
        shape, kinds = PICKY.get(worker.dialect, ("", set()))
        took, passed = self._kinds.get(worker.number, set()), self._passed.get(worker.number, set())
        if shape and took <= kinds and passed - kinds and worker.number not in self._punctual:
            worker.entry["shape"] = shape

    def _silence(self, worker: Worker) -> None:
        if worker.left is None or worker.left["reason"] != "heartbeat_lost":
            return
        lost_ns, usual_ns = worker.left["time_ns"], self._silence_ns(worker)
        silent_ns = max(lost_ns - usual_ns - SWEEP_NS // 2, self._last_acts[worker.number])
        if worker.dialect == "scale0" and lost_ns - silent_ns < usual_ns:
            missed = self._config.dialects["scale0"].heartbeats_missed
            worker.entry["heartbeat_s"] = round((lost_ns - silent_ns) / SECOND_NS / missed, 3)
        rooms = sum(silent_ns < took.time_ns < lost_ns for took in self._rows.of(worker.name, "takes"))
        position = self._rows.position_at(silent_ns)
        self._rows.add(silent_ns, position, worker.name, "falls silent", *([rooms] if rooms else []))

    def _silence_ns(self, worker: Worker) -> int:
        config = self._config
        silences_s = {
            "emqp": config.dialects["emqp"].worker_lost_s,
            "scale0": config.dialects["scale0"].heartbeat_s * config.dialects["scale0"].heartbeats_missed,
            "pingpong": config.dialects["pingpong"].worker_expire_s,
            "ebus": config.dialects["ebus"].ping_s * (config.dialects["ebus"].pings_max + 1),
        }
        return int(silences_s.get(worker.dialect, 0.0) * SECOND_NS)

    def _parting(self, worker: Worker) -> None:
        has_announced = worker.left is not None and worker.left["reason"] == "worker_left"
        facts = [fact for life in self._history.lives.values() for fact in life.facts]
        # A worker that had announced its leaving returns its messages, uncounted, to the queue.
        returned = [
            fact["worker_no"] for fact in facts if fact["fact"] == "released" and fact["reason"] == "worker_left"
        ]
        if has_announced or worker.number in returned:
            last = self._rows.of(worker.name, "joins", "serves", "takes", "holds")[-1]
            position = last.position + 1 if last.position >= 0 else 0
            self._rows.add(max(last.time_ns, self._rows.start_ns), position, worker.name, "parts")


def leased_ns(life: ExportedMessage, before: Fact) -> int:
    """The start of the lease that a fact ended."""
    leases = [fact for fact in life.facts if fact["fact"] == "leased" and fact["lsn"] < before["lsn"]]
    return int(leases[-1]["time_ns"]) if leases else int(before["time_ns"])
