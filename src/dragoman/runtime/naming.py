"""What queues and workers are called, found in the journal by their numbers: a name may have been told long before it is needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from librt.strings import read_i32_le, read_i64_le

from dragoman import limits
from dragoman.core.checkpoint_reader import queue_names, read_key
from dragoman.errors import JournalDamaged
from dragoman.journal.format import Block
from dragoman.journal.stretches import Stretch
from dragoman.model.decode import shown
from dragoman.model.records import KEYED
from dragoman.model.wire_ids import WireIds
from dragoman.runtime.search import START_KEY, blocks_with, name_facts, number_keys


class Naming:
    """Names heard so far. `queues` and `workers`: what a running broker knows, which may be more than the journal still tells."""

    def __init__(
        self, queues: Mapping[int, str] | None = None, workers: Mapping[int, Iterable[str]] | None = None
    ) -> None:
        self._queues: dict[int, str] = dict(queues or {})
        self._workers: dict[int, list[str]] = {number: list(names) for number, names in (workers or {}).items()}
        self._missed: set[int] = set()  # looked for, and told of by no fact
        self._has_kept = False  # whether the newest checkpoint was asked

    def learn(self, segments: list[Stretch], queue_nos: set[int], worker_nos: set[int]) -> None:
        """Look for those that have no name yet, the newest segments first."""
        missing = (queue_nos - self._queues.keys()) | (worker_nos - self._workers.keys())
        missing -= self._missed
        for stretch in reversed(segments):
            if not missing:
                return
            with suppress(FileNotFoundError):  # trimmed under our feet: what other segments tell still counts
                for block in naming_blocks(stretch, missing):
                    self._hear(block)
            missing -= self._queues.keys() | self._workers.keys()
        if not missing.isdisjoint(queue_nos):
            self.learn_kept(segments)
        self._missed |= missing

    def learn_kept(self, segments: list[Stretch]) -> None:
        """Look for the names of queues that no fact tells any more, once."""
        if not self._has_kept:
            self._has_kept = True
            self._queues = kept_queue_names(segments) | self._queues

    def queue(self, number: int) -> str:
        return self._queues.get(number, "")

    def worker(self, number: int) -> str:
        """Its identity, or where it came from."""
        return next(filter(None, self._workers.get(number, ())), "")

    def queue_nos(self, name: str) -> set[int]:
        return {number for number, known in self._queues.items() if known == name}

    def worker_nos(self, names: set[str]) -> set[int]:
        return {number for number, known in self._workers.items() if not names.isdisjoint(known)}

    def _hear(self, block: Block) -> None:
        for fact in name_facts(block):
            if fact["fact"] == "queue_named":
                self._queues.setdefault(fact["queue_no"], fact["queue"])
            else:
                names = [fact["identity"], fact["remote"]]
                self._workers.setdefault(fact["worker_no"], [name for name in names if name])


def kept_queue_names(segments: list[Stretch]) -> dict[int, str]:
    """The names in the newest checkpoint: the facts that told them may be gone. A queue keeps its number and its name for ever."""
    names: dict[int, bytes] = {}
    for stretch in reversed(segments):
        with suppress(FileNotFoundError):  # trimmed under our feet
            for records in stretch.checkpoint():
                if not queue_names(records, names):
                    break
        if names:
            break
    return {number: shown(name) for number, name in names.items()}


def kept_ids(segments: list[Stretch]) -> WireIds:
    """How a journal's broker makes ids of numbers: the key is in every checkpoint, and beside every start of the broker."""
    ids = WireIds()
    for stretch in reversed(segments):
        with suppress(
            FileNotFoundError, JournalDamaged
        ):  # trimmed under our feet, or damaged: other segments have it, too
            for records in stretch.checkpoint():
                read_key(records, ids)
                break
            if not ids.key:
                for block in blocks_with(stretch, {START_KEY}):
                    read_start(block.records, ids)
        if ids.key:
            break
    return ids


def read_start(records: bytes, ids: WireIds) -> None:
    """Take the key out of a block with a start of the broker."""
    at = 0
    while at < len(records):
        size = read_i32_le(records, at)
        if records[at + 4] == KEYED:
            ids.set_key(records[at + 13 : at + size], read_i64_le(records, at + 5))
        at += size


def naming_blocks(stretch: Stretch, numbers: set[int]) -> Iterable[Block]:
    """The blocks of a segment that may name these; all of them where there are too many to look each one up."""
    keys = number_keys(numbers)
    return stretch.blocks() if len(keys) > limits.INDEX_KEYS_MAX else blocks_with(stretch, keys)
