"""`stales ms`: the lifetime of a request, as its client sends it and as a worker receives it."""

from __future__ import annotations

from typing import Final, final

from dragoman.model.units import SECOND_NS

MS_NS: Final = SECOND_NS // 1000
# The longest time of a JavaScript timer, which the original's peers use.
STALES_MS_MAX: Final = 2**31 - 1
STALES_NS_MAX: Final = STALES_MS_MAX * MS_NS
# Distinct texts that are cached: a client's calls mostly share one.
MEANINGS_MAX: Final = 256
TEXT_SIZE_MAX: Final = 20


@final
class StalesMeanings:
    """Parses and caches `stales ms`: text → nanoseconds."""

    def __init__(self) -> None:
        self.known: dict[bytes, int] = {}
        self.last_text: bytes = b""  # the last text is mostly the next one, too
        self.last_ns: int = 0
        self.default_ns: int = 0
        self.default_text: bytes = b""

    def set_default(self, stales_ns: int) -> None:
        self.default_ns = stales_ns
        self.default_text = in_ms(stales_ns)

    def of(self, text: bytes) -> int:
        """The nanoseconds of a text; 0 if it is not a number of milliseconds above 0: the default applies."""
        if len(text) > TEXT_SIZE_MAX:
            return 0
        if text != self.last_text:
            self.last_text = text
            self.last_ns = self.look_up(text)
        return self.last_ns

    def look_up(self, text: bytes) -> int:
        found = self.known.get(text, -1)
        if found >= 0:
            return found
        if not text.isdigit():
            return 0
        stales_ns = min(int(text), STALES_MS_MAX) * MS_NS
        if len(self.known) >= MEANINGS_MAX:
            self.known = {}
        self.known[text] = stales_ns
        return stales_ns


def in_ms(span_ns: int) -> bytes:
    """A duration for the wire: whole milliseconds, rounded up, at least one."""
    return b"%d" % min(max((span_ns + MS_NS - 1) // MS_NS, 1), STALES_MS_MAX)
