"""The `dragoman top` command: one live screen on a terminal, elsewhere one frame after the other."""

from __future__ import annotations

import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import click
from click import FloatRange, option

from dragoman.cli.admin_client import AdminClient
from dragoman.cli.options import common_options
from dragoman.cli.show import WIDTH_WITHOUT_TERMINAL, print_json, print_json_line
from dragoman.cli.top.report import Window, look, report
from dragoman.errors import AdminRefused, AdminUnreachable
from dragoman.printable import printable


@click.command()
@option("--interval-s", type=FloatRange(0.1, 3600), default=1.0, show_default=True, help="Look so often.")
@option("--once", is_flag=True, help="Print one frame, over one interval, and end.")
@common_options
def top(interval_s: float, once: bool, data: Path, as_json: bool) -> None:
    """Watch the broker: rates, times, queues by depth, workers, and what is stuck. Ends with Ctrl-C.

    Rates and times are those of the last ten seconds (with --once, of one interval). When the broker goes, it is waited for. With
    --json each frame is one JSON object on a line of its own; with --once, one document.
    """
    with closing(Watch(data)) as watch, suppress(KeyboardInterrupt):
        if once:
            watch.look()
            time.sleep(interval_s)
            watch.look()
            show_once(report(watch.window), as_json)
        elif as_json or not sys.stdout.isatty():
            print_on(watch, interval_s, as_json)
        else:
            draw_on(watch, interval_s)


class Watch:
    """Samples the broker of one data directory, across its restarts."""

    def __init__(self, data: Path) -> None:
        self.window = Window()
        self._data = data
        self._client: AdminClient | None = None

    def look(self) -> None:
        """Take a sample; raises `AdminUnreachable` if no broker responds, and the next call tries again."""
        try:
            if self._client is None:
                self._client = AdminClient(self._data)
            self.window.add(look(self._client))
        except (AdminUnreachable, AdminRefused):
            self.window.clear()
            self.close()
            raise

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


def show_once(frame: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(frame)
        return
    from rich.console import Console

    from dragoman.cli.top.drawing import draw

    width = None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL
    Console(width=width, highlight=False).print(draw(frame))


def print_on(watch: Watch, interval_s: float, as_json: bool) -> None:
    """For a pipe: print a frame per interval, and a line on stderr when the broker does not respond."""
    while True:
        try:
            watch.look()
            frame = report(watch.window)
            print_json_line(frame) if as_json else show_once(frame, False)
        except (AdminUnreachable, AdminRefused) as error:
            print(f"waiting for the broker: {printable(str(error))}", file=sys.stderr, flush=True)
        time.sleep(interval_s)


def draw_on(watch: Watch, interval_s: float) -> None:
    from rich.console import Console
    from rich.live import Live

    from dragoman.cli.top.drawing import draw, waiting_for

    console = Console(highlight=False)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            try:
                watch.look()
                live.update(draw(report(watch.window), console.height), refresh=True)
            except (AdminUnreachable, AdminRefused) as error:
                live.update(waiting_for(str(error)), refresh=True)
            time.sleep(interval_s)
