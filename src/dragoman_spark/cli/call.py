"""The options that all commands of `dragoman pipeline` share."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from dragoman_spark.jobs.options import HOLD_BATCHES, TRIGGER_S, Format, Options
from dragoman_spark.transforms.checks.objectives import read as read_objectives

F = TypeVar("F", bound=Callable[..., Any])

LAKE_DEFAULT: Final = "lake"
OUT_DEFAULT: Final = "tables"
REPORT_DEFAULT: Final = "report.html"


@dataclass(frozen=True, slots=True)
class Call:
    """The shared options: input and output, the Spark to use, and the output format."""

    data: Path
    lake: str
    out: str
    master: str | None
    remote: str | None
    conf: dict[str, str]
    options: Options
    is_traced: bool
    as_json: bool

    @property
    def report(self) -> Path:
        return self.data / REPORT_DEFAULT


def call_options(command: F) -> F:
    """Add the options; the command gets them as its first argument, a Call."""

    @wraps(command)
    def called(
        data: Path,
        lake: str | None,
        out: str | None,
        master: str | None,
        remote: str | None,
        conf: tuple[str, ...],
        format: Format,  # noqa: A002 (click passes it by the name of the option)
        objectives: Path | None,
        trace: bool,
        as_json: bool,
        **others: Any,
    ) -> Any:
        if master and remote:
            raise click.UsageError("--master and --remote name two different Sparks; say one of them")
        if objectives is not None:
            read_objectives(objectives)  # report an error in the file now, not after the batches
        call = Call(
            data=data,
            lake=lake or str(data / LAKE_DEFAULT),
            out=out or str(data / OUT_DEFAULT),
            master=master,
            # An explicit --master takes precedence over the environment's Connect server.
            remote=remote or (None if master else os.environ.get("SPARK_REMOTE") or None),
            conf=_pairs(conf),
            options=Options(
                format=format,
                objectives_file=objectives,
                trigger_s=others.pop("trigger", TRIGGER_S),
                hold_batches=others.pop("hold", HOLD_BATCHES),
            ),
            is_traced=trace,
            as_json=as_json,
        )
        return command(call, **others)

    for option in reversed(_OPTIONS):
        called = option(called)
    return called  # type: ignore[return-value]  # the options change what click passes, not what the command is


def hold_option(command: F) -> F:
    """`--hold`, for the commands that stream."""
    return click.option(
        "--hold",
        type=click.IntRange(0, 1000),
        default=HOLD_BATCHES,
        show_default=True,
        metavar="BATCHES",
        help="Wait so many batches for a late file before going on without its facts.",
    )(command)


_OPTIONS: Final = (
    click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="DRAGOMAN_DATA",
        default=Path("./data"),
        show_default=True,
        show_envvar=True,
        help="The broker's data directory: it has the lake, and gets the tables.",
    ),
    click.option("--lake", metavar="ROOT", help="The lake: a directory, or an address as s3://…  [default: DATA/lake]"),
    click.option("--out", metavar="ROOT", help="Where the tables are kept.  [default: DATA/tables]"),
    click.option(
        "--master", metavar="URL", help="The Spark cluster, as spark://HOST:7077 or yarn.  [default: local[*]]"
    ),
    click.option("--remote", metavar="URL", help="A Spark Connect server, as sc://HOST:15002."),
    click.option(
        "--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark's; may be given several times."
    ),
    click.option(
        "--format",
        type=click.Choice(["parquet", "delta"]),
        default="parquet",
        show_default=True,
        help="How tables are kept.",
    ),
    click.option(
        "--objectives",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        metavar="FILE",
        help="Objectives for slo and capacity, in TOML.",
    ),
    click.option(
        "--trace", is_flag=True, envvar="DRAGOMAN_TRACE", help="Show Spark's log, and whole traces of errors."
    ),
    click.option("--json", "as_json", is_flag=True, help="Print JSON."),
)


def _pairs(said: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in said:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--conf")
        pairs[key.strip()] = value.strip()
    return pairs
