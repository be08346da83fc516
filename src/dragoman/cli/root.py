"""The table of commands, and the exit code of each kind of failure.

Exit codes: 0 done; 1 failed or refused; 2 bad usage or configuration; 3 no broker reachable; 4 not found;
5 the journal is damaged, too new or in the wrong place; 130 interrupted.
"""

from __future__ import annotations

import functools
import importlib
import io
import json
import os
import sys
from typing import Any, Final

import click
from click import option

from dragoman.errors import AdminRefused, DragomanError, OperatorError
from dragoman.limits import ERROR_TEXT_SIZE_MAX
from dragoman.printable import printable_json, printable_lines

FAILED: Final = 1
INTERRUPTED: Final = 130
EXIT_CODES: Final = {"BROKER_UNREACHABLE": 3, "NOT_FOUND": 4}  # of errors without one of their own

# Other packages add commands by an entry point of this group: a table like COMMANDS, whose rows have a third part, the command after which
# theirs is listed. The table's module should import nothing: `--help` loads it.
ENTRY_POINTS: Final = "dragoman.commands"
# Name → module of this package and function in it, and the help text: `--help` imports none of the modules.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "up": ("programs:up", "Start a broker in the foreground."),
    "worker": ("programs:worker", "Run the jobs of an App."),
    "send": ("messages:send", "Send a message; done when the broker has stored it."),
    "call": ("messages:call", "Send a message and print its answer."),
    "publish": ("messages:publish", "Publish to a topic."),
    "subscribe": ("messages:subscribe", "Print what is published to topics."),
    "status": ("inspect.status:status", "Show the broker as a whole."),
    "top": ("top.command:top", "Watch the broker: rates, times, queues, workers, what is stuck."),
    "check": ("inspect.check:check", "Say whether all is well, as monitoring plugins do."),
    "queues": ("inspect.lists:queues", "Show queues; pause, drain, resume or purge one."),
    "workers": ("inspect.lists:workers", "Show connected workers; dismiss or admit one."),
    "schedules": ("inspect.lists:schedules", "Show durable schedules; remove one."),
    "trace": ("inspect.history:trace", "Print the whole life of a message."),
    "find": ("inspect.history:find", "List messages by queue, peer, state, dialect and time."),
    "explain": ("inspect.history:explain", "Say why a message, queue or worker is not moving."),
    "cancel": ("manage.control:cancel", "End a message that is not settled."),
    "retry": ("manage.control:retry", "Try a message again at once."),
    "quarantine": ("inspect.lists:quarantine", "Show, retry or drop messages that were set aside."),
    "backup": ("manage.maintenance:backup", "Copy the journal while the broker runs."),
    "restore": ("manage.maintenance:restore", "Make a data directory from a backup."),
    "journal": ("manage.maintenance:journal", "Verify, index or salvage a journal."),
    "seal": ("manage.maintenance:seal", "Write the journal's facts into the lake."),
    "config": ("manage.control:config", "Show the settings."),
    "reload": ("manage.control:reload", "Let a running broker read its settings again."),
    "stop": ("manage.control:stop", "Drain a running broker and end it."),
    "tap": ("tap:tap", "Watch what crosses the listeners, decoded; record it."),
    "dismiss": ("inspect.lists:dismiss", "The same as `workers dismiss`."),
    "bench": ("load:bench", "Put a short load on a broker and measure it."),
    "demo": ("demo.play:demo", "Show all five dialects at work."),
}


class Commands(click.Group):
    """A group that imports a command's module when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(all_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:  # needs no entry points
            path = f"{__package__}.{COMMANDS[cmd_name][0]}"
        elif cmd_name in all_commands():
            path = all_commands()[cmd_name][0]
        else:
            return None
        if os.environ.get("DRAGOMAN_DIALECTS"):  # journals have the numbers of their dialects, the registry their names
            importlib.import_module("dragoman.dialects.registry")
        module, _, name = path.partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in all_commands().items()])


@functools.cache
def all_commands() -> dict[str, tuple[str, str]]:
    """Name → full path and help text of every command, in the order of `--help`: this package's, and those that others add."""
    from importlib.metadata import entry_points

    rows = [(name, f"{__package__}.{path}", about) for name, (path, about) in COMMANDS.items()]
    for entry_point in sorted(entry_points(group=ENTRY_POINTS), key=lambda found: found.name):
        try:
            table = entry_point.load()
        except ModuleNotFoundError:
            continue  # the package is not installed
        for name, (path, about, predecessor) in table.items():
            names = [row[0] for row in rows]
            if name not in names:
                rows.insert(names.index(predecessor) + 1 if predecessor in names else len(rows), (name, path, about))
    return {name: (path, about) for name, path, about in rows}


def show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from dragoman.version import version_line

        click.echo(version_line())
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@option("--version", is_flag=True, expose_value=False, is_eager=True, callback=show_version, help="Say which.")
def dragoman() -> None:
    """A durable message broker. `dragoman COMMAND --help` explains a command.

    Commands that look at a broker find it by its data directory: --data DIR, else DRAGOMAN_DATA, else ./data.
    """


def run(arguments: list[str]) -> int:
    """Run one command; return its exit code."""
    as_json = "--json" in arguments
    try:
        result: Any = dragoman.main(arguments, prog_name="dragoman", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except click.ClickException as error:
        text = io.StringIO()
        error.show(text)
        print(printable_lines(text.getvalue(), ERROR_TEXT_SIZE_MAX), end="", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone (`| head`): nothing more can be written
        return FAILED
    except DragomanError as error:
        code = error.refusal if isinstance(error, AdminRefused) else error.code
        exit_code = error.exit_code if isinstance(error, OperatorError) else EXIT_CODES.get(code, FAILED)
        return complain(as_json, code, str(error), exit_code)
    except OSError as error:
        return complain(as_json, "OS_ERROR", str(error), FAILED)


def complain(as_json: bool, code: str, message: str, exit_code: int) -> int:
    """Print one line on stderr; with --json an object, so that scripts parse both streams alike."""
    if as_json:
        print(printable_json(json.dumps({"error": {"code": code, "message": message}})), file=sys.stderr)
    else:
        print(f"dragoman: {printable_lines(message)} [{code}]", file=sys.stderr)
    return exit_code
