"""`dragoman backup`, `restore`, `journal` and `seal`: maintenance of the journal, and of its lake by hand."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click
from click import Choice, argument, option

from dragoman.cli.admin_client import Progress, ask, is_running
from dragoman.cli.options import common_options
from dragoman.cli.show import print_result, progress_bar
from dragoman.errors import DataDirectoryBusy, JournalMisplaced
from dragoman.model.phrases import size

if TYPE_CHECKING:
    from dragoman.lake.sealer import Sealer
    from dragoman.lake.writer import Bodies, Written

JOURNAL: Final = "journal"
LAKE: Final = "lake"
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


@dataclass
class Tally:
    """Counts of the files, rows and bytes that one run wrote."""

    files: int = 0
    rows: int = 0
    bytes: int = 0

    def count(self, written: Written) -> None:
        self.files += 1
        self.rows += written.part.rows
        self.bytes += written.size


@click.command()
@option("--root", metavar="ROOT", help="The lake: a directory, or an address as s3://BUCKET/PATH. Default: DATA/lake.")
@option(
    "--bodies",
    type=Choice(["none", "hash", "full"]),
    default="hash",
    show_default=True,
    help="What goes along of a message's body: its size, size and hash, or all.",
)
@option("--compact", is_flag=True, help="Then join all files of incoming into large ones of history.")
@common_options
def seal(root: str | None, bodies: str, compact: bool, data: Path, as_json: bool) -> None:
    """Write the journal's facts into the lake, as Parquet, and stop.

    Goes on where the lake ends, up to the last fact that the journal knows to be safe on disk. `dragoman up` does this all the time
    where its lake is on: this is for a journal without a running broker, or for one that runs without a lake.
    """
    from dragoman.journal.reader import JournalReader
    from dragoman.lake.sealer import Sealer, sealing_alone
    from dragoman.lake.store import Lake, Modes
    from dragoman.runtime.config import load

    directory = data / JOURNAL
    reader = JournalReader(str(directory))
    broker_id = reader.broker_id() if directory.is_dir() else None
    if broker_id is None:
        raise JournalMisplaced(f"{directory} contains no journal")
    with sealing_alone(str(directory)):
        wanted = load(None, os.environ).lake
        lake = Lake(root or str(data / LAKE), modes=Modes(wanted.file_mode, wanted.directory_mode))
        sealer = Sealer(reader, broker_id, lake, cast("Bodies", bodies))
        with progress_bar("sealing", as_json) as progress:
            sealed = seal_all(sealer, reader.synced_lsn(), progress)
        joined = Tally()
        if compact:
            with progress_bar("compacting", as_json) as progress:
                joined = join_all(sealer, progress)
    show_sealed(sealer, sealed, joined, as_json)


def seal_all(sealer: Sealer, upto_lsn: int, progress: Progress) -> Tally:
    sealer.check_journal_end(upto_lsn)
    tally, first_lsn = Tally(), sealer.sealed_lsn
    while sealer.take(upto_lsn) or sealer.rows:
        for written in sealer.flush():
            tally.count(written)
        progress(sealer.sealed_lsn - first_lsn, upto_lsn - first_lsn)
    return tally


def join_all(sealer: Sealer, progress: Progress) -> Tally:
    from dragoman.lake.compact import Compactor

    tally, compactor = Tally(), Compactor(sealer.lake, sealer.broker)
    total = compactor.waiting_rows
    while (tidied := compactor.step(time.time(), is_all=True)) is not None:
        if tidied.written is not None:
            tally.count(tidied.written)
        progress(tally.rows, total)
    return tally


def show_sealed(sealer: Sealer, sealed: Tally, joined: Tally, as_json: bool) -> None:
    bytes_per_fact = round(sealed.bytes / sealed.rows, 2) if sealed.rows else 0.0
    view = {"lake": sealer.lake.root, "broker": sealer.broker, "sealed_lsn": sealer.sealed_lsn}
    view |= {"rows": sealed.rows, "files": sealed.files, "bytes": sealed.bytes, "bytes_per_fact": bytes_per_fact}
    view |= {"missed_facts": sealer.missed_facts}
    view |= {"history_rows": joined.rows, "history_files": joined.files, "history_bytes": joined.bytes}
    each = f" ({bytes_per_fact:g} bytes each)" if sealed.rows else ""
    what = f"{sealed.rows} facts in {sealed.files} files, {size(sealed.bytes)}{each}"
    lines = [f"{sealer.lake.root}: {what}; sealed up to fact {sealer.sealed_lsn}"]
    if joined.files:
        lines.append(f"{joined.rows} facts joined into {joined.files} files of history, {size(joined.bytes)}")
    if sealer.missed_facts:
        lines.append(f"{sealer.missed_facts} facts had left the journal before they were sealed")
    print_result(view, as_json, *lines)
