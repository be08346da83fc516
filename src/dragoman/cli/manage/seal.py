"""`dragoman seal`: write the journal's facts into the lake by hand."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import click
from click import Choice, option

from dragoman.cli.admin_client import Progress
from dragoman.cli.options import common_options
from dragoman.cli.show import print_result, progress_bar
from dragoman.model.phrases import size

if TYPE_CHECKING:
    from dragoman.lake.sealer import Sealer
    from dragoman.lake.writer import Bodies, Written

JOURNAL: Final = "journal"
LAKE: Final = "lake"


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
    from dragoman.errors import JournalMisplaced
    from dragoman.journal import JournalReader
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


def show(sealer: Sealer, sealed: Tally, joined: Tally, as_json: bool) -> None:
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
