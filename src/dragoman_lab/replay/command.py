"""`dragoman export-test`: turns an incident into a test."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dragoman.cli.admin_client import AdminClient, queue_names
from dragoman.cli.options import data_option, json_option
from dragoman.cli.show import print_json, progress_bar
from dragoman.dialects.registry import DIALECTS_BY_NAME
from dragoman.errors import AdminUnreachable, ExportMisplaced, NothingToExport
from dragoman.model.phrases import count_of, instant

if TYPE_CHECKING:
    from dragoman.runtime.config import Config
    from dragoman_lab.replay.export.history import History, Wanted
    from dragoman_lab.replay.export.script import Script

JOURNAL: Final = "journal"
FOREVER_NS: Final = 2**63 - 1  # a broker's clock may be ahead of ours: include the newest fact in any case
# Settings that affect the history of a message.
SECTIONS: Final = ("queues", *DIALECTS_BY_NAME)
# Exceptions, which a simulated broker does not use: files and other brokers.
UNUSED: Final = ("scale0.config_file", "scale0.look_s", "rq.upstreams", "rq.upstream_retry_s", "emqp.scheduler")


@click.command("export-test")
@click.option("--queue", default="", metavar="NAME", help="Only this queue.")
@click.option(
    "--from", "from_", metavar="INSTANT", help="2026-03-02T14:03, 14:03 or -15m. Default: the oldest kept fact."
)
@click.option("--to", metavar="INSTANT", help="As --from. Default: now.")
@click.option("--id", "id_", default="", metavar="ID", help="Only this message: its client's id, or its number.")
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="The file to write. Default: standard output."
)
@click.option("--force", is_flag=True, help="Write over the file if it is there already.")
@click.option(
    "--bodies", is_flag=True, help="Put the real bodies in; else bytes of the same size and kind stand for them."
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="The settings it ran with; else a running broker is asked.",
)
@click.option("--set", "settings", multiple=True, metavar="SECTION.KEY=VALUE", help="As `dragoman up` takes it.")
@data_option
@json_option
def export_test(
    queue: str,
    from_: str | None,
    to: str | None,
    id_: str,
    out: Path | None,
    force: bool,
    bodies: bool,
    config_file: Path | None,
    settings: tuple[str, ...],
    data: Path,
    as_json: bool,
) -> None:
    """Write a pytest file that replays a slice of the journal in the simulator.

    It checks that each message lives the same life again: the same facts, attempts, outcomes and reasons, given out in the same order.
    Reads the journal's files: works beside a running broker and without one.
    """
    from dragoman.runtime.search.instants import read_instant
    from dragoman_lab.replay.export.history import Wanted
    from dragoman_lab.replay.export.page import write_page
    from dragoman_lab.replay.export.script import Writer, prove

    if out is not None:
        check_path(out, force)
    now_ns = time.time_ns()
    wanted = Wanted(
        from_ns=read_instant(from_, now_ns) if from_ else 0,
        to_ns=read_instant(to, now_ns) if to else FOREVER_NS,
        queue=queue,
        key=id_,
        with_bodies=bodies,
    )
    if wanted.to_ns <= wanted.from_ns:
        raise NothingToExport(f"the slice ends before it begins ({in_words(wanted)})")
    history = read_history(data, wanted, as_json)
    config, given = read_settings(data, config_file, settings)
    script = Writer(history, config, given).write()
    prove(script)
    text = write_page(script, in_words(wanted), notes_of(history, config))
    if out is not None:
        out.write_text(text, encoding="utf-8")
    if as_json:
        print_json(summary(script, out, text))
    elif out is not None:
        click.echo(
            f"{out}: {count_of(len(script.lives), 'message')}, {count_of(len(script.story), 'row')}; run it with pytest"
        )
        for message, why in script.left_out.items():
            click.echo(f"not checked: {message}: {why}")
    else:
        click.echo(text, nl=False)


def check_path(out: Path, force: bool) -> None:
    """Check the output path before reading and replaying the slice, which may take minutes."""
    if not out.parent.is_dir():
        raise ExportMisplaced(f"{out} cannot be written: the directory {out.parent} is not there")
    if out.exists() and not force:
        raise ExportMisplaced(f"{out} is there already: name another, or write over it with --force")


def read_history(data: Path, wanted: Wanted, is_quiet: bool) -> History:
    from dragoman.journal.reader import JournalReader
    from dragoman_lab.replay.export.history import History

    directory = data / JOURNAL
    if not directory.is_dir():
        raise NothingToExport(f"{directory} is not there: no journal to read")
    reader = JournalReader(str(directory))
    segments = reader.segments()
    history = History(wanted, queue_names(data))
    with progress_bar("reading facts", is_quiet) as progress:
        history.read(reader.read(0), segments[-1].last_lsn if segments else 0, progress)
    if not history.lives:
        known = ", ".join(sorted(history.queues.values())) or "none"
        hint = (
            f"; queues the journal names: {known}"
            if wanted.queue and wanted.queue not in history.queues.values()
            else ""
        )
        raise NothingToExport(f"no message was open then ({in_words(wanted)}){hint}")
    return history


def read_settings(data: Path, config_file: Path | None, settings: tuple[str, ...]) -> tuple[Config, dict[str, Any]]:
    """The broker's settings, and those of them that affect histories and are not the defaults."""
    from dragoman.runtime.config import Flags, load

    if config_file is None and not settings:
        settings = running_settings(data)
        config = load(None, {} if settings else os.environ, Flags(settings=settings))
    else:
        config = load(config_file, os.environ, Flags(settings=settings))
    return config, unusual(config)


def unusual(config: Config) -> dict[str, Any]:
    """The settings that affect histories and are not the defaults."""
    from dragoman.runtime.config import Config
    from dragoman.runtime.config.loading import value_of
    from dragoman.runtime.config.sections import all_settings

    usual = Config()
    keys = [key for key in all_settings() if key.partition(".")[0] in SECTIONS and key not in UNUSED]
    return {key: value_of(config, key) for key in keys if value_of(config, key) != value_of(usual, key)}


def running_settings(data: Path) -> tuple[str, ...]:
    import tomllib

    try:
        with AdminClient(data) as client:
            config = tomllib.loads(client.ask("config")["toml"])
    except AdminUnreachable:
        return ()
    return tuple(
        f"{section}.{name}={value}"
        for section in SECTIONS
        for name, value in config.get(section, {}).items()
        if f"{section}.{name}" not in UNUSED
    )


def in_words(wanted: Wanted) -> str:
    what = f"Message {wanted.key}" if wanted.key else "What happened"
    where = f" in queue {wanted.queue}" if wanted.queue else ""
    begins = f", from {instant(wanted.from_ns, 0)}" if wanted.from_ns else ", up"
    return f"{what}{where}{begins} to {instant(min(wanted.to_ns, time.time_ns()), 0)}"


def notes_of(history: History, config: Config) -> list[str]:
    notes = []
    if history.headless:
        begun = count_of(len(history.headless), "message")
        notes.append(f"Not played: {begun} whose beginning is older than what the journal keeps.")
    if config.dialects["scale0"].config_file.path:
        notes.append("Not played: scale0's configuration document; workers serve what they say.")
    return notes


def summary(script: Script, out: Path | None, text: str) -> dict[str, Any]:
    found: dict[str, Any] = {"messages": len(script.lives), "rows": len(script.story), "is_ordered": script.is_ordered}
    found |= {"left_out": script.left_out, "file": str(out) if out is not None else ""}
    return found if out is not None else found | {"text": text}
