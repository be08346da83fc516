"""`dragoman config`: the settings and their sources."""

from __future__ import annotations

import os
from pathlib import Path

import click

from dragoman.cli.admin_client import ask
from dragoman.cli.options import data_option, json_option
from dragoman.cli.show import print_json


@click.group()
def config() -> None:
    """Show the settings."""


@config.command()
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="A TOML file. Also DRAGOMAN_CONFIG.")
@click.option("--set", "settings", multiple=True, metavar="SECTION.KEY=VALUE", help="As `dragoman up` takes it.")
@click.option("--running", is_flag=True, help="Ask the running broker instead.")
@data_option
@json_option
def show(config_file: Path | None, settings: tuple[str, ...], running: bool, data: Path, as_json: bool) -> None:
    """Print the settings in force as a commented dragoman.toml.

    Without --running: what `dragoman up` with the same file, environment and flags would use. The output is itself a valid
    file; settings nobody gave are commented out.
    """
    if running:
        text = str(ask(data, "config")["toml"])
    else:
        from dragoman.runtime.config import Flags, load, render_toml

        context = click.get_current_context()
        is_given = context.get_parameter_source("data") is click.core.ParameterSource.COMMANDLINE
        flags = Flags(data=str(data) if is_given else None, settings=settings)
        text = render_toml(load(config_file, os.environ, flags))
    if as_json:
        import tomllib

        print_json({"toml": text, "given": tomllib.loads(text)})
    else:
        click.echo(text, nl=False)
