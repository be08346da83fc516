"""Waiting for a condition with a deadline: the only way the tests wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

# Generous: what is waited for comes within a second, but a loaded machine may take many times as long.
DEADLINE_S = 60.0
LOOK_EVERY_S = 0.02

T = TypeVar("T")


def wait_for(what: str, look: Callable[[], T], deadline_s: float = DEADLINE_S) -> T:
    """Call `look` until it returns something true and return that; fail by name when the deadline passes."""
    ends = time.monotonic() + deadline_s
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > ends:
            raise AssertionError(f"waited {deadline_s:g} s in vain for {what}; last seen: {seen!r}")
        time.sleep(LOOK_EVERY_S)
