"""One damage, one start, and the verdict.

What must hold of a damaged journal:

- No delivered body differs from what was accepted.
- A start that is refused names the file. It is refused only where the damage reaches what the newest checkpoint does not stand for; and
  what `salvage` makes of the journal starts, and lacks nothing that salvage did not report.
- Else every message that a sound journal would deliver is delivered, or quarantined; and quarantined only if damage touches its record.
- After a stop in order no fact is missing without a refusal. After a kill the end may be cut off, as far as nothing whole names it.
- Nothing raises anything but the errors an operator is meant to see.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from dragoman.errors import DragomanError, JournalDamaged, JournalMisplaced, JournalTooNew
from dragoman.journal.format import (
    BLOCK_FILLER,
    BLOCK_HEADER_SIZE,
    SEGMENT_HEADER_SIZE,
    block_seed,
    segment_no_of,
    unpack_segment_header,
)
from dragoman.journal.recovery.scan import Found, SegmentWalk, next_whole_block
from dragoman.journal.tools.salvage import Salvage, salvage
from dragoman.journal.tools.verify import verify
from dragoman.model.facts.fields import accepted_body
from dragoman.model.facts.layout import ACCEPTED, CARRIED, CHECKPOINT
from dragoman.model.facts.records import carried_at
from dragoman.testing.disk import FakeDisk
from dragoman_lab.sim.world import quiet_logs
from tests.damage.harm import Harm, harm
from tests.damage.specimens import Specimen
from tests.damage.stage import DIRECTORY, TOKEN, Stage, open_messages

AFTER_NS = 20_000_000_000  # every delayed message is due by then
SALVAGED = "/saved/journal"
REFUSALS = (JournalDamaged, JournalMisplaced, JournalTooNew)


@dataclass(frozen=True)
class Waiting:
    """An open message of a sound specimen: where its record lies, and the block around it."""

    token: bytes
    name: str
    record: tuple[int, int]
    block: tuple[int, int]
    lsn: int


@dataclass
class Sound:
    """What an undamaged specimen does."""

    specimen: Specimen
    now_ns: int
    bodies: set[bytes] = field(default_factory=set)
    delivered: Counter[bytes] = field(default_factory=Counter)
    quarantined: set[bytes] = field(default_factory=set)
    waiting: dict[int, Waiting] = field(default_factory=dict)
    next_lsn: int = 0
    checkpoint_no: int = 0  # damage in older segments never refuses a start


def look_at(specimen: Specimen) -> Sound:
    """Start and drain the undamaged journal."""
    blocks = [(name, found) for name in _segment_names(specimen) for found in _blocks(specimen, name)]
    sound = Sound(specimen, max(found.header.time_ns for _, found in blocks) + AFTER_NS)
    stage = Stage(specimen.files, sound.now_ns)
    sound.bodies, records = _messages(blocks)
    tokens: dict[int, bytes] = {}
    for number in open_messages(stage.core):
        sound.waiting[number] = records[number]
        tokens[number] = records[number].token
    sound.quarantined = {tokens[number] for number in stage.set_aside()}
    sound.next_lsn = blocks[-1][1].header.first_lsn + blocks[-1][1].header.facts
    sound.checkpoint_no = stage.journal.checkpoint_no or 0
    bodies = stage.drain()
    assert sound.bodies >= set(bodies)
    sound.delivered = Counter({_token(body): count for body, count in bodies.items()})
    return sound


def _segment_names(specimen: Specimen) -> list[str]:
    return [name for name in sorted(specimen.files) if segment_no_of(name) is not None]


def _blocks(specimen: Specimen, name: str) -> Iterator[Found]:
    header = unpack_segment_header(specimen.files[name])
    assert header is not None, f"{name} of {specimen.name} has no header"
    disk = FakeDisk()
    disk.put(name, specimen.files[name])
    walk = SegmentWalk(disk, disk.open(name, write=False), block_seed(header.broker_id, header.segment_no))
    return iter(walk)


def _messages(blocks: list[tuple[str, Found]]) -> tuple[set[bytes], dict[int, Waiting]]:
    """The body of every message that was ever accepted (one whose end was cut off runs again), and where its newest record lies."""
    bodies, waiting, lsns = set(), {}, {}
    for name, found in blocks:
        at, lsn = 0 if not found.header.flags & BLOCK_FILLER else len(found.records), found.header.first_lsn
        while at < len(found.records):
            size, kind = int.from_bytes(found.records[at : at + 4], "little"), found.records[at + 4]
            if kind in (ACCEPTED, CARRIED):
                record = found.records[at : at + size]
                accepted = record[carried_at(record) :]
                number = int.from_bytes(accepted[8:16], "little")
                bodies.add(accepted_body(accepted, 0))
                lsns.setdefault(number, lsn)
                start = found.offset + BLOCK_HEADER_SIZE + at
                where = (start, start + size), (found.offset, found.end)
                token = TOKEN.search(accepted)
                waiting[number] = Waiting(token.group() if token else b"", name, *where, lsns[number])
            lsn += kind < CHECKPOINT
            at += size
    return bodies, waiting


def _token(data: bytes) -> bytes:
    found = TOKEN.search(data)
    assert found is not None, f"a body without a token: {data[:80]!r}"
    return found.group()


@dataclass
class Verdict:
    """What came of one trial; `wrong` says why it is not as it must be."""

    seed: int
    specimen: str
    harm: str
    outcome: str
    wrong: list[str]

    def __str__(self) -> str:
        lines = [f"seed {self.seed}: {self.specimen}, {self.harm}: {self.outcome}", *self.wrong]
        return "\n    ".join(lines)


def try_one(sounds: list[Sound], foreign: bytes, seed: int) -> Verdict:
    chance = Random(seed)
    sound = chance.choice(sounds)
    harmed = harm(sound.specimen.files, foreign, chance)
    judge = _Judge(sound, harmed)
    try:
        with quiet_logs():
            outcome = judge.run()
    except Exception:
        outcome = "a traceback"
        judge.wrong.append(traceback.format_exc())
    return Verdict(seed, sound.specimen.name, harmed.what, outcome, judge.wrong)


class _Judge:
    def __init__(self, sound: Sound, harmed: Harm) -> None:
        self._sound, self._harm = sound, harmed
        self.wrong: list[str] = []

    def run(self) -> str:
        """Start on the damaged files; how that went."""
        self._verify()
        try:
            stage = Stage(self._harm.files, self._sound.now_ns)
        except REFUSALS as refusal:
            self._refused(refusal)
            return "refused"
        return self._started(stage, None)

    def _verify(self) -> None:
        """The tool must not meet anything that it cannot say in words."""
        try:
            verify(DIRECTORY, disk=_disk_with(self._harm.files))
        except DragomanError as refusal:
            self._names_a_file(refusal)

    def _names_a_file(self, refusal: DragomanError) -> None:
        if DIRECTORY not in str(refusal):
            self.wrong.append(f"no file is named: {refusal}")

    def _refused(self, refusal: DragomanError) -> None:
        self._names_a_file(refusal)
        if not self._harm.touched and self._harm.is_local:
            self.wrong.append(f"refused although nothing changed: {refusal}")
        if self._harm.is_local and all((segment_no_of(n) or 0) < self._sound.checkpoint_no for n in self._harm.touched):
            self.wrong.append(f"refused although the checkpoint stands for what is damaged: {refusal}")
        self._salvage()

    def _salvage(self) -> None:
        disk = _disk_with(self._harm.files)
        try:
            saved = salvage(DIRECTORY, SALVAGED, disk=disk)
        except DragomanError as refusal:
            self._names_a_file(refusal)
            return
        lead = SALVAGED + "/"
        files = {name: disk.content(lead + name) for name in disk.list_names(SALVAGED)}
        if not files:
            return
        try:
            stage = Stage(files, self._sound.now_ns)
        except REFUSALS as refusal:
            self.wrong.append(f"what salvage made does not start: {refusal}")
            return
        self._started(stage, saved)

    def _started(self, stage: Stage, saved: Salvage | None) -> str:
        sound = self._sound
        bodies = stage.drain()
        forged = set(bodies) - sound.bodies
        self.wrong += [f"a body that was never sent is delivered: {body[:100]!r}" for body in sorted(forged)]
        delivered = Counter({_token(body): count for body, count in bodies.items() if TOKEN.search(body)})
        numbers = stage.set_aside()
        aside = {sound.waiting[number].token for number in numbers if number in sound.waiting}
        missing = set(sound.delivered) - set(delivered) - aside
        for waiting in sound.waiting.values():
            if waiting.token in missing and not self._may_miss(waiting, saved, stage):
                self.wrong.append(
                    f"{waiting.token.decode()} (fact {waiting.lsn}, {waiting.name}) is lost without a word"
                )
            if waiting.token in aside - sound.quarantined and not self._is_damaged(waiting):
                self.wrong.append(f"{waiting.token.decode()} is quarantined although its record is sound")
        lost_aside = sound.quarantined - aside - set(delivered)
        if saved is None and lost_aside and sound.specimen.is_clean:
            self.wrong.append(f"{len(lost_aside)} quarantined messages are gone")
        if sound.specimen.is_clean and saved is None:
            again = [t for t, count in delivered.items() if count > sound.delivered.get(t, 0)]
            self.wrong += [f"{t.decode()} is delivered again" for t in again]
        stage.close()
        return "quarantined" if aside - sound.quarantined else "salvaged" if saved else "as sound"

    def _is_damaged(self, waiting: Waiting) -> bool:
        return self._harm.touches(waiting.name, *waiting.record) or self._harm.touches(waiting.name, *waiting.block)

    def _may_miss(self, waiting: Waiting, saved: Salvage | None, stage: Stage) -> bool:
        if saved is not None:
            return any(
                loss.first_lsn <= waiting.lsn and (loss.last_lsn is None or waiting.lsn <= loss.last_lsn)
                for loss in saved.losses
            )
        # A killed broker's last blocks may go where nothing whole names them as synced.
        return not self._sound.specimen.is_clean and waiting.lsn > synced_lsn_named_in(self._harm.files)


def synced_lsn_named_in(files: dict[str, bytes]) -> int:
    """The highest lsn that any whole segment header or block says was synced."""
    highest, disk = 0, _disk_with(files)
    for name in files:
        header = unpack_segment_header(files[name]) if segment_no_of(name) is not None else None
        if header is None:
            continue
        highest = max(highest, header.synced_lsn)
        fd, offset = disk.open(f"{DIRECTORY}/{name}", write=False), SEGMENT_HEADER_SIZE
        seed = block_seed(header.broker_id, header.segment_no)
        while (found := next_whole_block(disk, fd, seed, offset)) is not None:
            highest, offset = max(highest, found.header.synced_lsn), found.end
    return highest


def _disk_with(files: dict[str, bytes]) -> FakeDisk:
    disk = FakeDisk()
    disk.make_directory(DIRECTORY)
    for name, content in files.items():
        disk.put(f"{DIRECTORY}/{name}", content)
    return disk
