"""`dragoman seal`: write the journal's facts into the lake by hand."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import click

from dragoman.cli.admin_client import Progress
from dragoman.cli.options import data_option, json_option
from dragoman.cli.show import print_json, print_lines, progress_bar
from dragoman.model.phrases import size

if TYPE_CHECKING:
    from dragoman.lake.sealer import Sealer
    from dragoman.lake.writer import Bodies

JOURNAL: Final = "journal"
LAKE: Final = "lake"


@dataclass
class Tally:
    """Counts of the files, rows and bytes that one run wrote."""

    files: int = 0
    rows: int = 0
    bytes: int = 0

    @property
    def bytes_per_fact(self) -> float:
        return round(self.bytes / self.rows, 2) if self.rows else 0.0


@click.command()
@click.option(
    "--root", metavar="ROOT", help="The lake: a directory, or an address as s3://BUCKET/PATH. Default: DATA/lake."
)
@click.option(
    "--bodies",
    type=click.Choice(["none", "hash", "full"]),
    default="hash",
    show_default=True,
    help="What goes along of a message's body: its size, size and hash, or all.",
)
@click.option("--compact", is_flag=True, help="Then join all files of incoming into large ones of history.")
@data_option
@json_option
def seal(root: str | None, bodies: str, compact: bool, data: Path, as_json: bool) -> None:
    """Write the journal's facts into the lake, as Parquet, and stop.

    Goes on where the lake ends, up to the last fact that the journal knows to be safe on disk. `dragoman up` does this all the time
    where its lake is on: this is for a journal without a running broker, or for one that runs without a lake.
    """
    from dragoman.errors import JournalMisplaced
    from dragoman.journal.reader import JournalReader
    from dragoman.lake.sealer import Sealer, sealing_alone
    from dragoman.lake.store import Lake, Modes
    from dragoman.runtime.config import load

    directory = data / JOURNAL
    reader = JournalReader(str(directory))
    broker_id = reader.broker_id() if directory.is_dir() else None
    if broker_id is None:
        raise JournalMisplaced(f"{directory} holds no journal")
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
    show(sealer, sealed, joined, as_json)


def seal_all(sealer: Sealer, upto_lsn: int, progress: Progress) -> Tally:
    sealer.check_journal_end(upto_lsn)
    tally, first_lsn = Tally(), sealer.sealed_lsn
    while sealer.take(upto_lsn) or sealer.rows:
        for written in sealer.flush():
            count(tally, written.part.rows, written.size)
        progress(sealer.sealed_lsn - first_lsn, upto_lsn - first_lsn)
    return tally


def join_all(sealer: Sealer, progress: Progress) -> Tally:
    from dragoman.lake.compact import Compactor

    tally, compactor = Tally(), Compactor(sealer.lake, sealer.broker)
    total = compactor.waiting_rows
    while (tidied := compactor.step(time.time(), is_all=True)) is not None:
        if tidied.written is not None:
            count(tally, tidied.written.part.rows, tidied.written.size)
        progress(tally.rows, total)
    return tally


def count(tally: Tally, rows: int, bytes_: int) -> None:
    tally.files += 1
    tally.rows += rows
    tally.bytes += bytes_


def show(sealer: Sealer, sealed: Tally, joined: Tally, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "lake": sealer.lake.root,
                "broker": sealer.broker,
                "sealed_lsn": sealer.sealed_lsn,
                "rows": sealed.rows,
                "files": sealed.files,
                "bytes": sealed.bytes,
                "bytes_per_fact": sealed.bytes_per_fact,
                "missed_facts": sealer.missed_facts,
                "history_rows": joined.rows,
                "history_files": joined.files,
                "history_bytes": joined.bytes,
            }
        )
        return
    what = f"{sealed.rows} facts in {sealed.files} files, {size(sealed.bytes)}"
    each = f" ({sealed.bytes_per_fact:g} bytes each)" if sealed.rows else ""
    print_lines([f"{sealer.lake.root}: {what}{each}; sealed up to fact {sealer.sealed_lsn}"])
    if joined.files:
        print_lines([f"{joined.rows} facts joined into {joined.files} files of history, {size(joined.bytes)}"])
    if sealer.missed_facts:
        print_lines([f"{sealer.missed_facts} facts had left the journal before they were sealed"])
