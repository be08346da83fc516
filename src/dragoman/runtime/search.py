"""Looking for the blocks that a life is told from, by the indexes of the segments.

The law: what is handed on holds every block that matters, in order; blocks that do not matter change nothing, for whoever takes them
looks at each record. So it may be too much, and is never too little: a key that two things share costs a block, an index that
is damaged or a search that is too wide costs a segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dragoman import limits
from dragoman.journal.format import Block
from dragoman.journal.index import IndexUntrue
from dragoman.journal.stretches import Stretch
from dragoman.model.decode import decode
from dragoman.model.index import NUMBER_MAX, id_key, number_key
from dragoman.model.mentions import find_mentions
from dragoman.model.records import QUEUE_NAMED, WORKER_JOINED
from dragoman.runtime.lives import BEGINNINGS, Fact, Life, Names, wire_ids_of

START_KEY: Final = number_key(0)  # the broker's starts


class Search:
    """What is known so far of the messages looked for: their numbers, and the keys of all that may tell of them."""

    def __init__(self, client_id: bytes, numbers: set[int]) -> None:
        self._client_id = client_id
        self._numbers: set[int] = set()
        self._keys = {START_KEY, id_key(client_id)}
        self.picked: list[Stretch] = []  # segments of which only some blocks were read
        self.know(numbers, ())

    def know(self, numbers: set[int], wire_ids: Iterable[str]) -> None:
        """What was found out elsewhere: more messages, and the ids by which late answers may name them."""
        self._keys |= number_keys(numbers - self._numbers)
        self._numbers |= numbers
        self._keys |= {id_key(wire_id.encode()) for wire_id in wire_ids}

    def blocks(self, stretch: Stretch) -> Iterator[Block]:
        """Every block of a segment that matters, and maybe more."""
        picked = self._pick(stretch)
        if picked is None:
            yield from stretch.blocks()
            return
        self.picked.append(stretch)
        yield from picked
        yield from stretch.rest()

    def _learn(self, block: Block) -> None:
        """What a block says of the messages looked for may lead to other blocks."""
        found: list[tuple[int, int]] = []
        numbers = set(self._numbers)
        find_mentions(block.records, numbers, self._client_id, found)
        facts: list[Fact] = [decode(block.records, at) for at, _ in found]
        beginnings = [fact for fact in facts if fact["fact"] in BEGINNINGS]
        self.know(numbers, (id_ for fact in beginnings for id_ in wire_ids_of(fact["message_no"], fact["client_id"])))

    def _pick(self, stretch: Stretch) -> list[Block] | None:
        """The covered blocks that its index names; None when all of the segment must be read."""
        if stretch.index is None:
            return None
        blocks: dict[int, Block] = {}
        seen: set[int] = set()
        try:
            while new := self._keys - seen:
                if len(self._keys) > limits.INDEX_KEYS_MAX:
                    return None
                seen |= new
                fetched = stretch.fetch(stretch.find(new) - blocks.keys())
                for offset in sorted(fetched):
                    self._learn(fetched[offset])
                blocks |= fetched
        except IndexUntrue:
            return None
        return [blocks[offset] for offset in sorted(blocks)]


def blocks_with(stretch: Stretch, keys: set[int]) -> Iterator[Block]:
    """Every block of a segment that tells of one of these keys, and maybe more, in order."""
    try:
        picked = stretch.fetch(stretch.find(keys)) if stretch.index is not None else None
    except IndexUntrue:
        picked = None
    if picked is None:
        yield from stretch.blocks()
        return
    for offset in sorted(picked):
        yield picked[offset]
    yield from stretch.rest()


def number_keys(numbers: set[int]) -> set[int]:
    return {number_key(number) for number in numbers if number <= NUMBER_MAX}


def find_names(stretches: list[Stretch], lives: list[Life], names: Names) -> None:
    """Hear, from segments of which only some blocks were read, what the queues and workers of these lives are called."""
    wanted = {fact.get("worker_no", 0) for life in lives for fact in life.facts} | {life.queue_no for life in lives}
    keys = number_keys(wanted - {0})
    if not keys:
        return
    for stretch in stretches:
        try:
            if len(keys) > limits.INDEX_KEYS_MAX:
                raise IndexUntrue
            blocks: Iterable[Block] = stretch.fetch(stretch.find(keys)).values()
        except IndexUntrue:
            blocks = stretch.blocks()
        for block in blocks:
            for fact in name_facts(block):
                names.hear(fact)


def name_facts(block: Block) -> Iterator[Fact]:
    found: list[tuple[int, int]] = []
    find_mentions(block.records, set(), b"", found)
    for at, ordinal in found:
        if block.records[at + 4] in (QUEUE_NAMED, WORKER_JOINED):
            yield decode(block.records, at) | {"lsn": block.first_lsn + ordinal}
