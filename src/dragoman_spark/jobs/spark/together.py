"""Runs several Spark jobs at a time: a small one mostly waits, and the next can be planned meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

# More would only compete: every job already uses all cores when it has work for them.
JOBS_MAX: Final = 4


def together(tasks: Sequence[Callable[[], None]]) -> None:
    """Run all tasks; raise the first failure when none is running any more."""
    with ThreadPoolExecutor(JOBS_MAX, thread_name_prefix="table") as pool:
        running = [pool.submit(task) for task in tasks]
    for one in running:
        one.result()
