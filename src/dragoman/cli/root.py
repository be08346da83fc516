"""The commands, by name, and how each of their failures ends the process.

Exit codes: 0 done; 1 failed or refused; 2 bad usage or configuration; 3 no broker reachable; 4 no such thing;
5 the journal is damaged, too new or in the wrong place; 130 interrupted.
"""

from __future__ import annotations

import importlib
import io
import json
import sys
from typing import Any, Final

import click

from dragoman.errors import AdminRefused, ClientError, DragomanError, OperatorError
from dragoman.limits import ERROR_TEXT_SIZE_MAX
from dragoman.printable import printable_json, printable_lines

FAILED: Final = 1
UNREACHABLE: Final = 3
NOT_FOUND: Final = 4
INTERRUPTED: Final = 130

# Name → where it lives (in this room, or by its full name elsewhere) and what `--help` says of it: help needs none of the modules.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "up": ("up:up", "Start a broker in the foreground."),
    "worker": ("worker:worker", "Run the jobs of an App."),
    "send": ("messages:send", "Send a message; done when the broker has kept it."),
    "call": ("messages:call", "Send a message and print its answer."),
    "publish": ("messages:publish", "Publish to a topic."),
    "subscribe": ("messages:subscribe", "Print what is published to topics."),
    "status": ("looks:status", "Show the broker as a whole."),
    "top": ("top.command:top", "Watch the broker: rates, times, queues, workers, what is stuck."),
    "check": ("check:check", "Say whether all is well, as monitoring plugins do."),
    "queues": ("queues:queues", "Show queues; pause, drain, resume or purge one."),
    "workers": ("workers:workers", "Show connected workers; dismiss or admit one."),
    "schedules": ("schedules:schedules", "Show durable schedules; remove one."),
    "trace": ("history:trace", "Print the whole life of a message."),
    "find": ("find:find", "List messages by queue, peer, state, dialect and time."),
    "explain": ("history:explain", "Say why a message, queue or worker is not moving."),
    "export-test": ("dragoman.testing.replay.command:export_test", "Write a test that replays what happened."),
    "cancel": ("control:cancel", "End a message that is not settled."),
    "retry": ("control:retry", "Try a message again at once."),
    "quarantine": ("quarantine:quarantine", "Show, retry or drop messages that were set aside."),
    "backup": ("keeping:backup", "Copy the journal while the broker runs."),
    "restore": ("keeping:restore", "Make a data directory from a backup."),
    "journal": ("keeping:journal", "Verify, index or salvage a journal."),
    "seal": ("seal:seal", "Write the journal's facts into the lake."),
    "config": ("settings:config", "Show the settings."),
    "reload": ("control:reload", "Let a running broker read its settings again."),
    "stop": ("control:stop", "Drain a running broker and end it."),
    "tap": ("tap:tap", "Watch what crosses the listeners, decoded; record it."),
    "replay-peer": ("replay_peer:replay_peer", "Play a recorded peer against a broker, up to the first divergence."),
    "dismiss": ("workers:dismiss", "The same as `workers dismiss`."),
    "generate": ("dragoman.testing.generate.command:generate", "Write a lake of synthetic facts."),
    "bench": ("load:bench", "Put a short load on a broker and measure it."),
    "pipeline": ("dragoman_spark.cli.command:pipeline", "Make tables and answers from the lake, on Spark."),
    "demo": ("demo.command:demo", "Show all five dialects at work."),
}


class Commands(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        path = module if module.startswith("dragoman") else f"dragoman.cli.{module}"
        command = getattr(importlib.import_module(path), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])


def show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from dragoman.version import version_line

        click.echo(version_line())
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=show_version, help="Say which.")
def dragoman() -> None:
    """A durable message broker. `dragoman COMMAND --help` explains a command.

    Commands that look at a broker find it by its data directory: --data DIR, else DRAGOMAN_DATA, else ./data.
    """


def run(arguments: list[str]) -> int:
    """Run one command; its exit code."""
    as_json = "--json" in arguments
    try:
        result: Any = dragoman.main(arguments, prog_name="dragoman", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.Abort:
        return INTERRUPTED
    except KeyboardInterrupt:
        return INTERRUPTED
    except click.ClickException as error:
        text = io.StringIO()
        error.show(text)
        print(printable_lines(text.getvalue(), ERROR_TEXT_SIZE_MAX), end="", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone (`| head`): nothing more can or need be said
        return FAILED
    except AdminRefused as refused:
        return complain(as_json, refused.refusal, str(refused), NOT_FOUND if refused.refusal == "NOT_FOUND" else FAILED)
    except OperatorError as error:
        return complain(as_json, error.code, str(error), error.exit_code)
    except ClientError as error:
        is_away = error.code == "BROKER_UNREACHABLE"
        return complain(as_json, error.code, str(error), UNREACHABLE if is_away else FAILED)
    except DragomanError as error:
        return complain(as_json, error.code, str(error), FAILED)
    except OSError as error:
        return complain(as_json, "OS_ERROR", str(error), FAILED)


def complain(as_json: bool, code: str, message: str, exit_code: int) -> int:
    """One line on stderr; with --json an object, so that scripts read the same thing on both streams."""
    if as_json:
        print(printable_json(json.dumps({"error": {"code": code, "message": message}})), file=sys.stderr)
    else:
        print(f"dragoman: {printable_lines(message)} [{code}]", file=sys.stderr)
    return exit_code
