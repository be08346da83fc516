"""The options of a job and its calls, and how they are converted to those of a client endpoint."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from dragoman.client import features
from dragoman.client.address import Address
from dragoman.client.features import DEFAULT_QUEUE
from dragoman.dialects import features as numbers
from dragoman.dialects.endpoint import CallOptions
from dragoman.limits import MESSAGE_SIZE_MAX, NAME_SIZE_MAX, PRIORITY_MAX
from dragoman.model.units import SECOND_NS

DEDUPE_SIZE_MAX: Final = 200  # a longer key is replaced by its hash
# The feature that a dialect needs for an option, and the value besides None that needs none.
NEEDED_FEATURES: Final[dict[str, tuple[int, object]]] = {
    "retries": (numbers.RETRIES, None),
    "timeout_s": (numbers.TIMEOUT, 0),
    "priority": (numbers.PRIORITY, 0),
    "delay_s": (numbers.DELAY, 0),
    "expires_s": (numbers.EXPIRY, None),
    "dedupe": (numbers.DEDUPE, None),
    "guarantee": (numbers.GUARANTEE, False),
    "once": (numbers.ONCE, False),
}


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


def check_options(address: Address, options: Options) -> None:
    """Raise NotInDialect for the first option that the dialect cannot express."""
    for name, (number, no_value) in NEEDED_FEATURES.items():
        if getattr(options, name) not in (None, no_value):
            features.require(address.profile.name, (f"`{name}`", number))
    features.queue_at(address, options.queue)


def call_options(
    address: Address,
    queue: str,
    options: Options,
    wants_reply: bool,
    wait_s: float,
    headers: str = "",
    dedupe: str | None = None,
) -> CallOptions:
    """Raises NotInDialect for what the dialect cannot express. `dedupe` is the call's own key; without one, a call that needs only the
    broker's acknowledgement, or has `once`, uses its id as the key."""
    profile = address.profile
    if not wants_reply:
        features.require(profile.name, features.KEPT)
    if headers:
        features.require(profile.name, features.HEADERS)
    check_options(address, options)
    made = CallOptions(features.queue_at(address, queue).encode("utf-8", "surrogateescape"))
    made.wants_reply = wants_reply
    if options.retries is not None:
        made.retries = options.retries
    if options.timeout_s:
        made.timeout_ns = _ns(options.timeout_s)
    if options.expires_s is not None:
        made.expires_ns = _ns(options.expires_s)
    elif profile.expiry_s_max:
        made.expires_ns = _ns(min(wait_s, profile.expiry_s_max) if math.isfinite(wait_s) else profile.expiry_s_max)
    made.delay_ns = _ns(options.delay_s)
    made.priority = options.priority
    made.is_guaranteed = options.guarantee
    if dedupe is not None:
        made.dedupe = dedupe_text(dedupe).encode()
    else:
        made.dedupes_by_id = options.once or not wants_reply
    made.headers = headers.encode("utf-8", "surrogateescape")
    around_size = profile.envelope_size + len(made.queue) + len(made.headers) + len(made.dedupe)
    made.body_size_max = MESSAGE_SIZE_MAX - around_size
    return made


def _ns(seconds: float) -> int:
    return round(seconds * SECOND_NS)
