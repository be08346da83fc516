"""`dragoman cancel`, `retry`, `reload` and `stop`: commands to a running broker; and `config`: the settings and their sources."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from dragoman.cli.admin_client import ask, is_running
from dragoman.cli.options import data_option, json_option
from dragoman.cli.show import print_json, print_lines
from dragoman.errors import AdminUnreachable

BROKER_FILE: Final = "broker.json"  # the last file that the broker removes


@click.command()
@click.argument("id_", metavar="ID")
@data_option
@json_option
def cancel(id_: str, data: Path, as_json: bool) -> None:
    """End message ID (its client's id, or its number) wherever it is in its life.

    A client that waits for its answer is notified. A worker that holds it goes on, and its answer is dropped.
    """
    answer = ask(data, "cancel", id=id_)
    was = answer["cancelled"]
    print_json(answer) if as_json else print_lines(
        [f"message {was['id']} of {was['queue']} was {was['state']}: cancelled"]
    )


@click.command()
@click.argument("id_", metavar="ID")
@data_option
@json_option
def retry(id_: str, data: Path, as_json: bool) -> None:
    """Try message ID (its client's id, or its number) again at once: one in quarantine, or one that waits for its next attempt."""
    answer = ask(data, "retry", id=id_)
    was = answer["retried"]
    line = f"message {was['id']} is back in {was['queue']}: attempt {was['attempt'] + 1} is next"
    print_json(answer) if as_json else print_lines([line])


@click.command()
@data_option
@json_option
def reload(data: Path, as_json: bool) -> None:
    """Let a running broker read its settings again, as SIGHUP does."""
    answer = ask(data, "reload")
    if as_json:
        print_json(answer)
        return
    applied, later = answer["applied"], answer["needs_restart"]
    print_lines([f"changed: {', '.join(applied) or 'nothing'}"])
    if later:
        print_lines([f"changed, but wait for the next start: {', '.join(later)}"])


@click.command()
@click.option("--wait", type=click.FloatRange(0), default=60.0, show_default=True, help="Seconds to wait for its end.")
@click.option(
    "--now", is_flag=True, help="Do not let workers finish; what they hold is given out again at the next start."
)
@data_option
@json_option
def stop(wait: float, now: bool, data: Path, as_json: bool) -> int:
    """Drain a running broker and end it: no new work, workers finish what they hold."""
    ask(data, "stop")
    if now:
        with suppress(AdminUnreachable):  # it has stopped already
            ask(data, "stop")
    end_s = time.monotonic() + wait
    while is_running(data) or (data / BROKER_FILE).exists():
        if time.monotonic() >= end_s:
            print_json({"stopped": False}) if as_json else print_lines([f"still draining after {wait:g} s"])
            return 1
        time.sleep(0.05)
    print_json({"stopped": True}) if as_json else print_lines(["stopped"])
    return 0


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
    file; settings with their default value are commented out.
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
