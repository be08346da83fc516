"""`dragoman cancel`, `retry`, `reload` and `stop`: commands to a running broker; and `config`: the settings and their sources."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import click
from click import FloatRange, argument, option

from dragoman.cli.admin_client import ask, is_running
from dragoman.cli.options import common_options
from dragoman.cli.show import print_json, print_result
from dragoman.errors import AdminUnreachable

BROKER_FILE: Final = "broker.json"  # the last file that the broker removes


@click.command()
@argument("id_", metavar="ID")
@common_options
def cancel(id_: str, data: Path, as_json: bool) -> None:
    """End message ID (its client's id, or its number) wherever it is in its life.

    A client that waits for its answer is notified. A worker that runs it goes on, and its answer is dropped.
    """
    answer = ask(data, "cancel", id=id_)
    was = answer["cancelled"]
    print_result(answer, as_json, f"message {was['id']} of {was['queue']} was {was['state']}: cancelled")


@click.command()
@argument("id_", metavar="ID")
@common_options
def retry(id_: str, data: Path, as_json: bool) -> None:
    """Try message ID (its client's id, or its number) again at once: one in quarantine, or one that waits for its next attempt."""
    answer = ask(data, "retry", id=id_)
    was = answer["retried"]
    line = f"message {was['id']} is back in {was['queue']}: attempt {was['attempt'] + 1} is next"
    print_result(answer, as_json, line)


@click.command()
@common_options
def reload(data: Path, as_json: bool) -> None:
    """Let a running broker read its settings again, as SIGHUP does."""
    answer = ask(data, "reload")
    lines = [f"changed: {', '.join(answer['applied']) or 'nothing'}"]
    if answer["needs_restart"]:
        lines.append(f"changed, but wait for the next start: {', '.join(answer['needs_restart'])}")
    print_result(answer, as_json, *lines)


@click.command()
@option("--wait", type=FloatRange(0), default=60.0, show_default=True, help="Seconds to wait for its end.")
@option(
    "--now", is_flag=True, help="Do not let workers finish; what they have leased is given out again at the next start."
)
@common_options
def stop(wait: float, now: bool, data: Path, as_json: bool) -> int:
    """Drain a running broker and end it: no new work, workers finish their jobs."""
    ask(data, "stop")
    if now:
        with suppress(AdminUnreachable):  # it has stopped already
            ask(data, "stop")
    end_s = time.monotonic() + wait
    while is_running(data) or (data / BROKER_FILE).exists():
        if time.monotonic() >= end_s:
            print_result({"stopped": False}, as_json, f"still draining after {wait:g} s")
            return 1
        time.sleep(0.05)
    print_result({"stopped": True}, as_json, "stopped")
    return 0


@click.group()
def config() -> None:
    """Show the settings."""


@config.command()
@option("--config", "config_file", type=click.Path(path_type=Path), help="A TOML file. Also DRAGOMAN_CONFIG.")
@option("--set", "settings", multiple=True, metavar="SECTION.KEY=VALUE", help="As `dragoman up` takes it.")
@option("--running", is_flag=True, help="Ask the running broker instead.")
@common_options
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
