"""The demo's output: the table of crossings, live on a terminal, and the totals at the end."""

from __future__ import annotations

from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dragoman.cli.demo.cast import NAMES, Tally
from dragoman.cli.show import console
from dragoman.dialects import crossing, features
from dragoman.model.words import DIALECT_NAMES

REFRESHES_A_SECOND: Final = 8


class Screen:
    """A live table on a terminal; in a pipe only the sentences and the final table."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.console = console()
        self.state = Text("")
        self._live = Live(
            get_renderable=lambda: Group(self.crossings(), self.state),
            console=self.console,
            refresh_per_second=REFRESHES_A_SECOND,
            transient=True,
        )

    def __enter__(self) -> Screen:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.end_live()

    def end_live(self) -> None:
        if self._live.is_started:
            self._live.stop()

    def print(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style))

    def crossings(self) -> Table:
        table = Table(box=SIMPLE_HEAD, show_edge=False)
        table.add_column("client ↓ worker →")
        for name in NAMES:
            table.add_column(name, justify="right", min_width=8)
        for client in NAMES:
            counts = [self.tally.cells[client, worker] for worker in NAMES]
            table.add_row(client, *(Text(str(count), "green" if count else "red") for count in counts))
        return table

    def accounts(self) -> Table:
        """What each dialect promises, and the counts."""
        table = Table(box=SIMPLE_HEAD, show_edge=False)
        for name in ("client", "asked", "answered", "kept", "kept and run", "what it is promised"):
            table.add_column(name, justify="left" if name in ("client", "what it is promised") else "right")
        for name in NAMES:
            stored = self.tally.stored.get(name)
            table.add_row(
                name,
                str(self.tally.calls[name]),
                str(self.tally.answered[name]),
                "–" if stored is None else str(len(stored)),
                "–" if stored is None else str(len(stored) - self.tally.unrun(name)),
                promise_of(DIALECT_NAMES.index(name)),
            )
        return table

    def broker_line(self, counters: dict[str, Any]) -> str:
        still_open = counters["waiting"] + counters["delayed"] + counters["leased"]
        return (
            f"The broker's books: {counters['accepted']} accepted, {counters['settled']} settled, {still_open} open; "
            f"{self.tally.ran_twice} run a second time, because the kill hid whether they were done."
        )


def promise_of(dialect: int) -> str:
    if crossing.client_has(dialect, features.KEPT):
        how = crossing.CLIENTS.text(dialect, features.KEPT).replace("`", "")
        return f"kept once it says so ({how}); every call answered"
    if crossing.client_has(dialect, features.ONCE):
        how = crossing.CLIENTS.text(dialect, features.ONCE).replace("`", "")
        return f"every call answered; sent again ({how}) it runs once"
    return "every call answered; sent again when the connection is lost"
