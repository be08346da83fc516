"""`dragoman up`: start a broker."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import click
from click import option

OWN_USER_ONLY: Final = 0o077


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

    SIGTERM and SIGINT drain it: no new work, workers finish what they hold, then it exits with 0. SIGHUP reads the settings
    again. `dragoman config show` prints every setting.
    """
    from dragoman.runtime.config import Config, Flags, load
    from dragoman.runtime.server import run

    flags = Flags(**given)

    def read_settings() -> Config:
        return load(config_file, os.environ, flags)

    os.umask(OWN_USER_ONLY)  # for its children, too; the lake has modes of its own
    return run(read_settings(), read_settings)
