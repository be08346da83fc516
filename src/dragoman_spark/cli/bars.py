"""Progress bars on a terminal's stderr: one per table, batch or stage. Elsewhere nothing is shown."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from dragoman_spark.jobs.options import SILENT, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Screen
    from rich.progress import TaskID

# Bars kept on the screen: a stream has one batch after the other, and only the latest matter.
BARS_MAX: Final = 12


class Bars:
    """One bar per name, in the order they were first named; the oldest finished ones are removed for new ones."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._tasks: dict[str, TaskID] = {}
        self._finished: set[str] = set()

    def step(self, name: str, done: int, of: int) -> None:
        # rich's own lock makes this safe from any thread; a bar that two threads create at once would only be shown twice.
        if name not in self._tasks:
            self._make_room()
            self._tasks[name] = self._screen.add_task(name, total=of or None)
        self._screen.update(self._tasks[name], completed=done, total=of or None)
        if 0 < of <= done:
            self._finished.add(name)
        else:
            self._finished.discard(name)

    def _make_room(self) -> None:
        for name in [name for name in self._tasks if name in self._finished]:
            if len(self._tasks) < BARS_MAX:
                return
            self._screen.remove_task(self._tasks.pop(name))
            self._finished.discard(name)


@contextmanager
def bars(is_quiet: bool) -> Iterator[Progress]:
    """Show bars during the block; the screen is clean afterwards."""
    if is_quiet or not sys.stderr.isatty():
        yield SILENT
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Screen

    columns: list[Any] = [
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    ]
    with Screen(*columns, console=Console(stderr=True), transient=True) as screen:
        yield Bars(screen)
