"""Why a process beside the broker does not do its work, in words: for the log once, for `dragoman status` as long as it lasts."""

from __future__ import annotations

from structlog.typing import FilteringBoundLogger


class Trouble:
    """Of one child. `sentence`: what cannot be done, as the log says it."""

    def __init__(self, log: FilteringBoundLogger, sentence: str) -> None:
        self._log, self._sentence = log, sentence
        self.words = ""

    def hear(self, rest: str) -> None:
        """What the child says of it: a code and words, again and again while it is so."""
        code, _, words = rest.partition(" ")
        if self.words != words:
            self._log.error(self._sentence, code=code, trouble=words)
        self.words = words

    def fail(self, words: str) -> None:
        """There is no child now; what it said of itself says more."""
        self.words = self.words or words

    def end(self) -> None:
        self.words = ""
