"""What a call asks of the broker, and how eMQP's headers say it."""

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
    """Of a job, or of one call (`job.options(…)`)."""

    queue: str = DEFAULT_QUEUE
    retries: int | None = None  # further tries after a failure, a lost worker or a timeout; None: the broker's rule
    timeout_s: float | None = None  # a hard bound on one attempt
    priority: int = 0  # 0 to 9, 9 first
    delay_s: float = 0.0  # not before so many seconds from now
    expires_s: float | None = None  # not worth running after so many seconds
    dedupe: str | Callable[..., str] | None = None  # the same key within the broker's window is accepted once
    guarantee: bool = False  # not settled before it succeeds
    once: bool = False  # an `ask` carries its id as dedupe key, too: sent again, it is still accepted once
    repeatable: bool = False  # an `ask` whose answer was lost with a connection is asked again: it may run twice
    wait_s: float | None = None  # how long the caller waits; None: the App's own number

    def __post_init__(self) -> None:
        if not 0 < len(self.queue.encode()) <= NAME_SIZE_MAX:
            raise ValueError(f"queue wants a name of 1 to {NAME_SIZE_MAX} bytes, not {self.queue!r}")
        if self.retries is not None and self.retries < 0:
            raise ValueError(f"retries wants 0 or more, not {self.retries}")
        if not 0 <= self.priority <= PRIORITY_MAX:
            raise ValueError(f"priority wants 0 to {PRIORITY_MAX}, not {self.priority}")
        for name in ("timeout_s", "delay_s", "expires_s", "wait_s"):
            seconds = getattr(self, name)
            if seconds is not None and not (math.isfinite(seconds) and seconds >= 0):
                raise ValueError(f"{name} wants seconds, not {seconds}")

    def headers(self) -> list[str]:
        """The headers that every call with these options shares."""
        said: list[str] = []
        if self.guarantee:
            said.append("guarantee")
        if self.retries is not None:
            said.append(f"retry-count:{self.retries}")
        if self.timeout_s:
            said.append(f"timeout:{self.timeout_s:.9g}")
        if self.priority:
            said.append(f"priority:{self.priority}")
        if self.delay_s:
            said.append(f"delay:{self.delay_s:.9g}")
        if self.expires_s is not None:
            said.append(f"expires:{self.expires_s:.9g}")
        return said

    def dedupe_key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """The call's own key as its header says it; empty: it has none."""
        if self.dedupe is None:
            return b""
        key = self.dedupe if isinstance(self.dedupe, str) else self.dedupe(*args, **kwargs)
        return dedupe_text(key).encode()


def dedupe_text(key: str) -> str:
    """A key of any text, safe inside a comma-separated header."""
    data = key.encode("utf-8", "surrogateescape")
    text = quote(data, safe=" /:;=@+()[]{}!$&'*?#|~").strip()
    if not text or len(text) > DEDUPE_SIZE_MAX:
        text = "sha256:" + hashlib.sha256(data).hexdigest()
    return text
