"""Generates docs/reference/cli.md from the commands themselves: `python -m dragoman.cli.page docs/reference/cli.md`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from dragoman.cli.root import dragoman

HEAD = """\
# The command line

`dragoman COMMAND --help` prints what stands here. Commands that look at a broker find it by its data directory (`--data`, else
`DRAGOMAN_DATA`, else `./data`) and talk to its [admin socket](admin.md); `send`, `call`, `publish` and `subscribe` connect to its
eMQP listeners as any client does; `trace`, `find`, `journal` and `restore` read files and need no broker.

Every command that prints something takes `--json` and then prints one JSON document on stdout (`subscribe`: one per line) and,
when it fails, `{"error": {"code", "message"}}` on stderr. Progress bars appear on a terminal's stderr only.
Text that came from peers is printed with every character that is not printable escaped; `call --raw` prints bytes as they came.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | failed, or refused by the broker; the job failed or did not answer in time |
| 2 | bad usage, or a setting that cannot be |
| 3 | no broker reachable |
| 4 | no such message, queue, worker or schedule |
| 5 | the journal is damaged, written by a later version, or in the wrong place |
| 130 | interrupted, or the question was answered with no |

A message's ID is its client's id, or its number: `1.17` (boot and count), the same as one number (`1099511627793`), or the id the
broker gave it towards workers. Workers are `w1.17`, schedules `s1.17`.

This page is made from the code: `make docs` rewrites it.
"""


def render() -> str:
    context = click.Context(dragoman, info_name="dragoman")
    return "\n".join([HEAD, *sections(dragoman, context, 2)]).rstrip() + "\n"


def sections(group: click.Group, context: click.Context, depth: int) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from section(command, context, name, depth)


def section(command: click.Command, parent: click.Context, name: str, depth: int) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent, **command.context_settings)
    yield f"{'#' * depth} `{context.command_path}`\n"
    yield inspect.cleandoc(command.help or "").replace("\b\n", "") + "\n"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```\n{context.command_path} {usage}\n```\n"
    options = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
    if options:
        yield "| option | meaning |\n|---|---|"
        for option in options:
            names, about = option.get_help_record(context) or ("", "")
            yield f"| `{escaped(names)}` | {escaped(about)} |"
        yield ""
    if isinstance(command, click.Group):
        yield from sections(command, context, depth + 1)


def escaped(text: str) -> str:
    """Escape `|`, which would end the table's cell."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
