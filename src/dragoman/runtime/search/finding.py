"""Searches the journal's files for messages by queue, peer, state, dialect and time, for which there is no index key.

Segments are searched from the newest backwards, each one forwards, by record fields at fixed offsets (`model/facts/record_filter`). The
histories of the messages found are then built from all of their facts, as in a trace, and only those that match the search become
rows. The times of blocks never decrease, so a time range is a range of segments.

The work is limited, and an answer says how far the search went. Pages are by lsn: a message is listed at one fact, and the next page has
messages listed below the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any, Final

from dragoman import limits
from dragoman.errors import BadSearch
from dragoman.journal.format import SEGMENT_MOVED, Block, SegmentHeader
from dragoman.journal.segment_views import SegmentView, segment_views
from dragoman.journal.tools.verify import Progress, no_progress
from dragoman.model.enums import DIALECT_NAMES, STATE_NAMES, shown
from dragoman.model.facts.record_filter import ANY, ENDED, OPEN, Filter, find_listed, note_numbers
from dragoman.model.peer import client_of, identities_of
from dragoman.model.phrases import number_text, read_number
from dragoman.runtime.search.lives import BEGINNINGS, Fact, FactCollector, MessageHistory
from dragoman.runtime.search.naming import Naming
from dragoman.runtime.search.trace import look_through

FOREVER: Final = 2**63 - 1
NO_HEADER: Final = SegmentHeader(0, 0, 0, 0, 0, 0, 0, 0, b"")  # of a segment without a readable header
ENDS: Final = ("done", "rejected", "expired", "cancelled")
STATES: Final = {"": ANY, "open": OPEN, "ended": ENDED} | {name: STATE_NAMES.index(name) for name in ENDS}
CHUNK_SIZE: Final = 8 * 1024 * 1024  # bytes of records in memory at a time


@dataclass(frozen=True, slots=True)
class Question:
    """Search criteria; an empty one matches any. From `from_ns` on and before `to_ns`; listed below `before_lsn`."""

    queue: str = ""
    peer: str = ""
    state: str = ""
    dialect: str = ""
    from_ns: int = 0
    to_ns: int = FOREVER
    before_lsn: int = FOREVER
    limit: int = 50

    def check(self) -> None:
        if self.state not in STATES:
            raise BadSearch(f"there is no state {self.state!r}; there are: {', '.join(filter(None, STATES))}")
        if self.dialect and self.dialect not in DIALECT_NAMES:
            names = [name for number, name in enumerate(DIALECT_NAMES) if name != f"unknown_{number}"]
            raise BadSearch(f"there is no dialect {self.dialect!r}; there are: {', '.join(names)}")
        if self.to_ns <= self.from_ns:
            raise BadSearch("the span of time ends before it begins")
        if not 1 <= self.before_lsn <= FOREVER:
            raise BadSearch(f"no fact has the lsn {self.before_lsn}")
        if not 1 <= self.limit <= limits.FIND_ROWS_MAX:
            raise BadSearch(f"an answer lists 1 to {limits.FIND_ROWS_MAX} messages, not {self.limit}")

    def filter(self) -> Filter:
        dialect = DIALECT_NAMES.index(self.dialect) if self.dialect else ANY
        found = Filter(STATES[self.state], dialect, bool(self.queue), bool(self.peer))
        found.before_lsn = self.before_lsn
        found.identities = identities_of(self.peer)
        number = read_number(self.peer.removeprefix("w"))
        if 0 < number <= FOREVER:
            found.worker_nos.add(number)
        return found


@dataclass(slots=True)
class Row:
    """Summary of one message. `state` is `open`, or how it ended; `unknown` if not everything that may contain its end was read."""

    number: int
    client_id: str
    queue_no: int
    queue: str
    dialect: str
    client: str  # its identity; empty: it gave none, or its acceptance is no longer stored
    worker_no: int  # the worker that settled it, or holds it now; 0: none
    worker_name: str
    accepted_ns: int
    ended_ns: int
    state: str
    reason: str
    lsn: int  # of the fact at which it is listed

    def view(self) -> dict[str, Any]:
        view = asdict(self) | {"id": number_text(self.number)}
        view["worker"] = f"w{number_text(self.worker_no)}" if self.worker_no else ""
        return {key: value for key, value in view.items() if key not in ("queue_no", "worker_no")}


@dataclass(slots=True)
class Answer:
    """Rows, newest first. Everything from `searched_from_ns` on was searched; `next_lsn`: the `before_lsn` of the next page, 0 when there is
    nothing further back."""

    rows: list[Row] = field(default_factory=list)
    searched_from_ns: int = 0
    next_lsn: int = 0
    notes: list[str] = field(default_factory=list)


def find_messages(
    directory: str, question: Question, naming: Naming | None = None, progress: Progress = no_progress
) -> Answer:
    """Messages in the journal in `directory`. `naming`: names of queues and workers known from elsewhere."""
    question.check()
    return Finder(segment_views(directory), question, naming if naming is not None else Naming()).find(progress)


class Finder:
    """One search."""

    def __init__(self, segments: list[SegmentView], question: Question, naming: Naming) -> None:
        self._segments, self._question, self._naming = segments, question, naming
        self._wanted = question.filter()
        self._since_ns = since_of(segments, question.from_ns)
        self._history_segments, self._complete_from = affordable(segments)
        self._built_count = 0
        self.answer = Answer(searched_from_ns=question.from_ns)

    def find(self, progress: Progress) -> Answer:
        wanted = self._in_question()
        total, read = sum(self._segments[at].file.size for at in wanted), 0
        lowest: SegmentView | None = None  # the oldest segment read so far
        for at in wanted:
            if read >= limits.FIND_SIZE_MAX and lowest is not None:
                self._cut(header_of(lowest).first_lsn, header_of(lowest).created_ns)
                break
            with suppress(FileNotFoundError):  # deleted during the search
                # Histories are built from these; the one the messages were found in is among them.
                segments = [one for one in self._segments if one in self._history_segments or one is self._segments[at]]
                if not self._list(self._scan(at), segments):
                    break
            read += self._segments[at].file.size
            lowest = self._segments[at] if self._segments[at].file.header is not None else lowest
            progress(read, total)
        else:
            self.answer.searched_from_ns = max(self._question.from_ns, min(self._since_ns, default=0))
        if self._complete_from > 0:
            self.answer.notes.append(
                "much of the journal has no index and was not read for names, and for how these messages began and ended: "
                "`dragoman journal index` makes them"
            )
        return self.answer

    def _in_question(self) -> list[int]:
        """The segments that may contain matches, newest first."""
        found = []
        ends = [header_of(after).created_ns for after in self._segments[1:]]
        for at, (view, end_ns) in enumerate(zip(self._segments, [*ends, FOREVER], strict=True)):
            header = header_of(view)
            # Moved blocks may be much older than their segment.
            begun_ns = 0 if header.flags & SEGMENT_MOVED else header.created_ns
            if end_ns < self._question.from_ns or begun_ns >= self._question.to_ns:
                continue
            if header.first_lsn < self._question.before_lsn:
                found.append(at)
        return found[::-1]

    def _scan(self, at: int) -> list[tuple[int, int]]:
        """The messages found in a segment: lsn and number, newest first."""
        wanted = self._wanted
        wanted.since_ns = self._since_ns[at]
        found: dict[int, int] = {}
        for blocks in self._chunks(self._segments[at]):
            if wanted.has_queue or wanted.has_peer:
                self._name(blocks)
            if not wanted.has_queue or wanted.queue_nos:
                for block in blocks:
                    find_listed(block.records, block.first_lsn, wanted, found)
        return sorted(((lsn, number) for number, lsn in found.items() if number not in wanted.ended), reverse=True)

    def _chunks(self, view: SegmentView) -> Iterator[list[Block]]:
        """The blocks of a segment in the searched range, in chunks."""
        chunk: list[Block] = []
        size = 0
        for block in view.blocks():
            if block.first_lsn >= self._question.before_lsn or block.time_ns >= self._question.to_ns:
                break
            if block.time_ns >= self._question.from_ns:
                chunk.append(block)
                size += len(block.records)
            if size >= CHUNK_SIZE:
                yield chunk
                chunk, size = [], 0
        yield chunk

    def _name(self, blocks: list[Block]) -> None:
        """Find which queues and workers of these blocks match the search; the facts with their names may be much older."""
        queue_nos: set[int] = set()
        worker_nos: set[int] = set()
        for block in blocks:
            note_numbers(block.records, queue_nos, worker_nos)
        self._naming.learn(
            self._history_segments,
            queue_nos if self._wanted.has_queue else set(),
            worker_nos - {0} if self._wanted.has_peer else set(),
        )
        self._wanted.queue_nos |= self._naming.queue_nos(self._question.queue)
        if self._wanted.has_peer:
            identities = self._wanted.identities
            # A running broker names a worker whose identity is not text by its hex; facts show the identity.
            names = {self._question.peer, *map(shown, identities), *(identity.hex() for identity in identities)}
            self._wanted.worker_nos |= self._naming.worker_nos(names)

    def _list(self, seen: list[tuple[int, int]], segments: list[SegmentView]) -> bool:
        """Build the histories of found messages until the page is full; False when the search must end."""
        for start in range(0, len(seen), limits.FIND_TOLD_STEP):
            step = seen[start : start + limits.FIND_TOLD_STEP]
            missing = self._question.limit - len(self.answer.rows)
            for part in (step[:missing], step[missing:]):  # most found messages become rows
                lives = self._histories(part, segments)
                for lsn, number in part:
                    row = self._row(lives[number], lsn) if number in lives else None
                    if row is not None:
                        self._put(row)
                        if len(self.answer.rows) == self._question.limit:
                            self._cut(lsn, self._time_of(lives[number], lsn))
                            return False
                    elif self._built_count >= limits.FIND_TOLD_MAX and (lsn, number) == part[-1]:
                        self._cut(lsn, self._time_of(lives.get(number), lsn))
                        return False
        return True

    def _histories(self, part: list[tuple[int, int]], segments: list[SegmentView]) -> dict[int, MessageHistory]:
        if not part:
            return {}
        self._built_count += len(part)
        collector = FactCollector("")
        collector.numbers.update(number for _, number in part)
        return {life.number: life for life in look_through(segments, collector)}

    def _row(self, life: MessageHistory, lsn: int) -> Row | None:
        """The row; None if the message does not match, or is listed at another fact. What one segment alone could not decide is decided here, by the
        same `Filter`, from all facts of the message."""
        row = row_of(life, lsn)
        state = OPEN if row.state == "open" else number_of(STATE_NAMES, row.state)
        if not self._wanted.has_origin(row.queue_no, number_of(DIALECT_NAMES, row.dialect)):
            return None
        if not self._wanted.has_state(state):
            return None
        listed = [fact["lsn"] for fact in life.facts if self._lists(fact)]
        return row if listed and max(listed) == lsn else None

    def _lists(self, fact: Fact) -> bool:
        if not self._question.from_ns <= fact["time_ns"] < self._question.to_ns:
            return False
        wanted = self._wanted
        if fact["fact"] == "accepted":
            return wanted.lists_accepted(not wanted.identities.isdisjoint(identities_of(client_of(fact["address"]))))
        if fact["fact"] == "leased":
            return wanted.lists_leased(fact["worker_no"])
        if fact["fact"] == "closed":
            since_ns = self._since(fact["lsn"])
            return wanted.lists_closed(fact["worker_no"], fact.get("holder_no", 0), fact["accepted_ns"], since_ns)
        return False

    def _put(self, row: Row) -> None:
        if not row.queue and not self._naming.queue(row.queue_no):
            self._naming.learn_from_checkpoint(self._segments)
        row.queue = row.queue or self._naming.queue(row.queue_no)
        row.worker_name = row.worker_name or self._naming.worker(row.worker_no)
        if row.state == "open" and row.lsn < self._complete_from:
            row.state = "unknown"
        self.answer.rows.append(row)

    def _since(self, lsn: int) -> int:
        """The time from which on messages were searched together with the fact of this lsn."""
        positions = [at for at, view in enumerate(self._segments) if header_of(view).first_lsn <= lsn]
        return self._since_ns[positions[-1]] if positions else 0

    def _time_of(self, life: MessageHistory | None, lsn: int) -> int:
        facts = life.facts if life is not None else []
        return next((int(fact["time_ns"]) for fact in facts if fact["lsn"] == lsn), self._question.from_ns)

    def _cut(self, next_lsn: int, at_ns: int) -> None:
        self.answer.next_lsn = next_lsn
        self.answer.searched_from_ns = max(at_ns, self._question.from_ns)


def since_of(segments: list[SegmentView], from_ns: int) -> list[int]:
    """For each segment: the time from which on all facts before it are still stored, within the searched range."""
    found: list[int] = []
    for before, view in pairwise([None, *segments]):
        assert view is not None
        follows = before is not None and before.file.segment_no + 1 == view.file.segment_no
        if not follows:
            first = None
            with suppress(FileNotFoundError):
                first = next(iter(view.blocks()), None)
            since_ns = first.time_ns if first is not None else header_of(view).created_ns
        found.append(max(since_ns, from_ns))
    return found


def affordable(segments: list[SegmentView]) -> tuple[list[SegmentView], int]:
    """The segments from which histories are built: those with an index, and as many others as may be read whole, newest first; and
    the lsn from which on none is left out, 0 if none is left out at all."""
    left, complete_from = limits.FIND_SIZE_MAX, 0
    chosen: list[SegmentView] = []
    for view in reversed(segments):
        cost = view.file.size if view.index is None else view.file.size - view.index.covered.end
        if cost <= left or view is segments[-1]:
            left -= cost
            chosen.append(view)
        elif complete_from == 0:
            complete_from = header_of(segments[segments.index(view) + 1]).first_lsn
    return chosen[::-1], complete_from


def header_of(view: SegmentView) -> SegmentHeader:
    return view.file.header or NO_HEADER


def number_of(words: list[str], word: str) -> int:
    """The index of a word in the list; one past the end if it is not in it."""
    return words.index(word) if word in words else len(words)


def row_of(life: MessageHistory, lsn: int) -> Row:
    begin: Fact = next((fact for fact in life.facts if fact["fact"] in BEGINNINGS), {})
    end = life.end
    leases = [fact for fact in life.facts if fact["fact"] == "leased"] if life.is_leased else []
    last = end if end is not None else leases[-1] if leases else {}
    return Row(
        number=life.number,
        client_id=life.client_id,
        queue_no=life.queue_no,
        queue=life.queue,
        dialect=begin.get("dialect") or (end["dialect"] if end is not None else ""),
        client=client_of(begin.get("address", "")),
        worker_no=last.get("worker_no", 0),
        worker_name=last.get("worker", ""),
        accepted_ns=(end or {"accepted_ns": begin.get("time_ns", 0)} | begin)["accepted_ns"],
        ended_ns=end["time_ns"] if end is not None else 0,
        state=end["outcome"] if end is not None else "open",
        reason=end["reason"] if end is not None else "",
        lsn=lsn,
    )
