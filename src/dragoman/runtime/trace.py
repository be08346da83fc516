"""The whole life of a message, read from the journal's files; a running broker is not disturbed, a stopped one not needed.

A message is looked for by its client's id (there may have been several with it: each is a life of its own), by its number in
either form, or by the id the broker gave it towards workers, in any dialect's shape (the journal keeps the key of those). Indexes say which blocks to read, and what they do not cover is read
whole: the answer is the same with and without them. What the journal no longer keeps is asked of the lake.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from dragoman.core.phrases import duration, instant, number_text
from dragoman.errors import DragomanError, JournalDamaged
from dragoman.journal.stretches import Stretch, stretches
from dragoman.model.wire_ids import WireIds, digits_in
from dragoman.runtime.lives import Gathering, Life
from dragoman.runtime.naming import kept_ids
from dragoman.runtime.search import Search, find_names

__all__ = ["Life", "end_line", "find_lives", "trace"]

# What an id means that only the key can tell; the lake has none.
KEYLESS: Final = "an id that the broker gave to workers is read with the key in its journal, and this one has none: ask by the number"

Progress = Callable[[int, int], None]  # bytes looked through, bytes in all


def no_progress(done: int, total: int) -> None:
    pass


def find_lives(
    directory: str,
    key: str,
    progress: Progress = no_progress,
    lake: str | Callable[[], str] = "",
    notes: list[str] | None = None,
) -> list[Life]:
    """Every life of the journal in `directory` that answers to `key`, oldest first.

    `lake`: the root of the lake that has what the journal no longer keeps, or who knows it, asked only if it is needed; empty: there is
    none. What could not be read of it, or of the journal, is a sentence in `notes`."""
    segments = stretches(directory)
    ids = kept_ids(segments)
    lives = look_through(segments, Gathering(key, ids), progress, notes)
    lives = with_lake(segments, key, ids, lives, lake, notes)
    if not lives and not ids.key and digits_in(key) and notes is not None:
        notes.append(KEYLESS)
    return lives


def with_lake(
    segments: list[Stretch],
    key: str,
    ids: WireIds,
    lives: list[Life],
    lake: str | Callable[[], str],
    notes: list[str] | None,
) -> list[Life]:
    """The same lives, and more of them, with what the lake knows where the journal does not keep everything."""
    if not is_trimmed(segments) or (lives and all(life.is_whole for life in lives)):
        return lives
    root = lake() if callable(lake) else lake
    if not root:
        return lives
    try:
        return look_further(segments, key, ids, lives, root)
    except DragomanError as error:
        if notes is not None:
            notes.append(f"the lake could not be asked for what the journal no longer keeps: {error}")
        return lives


def look_through(
    segments: list[Stretch], gathering: Gathering, progress: Progress = no_progress, notes: list[str] | None = None
) -> list[Life]:
    """The lives that a journal tells of, added to what was gathered before. With `notes` damage is a sentence there and the other segments
    are read; without, it is raised."""
    search = Search(gathering.client_id, gathering.numbers)
    total, done = sum(stretch.file.size for stretch in segments), 0
    for stretch in segments:
        search.know(gathering.numbers, gathering.wire_ids)
        try:
            for block in search.blocks(stretch):
                gathering.block(block.records, block.first_lsn, block.time_ns)
        except FileNotFoundError:
            pass  # trimmed under our feet
        except JournalDamaged as damage:
            if notes is None:
                raise
            notes.append(
                f"{damage.file} is damaged at byte {damage.offset} ({damage.reason}): what it tells behind that is left out"
            )
        done += stretch.file.size
        progress(done, total)
    lives = gathering.lives()
    with suppress(FileNotFoundError):
        find_names(search.picked, lives, gathering.names)
    for life in lives:
        gathering.names.put_in(life)
    return lives


def is_trimmed(segments: list[Stretch]) -> bool:
    """Whether facts are gone from the journal: its first one, or segments in between."""
    headers = [stretch.file.header for stretch in segments if stretch.file.header is not None]
    numbers = [stretch.file.segment_no for stretch in segments]
    return not headers or headers[0].first_lsn > 1 or numbers[-1] - numbers[0] >= len(numbers)


def look_further(segments: list[Stretch], key: str, ids: WireIds, lives: list[Life], lake: str) -> list[Life]:
    """The same with what the lake knows, which may lead to more in the journal."""
    from dragoman.lake.lookup import facts_of

    gathering = Gathering(key, ids)
    gathering.numbers.update(life.number for life in lives)
    # By an id every file of the lake is looked through: only where the journal does not tell whose it was.
    client_id = b"" if lives and all(life.is_begun for life in lives) else gathering.client_id
    broker_id = next((stretch.file.header.broker_id for stretch in segments if stretch.file.header is not None), None)
    for fact in facts_of(lake, broker_id, client_id, gathering.numbers):
        gathering.hear(fact)
    return look_through(segments, gathering)


def trace(directory: str, key: str, progress: Progress = no_progress) -> list[Life]:
    """The same from the journal alone and without its indexes: by reading every block."""
    segments = stretches(directory)
    for stretch in segments:
        stretch.index = None
    return look_through(segments, Gathering(key, kept_ids(segments)), progress)


def end_line(life: Life) -> str:
    """How a settled message ended, as `explain` says it."""
    closed = life.end
    assert closed is not None
    line = f"settled: {closed['outcome']} ({closed['reason']}) {instant(closed['time_ns'], 0)}"
    if closed["accepted_ns"]:
        line += f", {duration(closed['time_ns'] - closed['accepted_ns'])} after it was accepted"
    if closed["worker_no"]:
        name = closed.get("worker") or "worker"
        line += f", by {name} (w{number_text(closed['worker_no'])}), attempt {closed['attempt']}"
    return line
