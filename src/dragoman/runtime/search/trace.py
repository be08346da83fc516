"""Reads the whole history of a message from the journal's files; a running broker is not disturbed, and none is needed.

A message is found by its client's id (several messages may have had it: each has its own history), by its number in
either form, or by the id the broker gave it towards workers, in any dialect's notation (the journal stores the key for those). Indexes tell which
blocks to read, and what they do not cover is read in full: the result is the same with and without them. What the journal no longer has is
read from the lake.

Of a worker that has left, the journal tells what it served, when it joined and left, and why.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from dragoman.core.queries.explain import LEFT_TEXTS
from dragoman.errors import DragomanError, JournalDamaged
from dragoman.journal.segment_views import SegmentView, segment_views
from dragoman.journal.tools.verify import Progress, no_progress
from dragoman.model.enums import REASON_NAMES
from dragoman.model.facts.decode import decode
from dragoman.model.facts.index import NUMBER_MAX, number_key
from dragoman.model.facts.record_filter import find_matches
from dragoman.model.phrases import duration, instant, number_text, read_number
from dragoman.model.wire_ids import WireIds, digits_in
from dragoman.runtime.search.lives import Fact, FactCollector, MessageHistory
from dragoman.runtime.search.naming import stored_ids
from dragoman.runtime.search.search import START_KEY, Search, blocks_with, find_names

__all__ = ["MessageHistory", "departed_worker_lines", "end_line", "find_lives"]

# Note for an id that only the key can resolve; the lake has no key.
KEYLESS: Final = "an id that the broker gave to workers is read with the key in its journal, and this one has none: ask by the number"


def find_lives(
    directory: str,
    key: str,
    progress: Progress = no_progress,
    lake: str | Callable[[], str] = "",
    notes: list[str] | None = None,
) -> list[MessageHistory]:
    """Every history in the journal in `directory` that matches `key`, oldest first.

    `lake`: the root of the lake that has what the journal no longer has, or a function that returns it, called only if needed; empty: no
    lake. Each part of the lake or the journal that could not be read adds a sentence to `notes`."""
    segments = segment_views(directory)
    ids = stored_ids(segments)
    lives = look_through(segments, FactCollector(key, ids), progress, notes)
    is_incomplete = not lives or not all(life.is_whole for life in lives)
    root = (lake() if callable(lake) else lake) if is_incomplete and is_trimmed(segments) else ""
    if root:
        try:
            lives = look_further(segments, key, ids, lives, root)
        except DragomanError as error:
            if notes is not None:
                notes.append(f"the lake could not be asked for what the journal no longer keeps: {error}")
    if not lives and not ids.key and digits_in(key) and notes is not None:
        notes.append(KEYLESS)
    return lives


def look_through(
    segments: list[SegmentView],
    collector: FactCollector,
    progress: Progress = no_progress,
    notes: list[str] | None = None,
) -> list[MessageHistory]:
    """The histories in a journal, added to what was gathered before. With `notes`, damage adds a sentence there and the other segments
    are read; without, it is raised."""
    search = Search(collector.client_id, collector.numbers)
    total, done = sum(view.file.size for view in segments), 0
    for view in segments:
        search.know(collector.numbers, collector.wire_ids)
        try:
            for block in search.blocks(view):
                collector.block(block.records, block.first_lsn, block.time_ns)
        except FileNotFoundError:
            pass  # deleted during the search
        except JournalDamaged as damage:
            if notes is None:
                raise
            notes.append(
                f"{damage.file} is damaged at byte {damage.offset} ({damage.reason}): what it tells behind that is left out"
            )
        done += view.file.size
        progress(done, total)
    lives = collector.lives()
    with suppress(FileNotFoundError):
        find_names(search.picked, lives, collector.names)
    for life in lives:
        collector.names.put_in(life)
    return lives


def is_trimmed(segments: list[SegmentView]) -> bool:
    """Whether facts were deleted from the journal: its first ones, or segments in between."""
    headers = [view.file.header for view in segments if view.file.header is not None]
    numbers = [view.file.segment_no for view in segments]
    return not headers or headers[0].first_lsn > 1 or numbers[-1] - numbers[0] >= len(numbers)


def look_further(
    segments: list[SegmentView], key: str, ids: WireIds, lives: list[MessageHistory], lake: str
) -> list[MessageHistory]:
    """The histories including the lake's facts, which may lead to more facts in the journal."""
    from dragoman.lake.lookup import facts_of

    collector = FactCollector(key, ids)
    collector.numbers.update(life.number for life in lives)
    # A search by client id reads every file of the lake: do it only if the journal does not have the message's acceptance.
    client_id = b"" if lives and all(life.is_begun for life in lives) else collector.client_id
    broker_id = next((view.file.header.broker_id for view in segments if view.file.header is not None), None)
    for fact in facts_of(lake, broker_id, client_id, collector.numbers):
        collector.add(fact)
    return look_through(segments, collector)


def end_line(life: MessageHistory) -> str:
    """How a settled message ended, in the words of `explain`."""
    closed = life.end
    assert closed is not None
    line = f"settled: {closed['outcome']} ({closed['reason']}) {instant(closed['time_ns'], 0)}"
    if closed["accepted_ns"]:
        line += f", {duration(closed['time_ns'] - closed['accepted_ns'])} after it was accepted"
    if closed["worker_no"]:
        name = closed.get("worker") or "worker"
        line += f", by {name} (w{number_text(closed['worker_no'])}), attempt {closed['attempt']}"
    return line


def departed_worker_lines(directory: str, key: str, now_ns: int) -> list[str]:
    """How a worker left, in the words of `explain`; `key` is its number in either form. Empty if the journal has no fact about it."""
    number = read_number(key.removeprefix("w"))
    if not 0 < number <= NUMBER_MAX:
        return []
    joined, end = session_of(directory, number)
    if joined is None:
        return [went_line(end, now_ns), "what it served is older than what is kept"] if end is not None else []
    served = ", ".join(f"`{queue}`" for _, queue in joined["queues"]) or "no queue"
    name = joined["identity"] or "a worker without a name"
    session = f"{name} ({joined['dialect']}, from {joined['remote']}) joined {instant(joined['time_ns'], now_ns)} and served {served}"
    return [went_line(end, now_ns), session]


def went_line(end: Fact | None, now_ns: int) -> str:
    if end is None:
        return (
            "was connected when the journal last told of it: the broker stopped since, or is about to write how it left"
        )
    when = f"{instant(end['time_ns'], now_ns)}, {duration(max(now_ns - end['time_ns'], 0))} ago"
    if end["fact"] == "started":
        return f"was connected until the broker started anew {when}"
    reason = end["reason"]
    text = LEFT_TEXTS.get(REASON_NAMES.index(reason), reason) if reason in REASON_NAMES else reason
    return f"left {when} ({text})"


def session_of(directory: str, number: int) -> tuple[Fact | None, Fact | None]:
    """The worker's last `worker_joined` fact, with the time of its first, and the fact that ended its session."""
    joined: Fact | None = None
    keys = {number_key(number), START_KEY}
    for view in segment_views(directory):
        with suppress(FileNotFoundError):  # deleted during the search
            for block in blocks_with(view, keys):
                found: list[tuple[int, int]] = []
                find_matches(block.records, {number}, b"", found)
                for at, _ in found:
                    fact: Fact = decode(block.records, at) | {"time_ns": block.time_ns}
                    if fact["fact"] == "worker_joined" and fact["worker_no"] == number:
                        joined = fact | {"time_ns": joined["time_ns"] if joined is not None else block.time_ns}
                    elif fact["fact"] == "worker_left" or (fact["fact"] == "started" and joined is not None):
                        return joined, fact
    return joined, None
