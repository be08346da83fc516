"""Finds the names of queues and workers in the journal by their numbers; the fact with a name may be much older than its use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from dragoman.core.storage.checkpoint import queue_names, read_key
from dragoman.errors import JournalDamaged
from dragoman.journal.format import Block
from dragoman.journal.segment_views import SegmentView
from dragoman.model.enums import shown
from dragoman.model.facts.fields import RecordWalk, keyed_key, record_number
from dragoman.model.facts.layout import KEYED
from dragoman.model.wire_ids import WireIds
from dragoman.runtime.search.search import START_KEY, blocks_with, name_facts, number_keys


class Naming:
    """Names found so far. `queues` and `workers`: names known by a running broker, which may be more than the journal still has."""

    def __init__(
        self, queues: Mapping[int, str] | None = None, workers: Mapping[int, Iterable[str]] | None = None
    ) -> None:
        self._queues: dict[int, str] = dict(queues or {})
        self._workers: dict[int, list[str]] = {number: list(names) for number, names in (workers or {}).items()}
        self._missed: set[int] = set()  # searched for, and found in no fact
        self._has_read_checkpoint = False  # whether the newest checkpoint was read

    def learn(self, segments: list[SegmentView], queue_nos: set[int], worker_nos: set[int]) -> None:
        """Search for numbers that have no name yet, in the newest segments first."""
        missing = (queue_nos - self._queues.keys()) | (worker_nos - self._workers.keys())
        missing -= self._missed
        for view in reversed(segments):
            if not missing:
                return
            with suppress(FileNotFoundError):  # deleted during the search: the other segments are still read
                for block in blocks_with(view, number_keys(missing)):
                    self._add(block)
            missing -= self._queues.keys() | self._workers.keys()
        if not missing.isdisjoint(queue_nos):
            self.learn_from_checkpoint(segments)
        self._missed |= missing

    def learn_from_checkpoint(self, segments: list[SegmentView]) -> None:
        """Read the names of queues that are no longer in any fact from the newest checkpoint, once."""
        if not self._has_read_checkpoint:
            self._has_read_checkpoint = True
            self._queues = checkpoint_queue_names(segments) | self._queues

    def queue(self, number: int) -> str:
        return self._queues.get(number, "")

    def worker(self, number: int) -> str:
        """Its identity, or its address."""
        return next(filter(None, self._workers.get(number, ())), "")

    def queue_nos(self, name: str) -> set[int]:
        return {number for number, known in self._queues.items() if known == name}

    def worker_nos(self, names: set[str]) -> set[int]:
        return {number for number, known in self._workers.items() if not names.isdisjoint(known)}

    def _add(self, block: Block) -> None:
        for fact in name_facts(block):
            if fact["fact"] == "queue_named":
                self._queues.setdefault(fact["queue_no"], fact["queue"])
            else:
                names = [fact["identity"], fact["remote"]]
                self._workers.setdefault(fact["worker_no"], [name for name in names if name])


def checkpoint_queue_names(segments: list[SegmentView]) -> dict[int, str]:
    """The names in the newest checkpoint: the facts with them may be deleted. A queue's number and name never change."""
    names: dict[int, bytes] = {}
    for view in reversed(segments):
        with suppress(FileNotFoundError):  # deleted during the search
            for records in view.checkpoint():
                if not queue_names(records, names):
                    break
        if names:
            break
    return {number: shown(name) for number, name in names.items()}


def stored_ids(segments: list[SegmentView]) -> WireIds:
    """The key with which the broker derives ids from numbers: it is in every checkpoint, and next to every start of the broker."""
    ids = WireIds()
    for view in reversed(segments):
        # Deleted during the search, or damaged: other segments have it, too.
        with suppress(FileNotFoundError, JournalDamaged):
            for records in view.checkpoint():
                read_key(records, ids)
                break
            if not ids.key:
                for block in blocks_with(view, {START_KEY}):
                    walk = RecordWalk(block.records)
                    while walk.step():
                        if walk.kind == KEYED:
                            ids.set_key(keyed_key(block.records, walk.at), record_number(block.records, walk.at))
        if ids.key:
            break
    return ids
