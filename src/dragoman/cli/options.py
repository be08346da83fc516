"""Options that many commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click import option

if TYPE_CHECKING:
    from dragoman.client.address import Address

F = TypeVar("F", bound=Callable[..., Any])


def address_of(url: str | None, data: Path) -> Address:
    """The broker of `--url`, or else of `--data`."""
    from dragoman.client.address import parse  # here: most commands need no SDK

    return parse(url if url else f"file:{data}")


def _from_parent(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Use the parent's value: `dragoman queues --json pause q` means the same as `dragoman queues pause q --json`."""
    name = param.name or ""
    if ctx.parent is None or ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
        return value
    return ctx.parent.params.get(name, value)


# `--data` and `--json` of a group also apply to its subcommands.
data_option = option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="DRAGOMAN_DATA",
    default=Path("./data"),
    show_default=True,
    show_envvar=True,
    callback=_from_parent,
    help="The broker's data directory.",
)
json_option = option("--json", "as_json", is_flag=True, callback=_from_parent, help="Print JSON.")
lake_option = option(
    "--lake",
    metavar="ROOT",
    help="The lake: a directory, or an address as s3://BUCKET/PATH. Default: the running broker's, else `lake.root`, else DATA/lake.",
)
url_option = option(
    "--url",
    "--broker",
    "url",
    metavar="ADDRESS",
    envvar="DRAGOMAN_URL",
    show_envvar=True,
    help="The broker's address, as emqp://HOST or rq://HOST. Default: what the broker wrote into its data directory.",
)


def all_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order of `--help`."""

    def decorate(command: F) -> F:
        for one in reversed(options):
            command = one(command)
        return command

    return decorate


page_options = all_options(
    option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Show so many."),
    option("--offset", type=click.IntRange(0), default=0, help="Leave out so many at the beginning."),
)
common_options = all_options(data_option, json_option)
