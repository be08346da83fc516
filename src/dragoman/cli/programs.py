"""`dragoman up` and `dragoman worker`: the programs that run until they are stopped."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Final

import click
from click import Choice, FloatRange, IntRange, argument, option

OWN_USER_ONLY: Final = 0o077
DEFAULT_WEIGHT: Final = 10


@click.command()
@option("--data", metavar="DIR", help="The data directory. Default: ./data, or DRAGOMAN_DATA.")
@option("--config", "config_file", type=click.Path(path_type=Path), help="A TOML file. Also DRAGOMAN_CONFIG.")
@option(
    "--listen",
    multiple=True,
    metavar="NAME=ADDRESS",
    help="Where a listener binds, as emqp.client=tcp://127.0.0.1:47291; port 0 takes a free one, `off` leaves it out.",
)
@option("--durability", metavar="WORD", help="memory, os or disk (the default).")
@option("--set", "settings", multiple=True, metavar="SECTION.KEY=VALUE", help="Any other setting.")
def up(config_file: Path | None, **given: Any) -> int:
    """Start a broker in the foreground.

    SIGTERM and SIGINT drain it: no new work, workers finish their jobs, then it exits with 0. SIGHUP reads the settings
    again. `dragoman config show` prints every setting.
    """
    # structlog loads rich where it finds it, to draw tracebacks; the broker logs them as text. A fifth of its start, and 5 MB.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
    from dragoman.runtime.config import Config, Flags, load
    from dragoman.runtime.server import run

    flags = Flags(**given)

    def read_settings() -> Config:
        return load(config_file, os.environ, flags)

    os.umask(OWN_USER_ONLY)  # for its children, too; the lake has modes of its own
    return run(read_settings(), read_settings)


def read_queue(text: str) -> tuple[int, str]:
    """Parse `NAME` or `NAME=WEIGHT`."""
    name, equals, weight = text.rpartition("=")
    if not equals:
        return DEFAULT_WEIGHT, text
    if not weight.isdigit() or not name:
        raise click.BadParameter(f"wants NAME or NAME=WEIGHT, not {text!r}", param_hint="--queue")
    return int(weight), name


@click.command()
@argument("app", metavar="MODULE:APP")
@option("--slots", default=8, show_default=True, type=IntRange(1, 100_000), help="Jobs at once, per process.")
@option(
    "--processes",
    default=0,
    show_default=True,
    type=IntRange(0, 256),
    help="Child processes that run the jobs, for CPU-bound work; 0: this process runs them.",
)
@option(
    "--queue", "queues", multiple=True, metavar="NAME[=WEIGHT]", help="A queue to serve; default: those of the jobs."
)
@option(
    "--url",
    "--broker",
    "url",
    default="",
    metavar="ADDRESS",
    help="The broker, instead of the App's own address: emqp://HOST, rq://HOST, …",
)
@option("--drain-s", default=30.0, show_default=True, type=FloatRange(0), help="How long jobs may end after SIGTERM.")
@option(
    "--allow-import",
    multiple=True,
    metavar="PREFIX",
    help="Also run functions and classes that these modules define, though they are no jobs of the App: for EventMQ's clients.",
)
@option("--log-level", default="INFO", show_default=True, type=Choice(["DEBUG", "INFO", "WARNING", "ERROR"]))
def worker(app: str, queues: tuple[str, ...], url: str, log_level: str, **settings: Any) -> int:
    """Run the jobs of an App, and its handlers of news.

    MODULE:APP names it, as in `shop.jobs:app`; `app` is the default name. Coroutine functions share one event loop, plain
    functions run in threads. SIGTERM and SIGINT drain: no new jobs, running ones may end, then it exits with 0.
    """
    from dragoman import log_lines
    from dragoman.client.worker import WorkerSettings
    from dragoman.client.worker.program import run

    log_lines.configure(log_level, log_lines.WORKER_FORM)
    served = tuple(read_queue(text) for text in queues)
    return run(app, WorkerSettings(queues=served, **settings), url, log_level)
