"""The tables of an exported test while they are written. Names: c1, c2 for clients, w1, w2 for workers, messages by their ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from dragoman.dialects.ebus.stales import in_ms
from dragoman.dialects.emqp.headers import one_answer, read_headers
from dragoman.model.enums import DIALECT_NAMES, EBUS, EMQP, INTERNAL, PINGPONG, REPLY_WANTED, RQ
from dragoman.model.facts.decode import flag_words
from dragoman.model.message import Message
from dragoman.model.peer import ANONYMOUS, identity_in
from dragoman.model.phrases import number_text
from dragoman.model.units import SECOND_NS
from dragoman_lab.replay.export.history import ExportedMessage, Fact, Worker
from dragoman_lab.replay.tables import BY_SCHEDULE, Row

NAME_SIZE_MAX: Final = 64  # a longer id is not used as a name in the tables; the message still has it
RQ_RETRIES_MAX: Final = 255  # one byte on the wire; a higher number came from the settings

STEPS: Final = 10

Entry = dict[str, Any]


class PlacedRow(NamedTuple):
    time_ns: int
    position: int
    row: Row


class Rows:
    """The rows of a story while it is written; `start_ns` is second 0. A position orders rows of the same instant: a fact's is ten times its
    lsn, so that rows without a fact can go before and after it; what existed before the first fact has negative ones."""

    def __init__(self, start_ns: int) -> None:
        self.start_ns = start_ns
        self.placed: list[PlacedRow] = []

    def add(self, time_ns: int, position: int, who: str, what: str, *details: Any) -> None:
        at_s = round((time_ns - self.start_ns) / SECOND_NS, 6)
        self.placed.append(PlacedRow(time_ns, position, (at_s, who, what, *details)))

    def at(self, fact: Fact, who: str, what: str, *details: Any, step: int = 0) -> None:
        self.add(fact["time_ns"], fact["lsn"] * STEPS + step, who, what, *details)

    def story(self) -> list[Row]:
        return [placed.row for placed in sorted(self.placed, key=lambda placed: placed[:2])]

    def of(self, who: str, *whats: str) -> list[PlacedRow]:
        """The rows of `who` with these verbs, in order."""
        found = [placed for placed in self.placed if placed.row[1] == who and placed.row[2] in whats]
        return sorted(found, key=lambda placed: placed[:2])

    def position_at(self, time_ns: int) -> int:
        """A position after everything that is placed up to an instant."""
        return max((placed.position for placed in self.placed if placed.time_ns <= time_ns), default=0) + 1


class Cast:
    """The tables of clients, workers and messages; sets the names of lives."""

    def __init__(self, lives: dict[int, ExportedMessage]) -> None:
        self.clients: dict[str, Entry] = {}
        self.workers: dict[str, Entry] = {}
        self.messages: dict[str, Entry] = {}
        self._client_names: dict[tuple[int, bytes], str] = {}
        set_names(lives.values())
        for _, life in sorted(lives.items()):
            self.messages[life.name] = self._message(life)

    def client_of(self, message: Message) -> str:
        """The name of a message's client, which is added if it is new."""
        if message.dialect == INTERNAL:
            return BY_SCHEDULE
        key = (message.dialect, message.address)
        if key not in self._client_names:
            name = self._client_names[key] = f"c{len(self._client_names) + 1}"
            self.clients[name] = {"dialect": DIALECT_NAMES[message.dialect]}
            if can_come_back(message):
                self.clients[name]["identity"] = plain(identity_in(message.address))
        name = self._client_names[key]
        if message.dialect == EMQP and is_of_req(message):
            self.clients[name]["socket"] = "REQ"
        return name

    def worker(self, worker: Worker) -> str:
        """The name of a worker, which is added if it is new."""
        if not worker.name:
            worker.name = f"w{len(self.workers) + 1}"
            worker.entry = self.workers[worker.name] = {"dialect": worker.dialect, "queues": queues_of(worker.joins[0])}
            if worker.identity:
                worker.entry["identity"] = plain(worker.identity)
        return worker.name

    def _message(self, life: ExportedMessage) -> Entry:
        m, accepted_ns, placed_ns = life.message, life.accepted_ns, life.placed_ns
        entry: Entry = {"client": self.client_of(m), "queue": life.queue, "body": life.body}
        client_id = str(int.from_bytes(m.client_id, "big")) if m.dialect == RQ else plain(m.client_id)
        if m.dialect not in (PINGPONG, INTERNAL) and client_id != life.name:
            entry["id"] = client_id
        remaining_s = max(m.expires_ns - placed_ns, 1) / SECOND_NS if m.expires_ns else 0
        if m.dialect == EBUS:
            entry["headers"] = plain(m.headers if placed_ns == accepted_ns else in_ms(m.expires_ns - placed_ns))
        elif m.dialect == EMQP and placed_ns != accepted_ns:
            entry["headers"] = moved_headers(m.headers, remaining_s, max(m.due_ns - placed_ns, 0) / SECOND_NS)
        elif m.headers and m.dialect != RQ:
            entry["headers"] = plain(m.headers)
        if m.dialect == RQ:
            entry |= of_rq(m, remaining_s)
        elif m.dialect == INTERNAL:
            entry |= of_schedule(m, remaining_s)
        return entry


def of_rq(m: Message, remaining_s: float) -> Entry:
    entry: Entry = {}
    if 0 <= m.retries_left <= RQ_RETRIES_MAX:
        entry["retries"] = m.retries_left
    if remaining_s:
        entry["timeout_s"] = max(round(remaining_s), 1)
    if not m.flags & REPLY_WANTED:
        entry["noreply"] = True
    return entry


def of_schedule(m: Message, remaining_s: float) -> Entry:
    entry: Entry = {"flags": flag_words(m.flags), "priority": m.priority, "retries": m.retries_left}
    entry |= {"timeout_s": m.timeout_ns / SECOND_NS, "expires_s": round(remaining_s, 6)}
    usual: Entry = {"flags": [], "priority": 0, "retries": -1, "timeout_s": 0, "expires_s": 0}
    return {name: value for name, value in entry.items() if value != usual[name]}


def set_names(lives: Iterable[ExportedMessage]) -> None:
    """A message's name: its client's id if that is readable and unique, else its number."""
    ids = {life.message.number: readable_id(life.message) for life in lives}
    counts = Counter(ids.values())
    for life in lives:
        number = life.message.number
        name = ids[number]
        life.name = name if name and counts[name] == 1 else f"{name} {number_text(number)}".strip()


def readable_id(m: Message) -> str:
    if m.dialect == RQ or len(m.client_id) > NAME_SIZE_MAX:
        return ""
    name = plain(m.client_id)
    return name if isinstance(name, str) and name.isprintable() else ""


def plain(text: bytes) -> str | bytes:
    """Decoded if it is UTF-8."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text


def queues_of(join: Entry) -> dict[str, int]:
    return {queue: weight for weight, queue in join["queues"]}


def can_come_back(m: Message) -> bool:
    """Whether its client has an identity, so that replies reach it on another connection, too."""
    return len(m.address) > 1 and m.address[0] < ANONYMOUS


def is_of_req(m: Message) -> bool:
    """Whether a REQ peer sent the message: it takes one answer, so of those its headers request only one is in the flags."""
    requested = read_headers(m.headers).flags
    return requested != m.flags and one_answer(requested) == m.flags


def moved_headers(headers: bytes, expires_s: float, delay_s: float) -> str | bytes:
    """The same headers with the remaining `expires` and `delay`, in seconds."""
    left = {b"expires": expires_s, b"delay": delay_s}
    items: list[bytes] = []
    for item in headers.split(b","):
        name = item.partition(b":")[0].strip().lower()
        items.append(b"%s:%.6f" % (name, left[name]) if name in left else item)
    return plain(b",".join(items))
