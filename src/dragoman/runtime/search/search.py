"""Finds the blocks that a message's history is read from, by the indexes of the segments.

Invariant: the result contains every relevant block, in order. Irrelevant blocks do no harm, because the caller checks each
record. So the result may be too large and is never too small: a key shared by two things costs an extra block, a
damaged index or a search with too many keys costs reading a whole segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dragoman import limits
from dragoman.journal.format import Block
from dragoman.journal.segment_views import SegmentView
from dragoman.journal.tools.index import IndexUntrue
from dragoman.model.facts.decode import decode
from dragoman.model.facts.index import NUMBER_MAX, id_key, number_key
from dragoman.model.facts.layout import KIND, QUEUE_NAMED, WORKER_JOINED
from dragoman.model.facts.record_filter import find_matches
from dragoman.runtime.search.lives import BEGINNINGS, Fact, MessageHistory, Names, wire_ids_of

START_KEY: Final = number_key(0)  # key of the broker's starts


class Search:
    """What is known so far of the searched messages: their numbers, and the index keys of everything that may concern them."""

    def __init__(self, client_id: bytes, numbers: set[int]) -> None:
        self._client_id = client_id
        self._numbers: set[int] = set()
        self._keys = {START_KEY, id_key(client_id)}
        self.picked: list[SegmentView] = []  # segments that were read in part
        self.know(numbers, ())

    def know(self, numbers: set[int], wire_ids: Iterable[str]) -> None:
        """Add what was found elsewhere: more messages, and the ids by which late answers may name them."""
        self._keys |= number_keys(numbers - self._numbers)
        self._numbers |= numbers
        self._keys |= {id_key(wire_id.encode()) for wire_id in wire_ids}

    def blocks(self, view: SegmentView) -> Iterator[Block]:
        """Every relevant block of a segment, and maybe more."""
        picked = self._pick(view)
        if picked is None:
            yield from view.blocks()
            return
        self.picked.append(view)
        yield from picked
        yield from view.rest()

    def _learn(self, block: Block) -> None:
        """Add the keys found in a block, which may lead to other blocks."""
        found: list[tuple[int, int]] = []
        numbers = set(self._numbers)
        find_matches(block.records, numbers, self._client_id, found)
        facts: list[Fact] = [decode(block.records, at) for at, _ in found]
        beginnings = [fact for fact in facts if fact["fact"] in BEGINNINGS]
        self.know(numbers, (id_ for fact in beginnings for id_ in wire_ids_of(fact["message_no"], fact["client_id"])))

    def _pick(self, view: SegmentView) -> list[Block] | None:
        """The indexed blocks that match; None when the whole segment must be read."""
        if view.index is None:
            return None
        blocks: dict[int, Block] = {}
        seen: set[int] = set()
        try:
            while new := self._keys - seen:
                if len(self._keys) > limits.INDEX_KEYS_MAX:
                    return None
                seen |= new
                fetched = view.fetch(view.find(new) - blocks.keys())
                for offset in sorted(fetched):
                    self._learn(fetched[offset])
                blocks |= fetched
        except IndexUntrue:
            return None
        return [blocks[offset] for offset in sorted(blocks)]


def indexed_blocks(view: SegmentView, keys: set[int]) -> list[Block] | None:
    """The indexed blocks of a segment that may contain one of these keys, in order; None when the whole segment must be read."""
    if view.index is None or len(keys) > limits.INDEX_KEYS_MAX:
        return None
    try:
        blocks = view.fetch(view.find(keys))
    except IndexUntrue:
        return None
    return [blocks[offset] for offset in sorted(blocks)]


def blocks_with(view: SegmentView, keys: set[int]) -> Iterator[Block]:
    """Every block of a segment that contains one of these keys, and maybe more, in order."""
    indexed = indexed_blocks(view, keys)
    if indexed is None:
        yield from view.blocks()
    else:
        yield from indexed
        yield from view.rest()


def number_keys(numbers: set[int]) -> set[int]:
    return {number_key(number) for number in numbers if number <= NUMBER_MAX}


def find_names(views: list[SegmentView], lives: list[MessageHistory], names: Names) -> None:
    """Add the names of these messages' queues and workers from segments that were read in part."""
    wanted = {fact.get("worker_no", 0) for life in lives for fact in life.facts} | {life.queue_no for life in lives}
    keys = number_keys(wanted - {0})
    for view in views if keys else ():
        indexed = indexed_blocks(view, keys)
        for block in view.blocks() if indexed is None else indexed:
            for fact in name_facts(block):
                names.add(fact)


def name_facts(block: Block) -> Iterator[Fact]:
    found: list[tuple[int, int]] = []
    find_matches(block.records, set(), b"", found)
    for at, ordinal in found:
        if block.records[at + KIND] in (QUEUE_NAMED, WORKER_JOINED):
            yield decode(block.records, at) | {"lsn": block.first_lsn + ordinal}
