"""The options of a job and its calls."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from dragoman.limits import NAME_SIZE_MAX, PRIORITY_MAX

DEFAULT_QUEUE: Final = "default"
DEDUPE_SIZE_MAX: Final = 200  # a longer key is replaced by its hash


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a job, or of some calls (`job.options(…)`)."""

    queue: str = DEFAULT_QUEUE
    retries: int | None = None  # further attempts after a failure, lost worker or timeout; None: the broker's default
    timeout_s: float | None = None  # a hard limit on one attempt
    priority: int = 0  # 0 to 9, 9 first
    delay_s: float = 0.0  # run not before this many seconds from now
    expires_s: float | None = None  # do not run after this many seconds
    dedupe: str | Callable[..., str] | None = None  # the broker accepts the same key once within its dedupe window
    guarantee: bool = False  # a failure or a timeout does not settle it
    once: bool = False  # an `ask` carries its id as dedupe key, too: sent again, it is still accepted once
    repeatable: bool = False  # an `ask` whose answer was lost with a connection is sent again: it may run twice
    wait_s: float | None = None  # how long the caller waits; None: the App's value

    def __post_init__(self) -> None:
        if not 0 < len(self.queue.encode("utf-8", "surrogateescape")) <= NAME_SIZE_MAX:
            raise ValueError(f"queue wants a name of 1 to {NAME_SIZE_MAX} bytes, not {self.queue!r}")
        if self.retries is not None and self.retries < 0:
            raise ValueError(f"retries wants 0 or more, not {self.retries}")
        if not 0 <= self.priority <= PRIORITY_MAX:
            raise ValueError(f"priority wants 0 to {PRIORITY_MAX}, not {self.priority}")
        for name in ("timeout_s", "delay_s", "expires_s", "wait_s"):
            seconds = getattr(self, name)
            if seconds is not None and not (math.isfinite(seconds) and seconds >= 0):
                raise ValueError(f"{name} wants seconds, not {seconds}")

    def dedupe_key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """The dedupe key of a call with these arguments; None: it has none of its own."""
        if self.dedupe is None or isinstance(self.dedupe, str):
            return self.dedupe
        return self.dedupe(*args, **kwargs)


def dedupe_text(key: str) -> str:
    """Encode a key of any text for a comma-separated header; a key that is empty or too long becomes its hash."""
    data = key.encode("utf-8", "surrogateescape")
    text = quote(data, safe=" /:;=@+()[]{}!$&'*?#|~").strip()
    if not text or len(text) > DEDUPE_SIZE_MAX:
        text = "sha256:" + hashlib.sha256(data).hexdigest()
    return text
