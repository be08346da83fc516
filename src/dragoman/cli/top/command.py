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
from dragoman.cli.show import console, print_json, print_json_line
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
            watch.frame()
            time.sleep(interval_s)
            frame = watch.frame()
            print_json(frame) if as_json else print_drawing(frame)
        elif as_json or not sys.stdout.isatty():
            print_frames(watch, interval_s, as_json)
        else:
            draw_frames(watch, interval_s)


class Watch:
    """Samples the broker of one data directory, across its restarts."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._window = Window()
        self._client: AdminClient | None = None

    def frame(self) -> dict[str, Any]:
        """Take a sample; raises `AdminUnreachable` if no broker responds, and the next call tries again."""
        try:
            if self._client is None:
                self._client = AdminClient(self._data)
            self._window.add(look(self._client))
        except (AdminUnreachable, AdminRefused):
            self._window.clear()
            self.close()
            raise
        return report(self._window)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


def print_drawing(frame: dict[str, Any]) -> None:
    from dragoman.cli.top.drawing import draw

    console().print(draw(frame))


def print_frames(watch: Watch, interval_s: float, as_json: bool) -> None:
    """For a pipe: print a frame per interval, and a line on stderr when the broker does not respond."""
    while True:
        try:
            frame = watch.frame()
            print_json_line(frame) if as_json else print_drawing(frame)
        except (AdminUnreachable, AdminRefused) as error:
            print(f"waiting for the broker: {printable(str(error))}", file=sys.stderr, flush=True)
        time.sleep(interval_s)


def draw_frames(watch: Watch, interval_s: float) -> None:
    from rich.live import Live
    from rich.text import Text

    from dragoman.cli.top.drawing import draw

    screen = console()
    with Live(console=screen, screen=True, auto_refresh=False) as live:
        while True:
            try:
                live.update(draw(watch.frame(), screen.height), refresh=True)
            except (AdminUnreachable, AdminRefused) as error:
                live.update(Text(f"waiting for the broker: {printable(str(error))}", "yellow"), refresh=True)
            time.sleep(interval_s)
