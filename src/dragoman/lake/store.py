"""The lake as a store of files: a directory, or any address that pyarrow's file systems support (s3://, gs://, abfs://, hdfs://).

A file appears complete or not at all. It is built in memory first (files of the lake are small); then, where there is a rename, written
under a temporary name, synced if the disk is local, and renamed. Object stores have no rename, and need none: an object becomes
visible when its upload is complete, so it is put under its final name. A second put of the same name replaces the first with the
same rows, so a writer that died between the put and its report may repeat it.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dragoman.errors import LakeDamaged, LakeTooNew, LakeUnreachable, PyarrowMissing
from dragoman.lake import layout, schema
from dragoman.lake.layout import HISTORY, INCOMING, Part, Share, Tier
from dragoman.limits import LAKE_DIRECTORY_MODE, LAKE_FILE_MODE

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import fs

TIERS: Final[tuple[Tier, ...]] = (INCOMING, HISTORY)
# Their uploads are atomic, and a rename would be a copy.
_OBJECT_STORES: Final = frozenset({"s3", "gcs", "abfs"})


@dataclass(frozen=True, slots=True)
class Stored:
    """A part that exists."""

    part: Part
    tier: Tier
    size: int
    modified_s: float


@dataclass(frozen=True, slots=True)
class Modes:
    """Permissions of the files and directories of a local lake."""

    file: int = LAKE_FILE_MODE
    directory: int = LAKE_DIRECTORY_MODE


class Lake:
    """One lake, by its root. Every failure of the store raises LAKE_UNREACHABLE with the store's own text."""

    def __init__(self, root: str, filesystem: fs.FileSystem | None = None, modes: Modes | None = None) -> None:
        """`filesystem`: a prepared one (with its own credentials, for example), in which `root` is a path. `modes`: permissions of new
        files on a local file system; None: the umask decides."""
        self.root = root
        self._modes = modes
        try:
            from pyarrow import fs
        except ImportError as error:
            raise PyarrowMissing from error
        self._selector = fs.FileSelector
        self._is_file = fs.FileType.File
        with self._storing((OSError, ValueError, NotImplementedError)):
            if filesystem is not None:
                self._fs, self._base = filesystem, root
            elif "://" in root:
                self._fs, self._base = fs.FileSystem.from_uri(root)
            else:
                self._fs, self._base = fs.LocalFileSystem(), str(Path(root).absolute())
        self._base = self._base.rstrip("/") or "/"
        self.is_local = self._fs.type_name == "local"

    def path(self, part: Part, tier: Tier) -> str:
        """The path in the file system; for a local lake an absolute path."""
        return f"{self._base}/{part.path(tier)}"

    def stored(self, tier: Tier, broker: str | None = None) -> list[Stored]:
        """Parts on a tier, sorted; of one broker or of all."""
        found = []
        for info in self._infos(tier):
            part = layout.parse(info.path)
            if part is not None and (broker is None or part.broker == broker):
                found.append(Stored(part, tier, info.size, info.mtime_ns / 1e9 if info.mtime_ns else 0.0))
        return sorted(found, key=lambda stored: stored.part)

    def parts(self, tier: Tier, broker: str | None = None) -> list[Part]:
        return [stored.part for stored in self.stored(tier, broker)]

    def last_lsn(self, broker: str) -> int:
        """The highest lsn of a broker in the lake; 0: none."""
        return max((part.last_lsn for tier in TIERS for part in self.parts(tier, broker)), default=0)

    def remove_temporary(self, broker: str) -> int:
        """Remove the temporary files of a writer of this broker that died; return their number."""
        left = [
            info.path
            for tier in TIERS
            for info in self._infos(tier)
            if info.base_name.startswith(f"{layout.TEMPORARY}{broker}-")
        ]
        for path in left:
            self._delete(path)
        return len(left)

    def put(self, part: Part, tier: Tier, data: pyarrow.Buffer) -> None:
        """Store a whole file under the part's name."""
        target = self.path(part, tier)
        directory = target.rpartition("/")[0]
        with self._storing():
            self._make_directory(directory)
            if self._fs.type_name in _OBJECT_STORES:
                self._write(target, data)
                return
            temporary = f"{directory}/{layout.TEMPORARY}{part.name}"
            self._write(temporary, data)
            if self.is_local:
                if self._modes is not None:
                    Path(temporary).chmod(self._modes.file)
                _sync(temporary)
            self._fs.move(temporary, target)
            if self.is_local:
                _sync(directory)

    def copy(self, part: Part, source: Tier, target: Tier) -> None:
        """Copy a part's file to another tier."""
        with self._storing(), self._fs.open_input_stream(self.path(part, source)) as stream:
            data = stream.read_buffer()
        self.put(part, target, data)

    def delete(self, part: Part, tier: Tier) -> None:
        self._delete(self.path(part, tier))

    def remove_empty(self, date: datetime.date, tier: Tier) -> None:
        """Remove a date's directory if it is empty. Object stores have no directories."""
        if self.is_local:
            with suppress(OSError):
                Path(f"{self._base}/{layout.FACTS}/{tier}/{layout.DATE_KEY}{date.isoformat()}").rmdir()

    def read(self, part: Part, tier: Tier) -> pyarrow.Table:
        """A part's rows. Raises for a file of a later schema, or with other rows than its name says."""
        from pyarrow import parquet

        path = self.path(part, tier)
        with self._reading(path), parquet.ParquetFile(path, filesystem=self._fs) as file:
            check_version(path, file.schema_arrow.metadata)
            table = file.read()
        _check_rows(path, part, table.num_rows)
        return table

    def select(
        self, share: Share, filters: list[dict[str, set[Any]]], columns: list[str] | None = None
    ) -> list[dict[str, Any]]:
        """The rows of a share that match any filter: each column named in it has one of the given values. Row groups without a match are not read."""
        import pyarrow.dataset as ds

        path = self.path(share.part, share.tier)
        in_share = (ds.field("lsn") >= share.first_lsn) & (ds.field("lsn") <= share.last_lsn)
        matches = [
            reduce(and_, (ds.field(name).isin(sorted(values)) for name, values in one.items())) for one in filters
        ]
        with self._reading(path):
            source = ds.dataset(path, format="parquet", filesystem=self._fs)
            check_version(path, source.schema.metadata)
            found: list[dict[str, Any]] = source.to_table(columns, in_share & reduce(or_, matches)).to_pylist()
        return found

    def span(self, part: Part, tier: Tier) -> tuple[datetime.datetime, datetime.datetime] | None:
        """The earliest and the latest instant of a part's facts, from its footer: no row is read. None: the file is gone."""
        from pyarrow import parquet

        path = self.path(part, tier)
        with self._reading(path):
            try:
                footer = parquet.read_metadata(path, filesystem=self._fs)
            except FileNotFoundError:
                return None
        check_version(path, footer.metadata)
        _check_rows(path, part, footer.num_rows)
        instants = footer.schema.names.index("at")
        ranges = [footer.row_group(n).column(instants).statistics for n in range(footer.num_row_groups)]
        if not all(one is not None and one.has_min_max for one in ranges):
            raise LakeDamaged(path, "its footer does not say from when to when its facts are")
        first, last = min(one.min for one in ranges), max(one.max for one in ranges)
        return first.astimezone(datetime.UTC), last.astimezone(datetime.UTC)

    @contextmanager
    def _reading(self, path: str) -> Iterator[None]:
        """Convert errors inside to LakeDamaged (the file's fault) or LakeUnreachable (the store's)."""
        from pyarrow import ArrowInvalid

        try:
            yield
        except (ArrowInvalid, OSError) as error:
            # Arrow reports an invalid footer as an I/O error.
            if isinstance(error, ArrowInvalid) or "thrift" in str(error).lower():
                raise LakeDamaged(path, _first_line(error)) from error
            raise LakeUnreachable(self.root, _first_line(error)) from error

    @contextmanager
    def _storing(self, errors: tuple[type[Exception], ...] = (OSError,)) -> Iterator[None]:
        """Convert these errors of the store to LakeUnreachable."""
        try:
            yield
        except errors as error:
            raise LakeUnreachable(self.root, _first_line(error)) from error

    def _make_directory(self, path: str) -> None:
        """Create a directory and its parents; the root and directories inside it get the lake's own mode if they are created here."""
        if not self.is_local or self._modes is None:
            self._fs.create_dir(path, recursive=True)
            return
        Path(self._base).parent.mkdir(parents=True, exist_ok=True)
        wanted, root = Path(path), Path(self._base)
        for made in reversed([one for one in (wanted, *wanted.parents) if one.is_relative_to(root)]):
            with suppress(FileExistsError):
                made.mkdir(0o700)
                made.chmod(self._modes.directory)  # not by `mkdir`: the umask would clear bits

    def _infos(self, tier: Tier) -> list[Any]:
        with self._storing():
            selector = self._selector(f"{self._base}/{layout.FACTS}/{tier}", recursive=True, allow_not_found=True)
            return [info for info in self._fs.get_file_info(selector) if info.type == self._is_file]

    def _write(self, path: str, data: pyarrow.Buffer) -> None:
        with self._fs.open_output_stream(path) as stream:
            stream.write(data)

    def _delete(self, path: str) -> None:
        # Another process may have deleted it first, or this is the second attempt after a crash.
        with self._storing(), suppress(FileNotFoundError):
            self._fs.delete_file(path)


def check_version(path: str, metadata: dict[bytes, bytes] | None) -> None:
    """Raise for a file of a later schema. A file without a version was not written by dragoman."""
    version = (metadata or {}).get(schema.VERSION_KEY.encode(), b"")
    if not version.isdigit():
        raise LakeDamaged(path, "it does not say its schema version")
    if int(version) > schema.VERSION:
        raise LakeTooNew(path, int(version), schema.VERSION)


def _check_rows(path: str, part: Part, rows: int) -> None:
    if rows != part.rows:
        raise LakeDamaged(path, f"it has {rows} rows, its name says {part.rows}")


def _sync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _first_line(error: Exception) -> str:
    """The first line of an error's text: Arrow appends details of its own sources."""
    return (str(error).splitlines() or [type(error).__name__])[0]
