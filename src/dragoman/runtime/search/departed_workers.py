"""Reads from the journal about workers that are no longer connected: what they served, when they joined and left, and why."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from dragoman.core.queries.explain import LEFT_TEXTS
from dragoman.journal.segment_views import segment_views
from dragoman.model.facts.decode import decode
from dragoman.model.facts.index import NUMBER_MAX, number_key
from dragoman.model.facts.record_filter import find_matches
from dragoman.model.phrases import duration, instant, read_number
from dragoman.model.words import REASON_NAMES
from dragoman.runtime.search.lives import Fact
from dragoman.runtime.search.search import START_KEY, blocks_with

WORKER_PREFIX: Final = "w"


def absentee_lines(directory: str, key: str, now_ns: int) -> list[str]:
    """How a worker left, in the words of `explain`; `key` is its number in either form. Empty if the journal has no fact about it."""
    number = read_number(key.removeprefix(WORKER_PREFIX))
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
