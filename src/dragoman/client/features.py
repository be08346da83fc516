"""The features that a program may use, and which dialects have them.

A program runs unchanged over any dialect that has the features it uses. Where one is missing, the call raises before anything is sent, and
names the dialects that have it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dragoman.client.address import Address
from dragoman.dialects import crossing, features
from dragoman.errors import NotInDialect
from dragoman.limits import NAME_SIZE_MAX
from dragoman.model.enums import DIALECT_NAMES

DEFAULT_QUEUE: Final = "default"

# The feature as a text that follows "has no", and its number in `dialects/features.py`.
Feature = tuple[str, int]

KEPT: Final = ("word that a job is kept, which `delay` and `send` wait for", features.KEPT)
SCHEDULES: Final = ("schedules", features.SCHEDULE)
STATE: Final = ("question after a job's state", features.STATE)
CANCEL: Final = ("way to cancel a job that was left with the broker", features.STATE)
PUBLISH: Final = ("publishing", features.PUBLISH)
SUBSCRIBE: Final = ("subscribing", features.SUBSCRIBE)
EVERYTHING: Final = ("subscribing to everything", features.PREFIXES)
LONG_TOPICS: Final = (f"topics of more than {NAME_SIZE_MAX} bytes", features.PREFIXES)
HEADERS: Final = ("headers", features.HEADERS)


def require(dialect: str, feature: Feature) -> None:
    """Raise NotInDialect unless the dialect has the feature."""
    text, number = feature
    having = names_having(number)
    if dialect not in having:
        raise NotInDialect(dialect, text, having)


def names_having(number: int) -> tuple[str, ...]:
    return tuple(DIALECT_NAMES[dialect] for dialect in crossing.having(number))


def check_prefixes(address: Address, prefixes: Iterable[str]) -> None:
    """Raise NotInDialect where these cannot be subscribed to. An rq node consumes queues by exact name: without a name it gets no news."""
    require(address.profile.name, SUBSCRIBE)
    for prefix in prefixes:
        if not 0 < len(prefix.encode("utf-8", "surrogateescape")) <= NAME_SIZE_MAX:
            require(address.profile.name, EVERYTHING if not prefix else LONG_TOPICS)


def queue_at(address: Address, queue: str) -> str:
    """The queue's name at this address: a dialect with one queue has no other; jobs on the default queue use that one."""
    if not address.queue or queue in (address.queue, DEFAULT_QUEUE):
        return address.queue or queue
    raise NotInDialect(
        address.profile.name, f"queue but {address.queue!r}, so none named {queue!r}", names_having(features.QUEUES)
    )
