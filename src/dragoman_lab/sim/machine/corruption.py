"""Data corruption: a bit of a waiting message's record flips on disk, while the broker runs or while it is down.

The record is in a segment before the newest checkpoint: every start verifies what is after the checkpoint, or cuts it as a torn
tail where no sync had covered it, and `make damage` tests that.

What must follow: no worker ever gets bytes that were not sent; only that message is quarantined, or (where a power loss removed the newest
checkpoint) the start fails with the name of the file, and the operator restores the bytes; all other messages are processed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dragoman.core.core import Core
from dragoman.core.lifecycle import WAITING
from dragoman.errors import JournalDamaged
from dragoman.journal.format import segment_name, split_place
from dragoman.model.facts.layout import HEAD_SIZE
from dragoman.model.facts.records import flaw_of
from dragoman_lab.sim.checks.tokens import token_in
from dragoman_lab.sim.plan import DIRECTORY

if TYPE_CHECKING:
    from dragoman_lab.sim.machine.life import Life
    from dragoman_lab.sim.world import World


@dataclass(frozen=True, slots=True)
class Flip:
    path: str
    offset: int
    xor: int
    value: int  # of the byte since then


@dataclass
class Corruption:
    """Everything that was damaged in one world."""

    numbers: set[int] = field(default_factory=set)  # of the messages whose records were hit
    flips: list[Flip] = field(default_factory=list)

    def strike(self, world: World, life: Life) -> None:
        """Flip a bit in the record of one waiting message, as known to the broker that runs or ran last."""
        before_no = life.journal.checkpoint_no or 0
        found = [row for row in waiting_records(life.core) if split_place(row[1])[0] < before_no]
        if not found:
            return
        number, place = world.chance.choice(found)
        segment_no, offset = split_place(place)
        path = f"{DIRECTORY}/{segment_name(segment_no)}"
        if not world.disk.exists(path):
            return
        data = world.disk.content(path)[offset:]
        record = data[: int.from_bytes(data[:4], "little")]
        if len(record) <= HEAD_SIZE or flaw_of(record, number, False):
            return  # its record has moved, or was hit before
        at, xor = world.chance.randrange(len(record)), 1 << world.chance.randrange(8)
        flip = Flip(path, offset + at, xor, record[at] ^ xor)
        world.disk.flip(flip.path, flip.offset, flip.xor)
        world.say(f"bit rot in the record of message {number}: {flip}")
        self.flips.append(flip)
        self.numbers.add(number)
        request = world.ledger.requests.get(token_in(record))
        if request is not None:
            request.is_corrupted = True

    def restore(self, world: World, refusal: JournalDamaged) -> None:
        """After a start failed: check that it was for something damaged, and restore the bytes as an operator."""
        assert any(flip.path == refusal.file for flip in self.flips), f"refused without reason: {refusal}"
        for flip in self.flips:
            if world.disk.exists(flip.path) and world.disk.content(flip.path)[flip.offset] == flip.value:
                world.disk.flip(flip.path, flip.offset, flip.xor)
        self.flips.clear()

    def check(self, damaged: set[int]) -> None:
        """Check that nothing else is quarantined as damaged."""
        assert damaged <= self.numbers, f"sound messages are called damaged: {sorted(damaged - self.numbers)}"


def waiting_records(core: Core) -> list[tuple[int, int]]:
    """Number and record reference of each message whose record may have to be read again."""
    found = [(m.number, m.place) for m in core.state.messages.values() if m.state == WAITING and m.place]
    for queue in core.state.queues.values():
        for lane in queue.lanes:
            for line in lane.lines.values():
                tail = line.tail
                found += [(n, tail.places[at]) for at, n in enumerate(tail.numbers) if at >= tail.head and n > 0]
    return found
