"""What a disk, a file system or a person can do to the files of a journal: one seeded damage at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from dragoman.journal.format import SEGMENT_HEADER_SIZE, SEGMENT_SUFFIX, segment_name, segment_no_of

PAGE_SIZE: Final = 4096
Files = dict[str, bytes]


@dataclass
class Harm:
    """Damaged files, and which bytes of the sound ones are no longer what they were: name → (start, end) ranges. `is_local`: only
    bytes changed, behind the segment headers; no file is missing, longer, shorter or elsewhere."""

    files: Files
    what: str
    touched: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    is_local: bool = False

    def touch(self, name: str, start: int, end: int) -> None:
        self.touched.setdefault(name, []).append((start, end))

    def touches(self, name: str, start: int, end: int) -> bool:
        return any(start < stop and end > begin for begin, stop in self.touched.get(name, ()))


def harm(files: Files, foreign: bytes, chance: Random) -> Harm:
    """One damage, chosen by `chance`."""
    kind = chance.choices([kind for kind, _ in KINDS], [weight for _, weight in KINDS])[0]
    if kind is _foreign:
        return _foreign(files, foreign, chance)
    return kind(files, chance)


def _segments(files: Files) -> list[str]:
    return sorted(name for name in files if name.endswith(SEGMENT_SUFFIX))


def _any_file(files: Files, chance: Random) -> str:
    """Mostly a segment: they are where the facts are."""
    others = sorted(set(files) - set(_segments(files)))
    names = others if others and chance.random() < 0.15 else _segments(files)
    return chance.choice(names)


def _replaced(files: Files, name: str, start: int, new: bytes, what: str) -> Harm:
    content = files[name]
    changed = content[:start] + new + content[start + len(new) :]
    harmed = Harm({**files, name: changed}, f"{what} in {name}, bytes {start} to {start + len(new)}")
    differing = [at for at in range(start, start + len(new)) if changed[at] != content[at]]
    if differing:
        harmed.touch(name, differing[0], differing[-1] + 1)
    harmed.is_local = name.endswith(SEGMENT_SUFFIX) and start >= SEGMENT_HEADER_SIZE
    return harmed


def _bit(files: Files, chance: Random) -> Harm:
    name = _any_file(files, chance)
    at = chance.randrange(len(files[name]))
    return _replaced(files, name, at, bytes([files[name][at] ^ 1 << chance.randrange(8)]), "a bit flipped")


def _byte(files: Files, chance: Random) -> Harm:
    name = _any_file(files, chance)
    at = chance.randrange(len(files[name]))
    return _replaced(files, name, at, bytes([chance.randrange(256)]), "a byte overwritten")


def _run_of_bytes(files: Files, chance: Random) -> Harm:
    name = _any_file(files, chance)
    at = chance.randrange(len(files[name]))
    size = min(chance.choice((2, 8, 64, 512)), len(files[name]) - at)
    return _replaced(files, name, at, chance.randbytes(size), "random bytes")


def _zeroed_page(files: Files, chance: Random) -> Harm:
    name = _any_file(files, chance)
    at = chance.randrange(0, len(files[name]), PAGE_SIZE)
    return _replaced(files, name, at, bytes(min(PAGE_SIZE, len(files[name]) - at)), "a page of zeros")


def _repeated_page(files: Files, chance: Random) -> Harm:
    """A page was written to the wrong block of the disk: it stands twice."""
    source, name = chance.choice(_segments(files)), chance.choice(_segments(files))
    if chance.random() < 0.3:
        name = source  # there its blocks are whole
    start = chance.randrange(0, len(files[source]), PAGE_SIZE)
    at = chance.randrange(0, len(files[name]), PAGE_SIZE)
    page = files[source][start : start + PAGE_SIZE][: len(files[name]) - at]
    return _replaced(files, name, at, page, f"a page of {source} at {start} again")


def _truncated(files: Files, chance: Random) -> Harm:
    name = _any_file(files, chance)
    if chance.random() < 0.3:
        name = _segments(files)[-1]
    size = len(files[name])
    to = max(0, size - chance.randint(1, 300)) if chance.random() < 0.4 else chance.randrange(size)
    harmed = Harm({**files, name: files[name][:to]}, f"{name} cut from {size} to {to} bytes")
    harmed.touch(name, to, size)
    return harmed


def _removed(files: Files, chance: Random) -> Harm:
    segments = _segments(files)
    name = chance.choice((segments[0], segments[-1], chance.choice(segments), _any_file(files, chance)))
    harmed = Harm({n: data for n, data in files.items() if n != name}, f"{name} removed")
    harmed.touch(name, 0, len(files[name]))
    return harmed


def _swapped(files: Files, chance: Random) -> Harm:
    one, other = chance.choice(_segments(files)), chance.choice(_segments(files))
    harmed = Harm({**files, one: files[other], other: files[one]}, f"{one} and {other} swapped")
    if one != other:
        harmed.touch(one, 0, len(files[one]))
        harmed.touch(other, 0, len(files[other]))
    return harmed


def _repeated(files: Files, chance: Random) -> Harm:
    """A copy of one segment under another number, new or taken."""
    segments = _segments(files)
    name = chance.choice(segments)
    last_no = segment_no_of(segments[-1]) or 0
    target = chance.choice((segment_name(last_no + 1), segment_name(last_no + 7), chance.choice(segments)))
    harmed = Harm({**files, target: files[name]}, f"{name} copied to {target}")
    if target in files and target != name:
        harmed.touch(target, 0, len(files[target]))
    return harmed


def _renamed(files: Files, chance: Random) -> Harm:
    segments = _segments(files)
    name = chance.choice(segments)
    target = segment_name((segment_no_of(segments[-1]) or 0) + chance.choice((1, 2, 1000)))
    kept = {n: data for n, data in files.items() if n != name}
    harmed = Harm({**kept, target: files[name]}, f"{name} renamed to {target}")
    harmed.touch(name, 0, len(files[name]))
    return harmed


def _foreign(files: Files, foreign: bytes, chance: Random) -> Harm:
    segments = _segments(files)
    target = chance.choice((segment_name((segment_no_of(segments[-1]) or 0) + 1), chance.choice(segments)))
    harmed = Harm({**files, target: foreign}, f"another broker's segment as {target}")
    if target in files:
        harmed.touch(target, 0, len(files[target]))
    return harmed


Kind = Callable[..., Harm]
KINDS: Final[list[tuple[Kind, int]]] = [
    (_bit, 30),
    (_byte, 20),
    (_run_of_bytes, 10),
    (_zeroed_page, 8),
    (_repeated_page, 8),
    (_truncated, 10),
    (_removed, 5),
    (_swapped, 3),
    (_repeated, 3),
    (_renamed, 2),
    (_foreign, 1),
]
