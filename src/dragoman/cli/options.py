"""Options that many commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from dragoman.client.address import Address

F = TypeVar("F", bound=Callable[..., Any])


def address_of(url: str | None, data: Path) -> Address:
    """The broker of `--url`, or else of `--data`."""
    from dragoman.client.address import parse  # here: most commands need no SDK

    return parse(url if url else f"file:{data}")


def data_option(command: F) -> F:
    """`--data`: the broker's data directory. An option of a group also applies to its subcommands."""
    return click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="DRAGOMAN_DATA",
        default=Path("./data"),
        show_default=True,
        show_envvar=True,
        callback=_from_parent,
        help="The broker's data directory.",
    )(command)


def json_option(command: F) -> F:
    """`--json`: output for scripts."""
    return click.option("--json", "as_json", is_flag=True, callback=_from_parent, help="Print JSON.")(command)


def lake_option(command: F) -> F:
    """`--lake`: the lake with the facts that the journal no longer keeps."""
    return click.option(
        "--lake",
        metavar="ROOT",
        help="The lake: a directory, or an address as s3://BUCKET/PATH. Default: the running broker's, else `lake.root`, else DATA/lake.",
    )(command)


def page_options(command: F) -> F:
    """`--limit` and `--offset` of a list."""
    command = click.option("--offset", type=click.IntRange(0), default=0, help="Leave out so many at the beginning.")(
        command
    )
    return click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Show so many.")(
        command
    )


def url_option(command: F) -> F:
    """`--url`: the broker to connect to."""
    return click.option(
        "--url",
        "--broker",
        "url",
        metavar="ADDRESS",
        envvar="DRAGOMAN_URL",
        show_envvar=True,
        help="The broker's address, as emqp://HOST or rq://HOST. Default: what the broker wrote into its data directory.",
    )(command)


def _from_parent(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Take the parent's value: `dragoman queues --json pause q` means the same as `dragoman queues pause q --json`."""
    from click.core import ParameterSource

    name = param.name or ""
    parent = ctx.parent
    if parent is None or ctx.get_parameter_source(name) in (ParameterSource.COMMANDLINE,):
        return value
    return parent.params.get(name, value)
