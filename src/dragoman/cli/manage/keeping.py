"""`dragoman backup`, `restore` and `journal`: maintenance of the journal."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click
from click import argument

from dragoman.cli.admin_client import ask, is_running
from dragoman.cli.options import common_options
from dragoman.cli.show import print_result, progress_bar
from dragoman.errors import DataDirectoryBusy, JournalMisplaced
from dragoman.model.phrases import size

JOURNAL: Final = "journal"
DAMAGED: Final = 5


@click.command()
@argument("directory", type=click.Path(path_type=Path))
@common_options
def backup(directory: Path, data: Path, as_json: bool) -> None:
    """Copy the journal into DIRECTORY (new or empty), while the broker runs or without one.

    Everything committed before the command began is in the copy.
    """
    target = directory.absolute()
    with progress_bar("copying", as_json) as progress:
        if is_running(data):
            manifest: dict[str, Any] = ask(data, "backup", progress, target=str(target))
        else:
            from dragoman.journal.tools.backup import backup as copy

            manifest = asdict(copy(str(data), str(target), progress))
    facts = f"facts {manifest['first_lsn']} to {manifest['last_lsn']}"
    print_result(manifest, as_json, f"{target}: {manifest['segments']} segments, {size(manifest['size'])}, {facts}")


@click.command()
@argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
@common_options
def restore(directory: Path, data: Path, as_json: bool) -> None:
    """Make the data directory (new or empty) from the backup in DIRECTORY, after verifying it."""
    from dragoman.journal.tools.backup import restore as put_back

    if is_running(data):
        raise DataDirectoryBusy(data)
    with progress_bar("restoring", as_json) as progress:
        manifest = put_back(str(directory), str(data), progress)
    what = f"{manifest.segments} segments, facts {manifest.first_lsn} to {manifest.last_lsn}"
    print_result(asdict(manifest), as_json, f"{data}: {what}; `dragoman up --data {data}` goes on from there")


@click.group()
def journal() -> None:
    """Verify, index or salvage a journal."""


@journal.command()
@common_options
def verify(data: Path, as_json: bool) -> int:
    """Read every byte of the journal and say what is wrong with it. Changes nothing; a broker may be running.

    Exit code 5 when it is damaged.
    """
    from dragoman.journal.tools.verify import verify as check

    with progress_bar("verifying", as_json) as progress:
        report = check(str(data / JOURNAL), progress)
    facts = f"{report.facts} facts ({report.first_lsn} to {report.last_lsn})"
    lines = [f"{report.segments} segments, {size(report.size)}, {report.blocks} blocks, {facts}"]
    lines.append(f"superblock: {report.superblock}")
    for flaw in report.flaws:
        kind = "unfinished end (cut at the next start)" if flaw.is_torn_tail else "DAMAGE"
        lines.append(f"{kind}: {flaw.file} at byte {flaw.offset}, fact {flaw.lsn}: {flaw.reason}")
    lines.append("sound" if report.is_sound else "damaged: `dragoman journal salvage DIR` copies all that is intact")
    view = asdict(report) | {"is_sound": report.is_sound, "broker_id": (report.broker_id or b"").hex()}
    print_result(view, as_json, *lines)
    return 0 if report.is_sound else DAMAGED


@journal.command()
@common_options
def index(data: Path, as_json: bool) -> None:
    """Make the indexes that are missing, so that `dragoman trace` finds any message at once.

    A running broker does it by itself, unless its `journal.index` is off.
    """
    from dragoman.journal.tools.indexer import Indexer, indexing_alone

    directory = data / JOURNAL
    if not directory.is_dir():
        raise JournalMisplaced(f"{directory} is not there: no journal to index")
    with indexing_alone(str(directory)), progress_bar("indexing", as_json) as progress:
        Indexer(str(directory)).work(is_last=True, progress=progress)
    sizes = [path.stat().st_size for path in directory.glob("*.idx")]
    view = {"indexes": len(sizes), "size": sum(sizes)}
    print_result(view, as_json, f"{directory}: {len(sizes)} indexes, {size(sum(sizes))}")


@journal.command()
@argument("directory", type=click.Path(path_type=Path))
@common_options
def salvage(directory: Path, data: Path, as_json: bool) -> None:
    """Copy every intact block into the new data directory DIRECTORY and list what was lost. The source is only read."""
    from dragoman.journal.tools.salvage import salvage as save

    if is_running(data):
        raise DataDirectoryBusy(data)
    with progress_bar("salvaging", as_json) as progress:
        result = save(str(data / JOURNAL), str(directory / JOURNAL), progress)
    lines = [f"{directory}: {result.blocks} blocks, {result.facts} facts saved"]
    for loss in result.losses:
        last = loss.last_lsn if loss.last_lsn is not None else "?"
        lines.append(f"lost: {loss.file}, {loss.size} bytes at {loss.offset}, facts {loss.first_lsn} to {last}")
    print_result(asdict(result), as_json, *lines, *([] if result.losses else ["nothing was lost"]))
