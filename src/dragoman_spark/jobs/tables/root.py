"""The tables' root: a directory, or any address that Spark and pyarrow both reach.

Only small files go through this module; Spark writes the tables themselves.

A file written here appears complete or not at all: locally by a temporary name, a sync and a rename; in an object store because an
upload is visible when it is complete.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dragoman.errors import OutBusy, OutUnreachable

# The scheme of the same store for pyarrow and for Spark.
_FOR_SPARK: Final = (("s3://", "s3a://"),)
_LOCK: Final = ".lock"
_TEMPORARY: Final = "_tmp-"
_RENAMES: Final = frozenset({"local", "hdfs", "subtree", "py"})


def for_spark(root: str) -> str:
    """A root in Spark's form. A local path gets `file://`, else a cluster would look for it in its own file system."""
    if "://" not in root:
        return f"file://{Path(root).absolute()}"
    for ours, theirs in _FOR_SPARK:
        root = theirs + root.removeprefix(ours) if root.startswith(ours) else root
    return root.rstrip("/")


def for_arrow(root: str) -> str:
    """A root in pyarrow's form."""
    for ours, theirs in _FOR_SPARK:
        root = ours + root.removeprefix(theirs) if root.startswith(theirs) else root
    return root


@dataclass(frozen=True, slots=True)
class Written:
    """A Parquet file in the store."""

    name: str
    size: int
    written_ms: int
    footer: Any


class TableRoot:
    """The root of the tables; names below it are separated by `/`."""

    def __init__(self, address: str) -> None:
        from pyarrow import fs

        self.address = address
        self._fs: Any
        try:
            if "://" in address:
                self._fs, self._base = fs.FileSystem.from_uri(for_arrow(address))
            else:
                self._fs, self._base = fs.LocalFileSystem(), str(Path(address).absolute())
        except (OSError, ValueError, NotImplementedError) as error:
            raise OutUnreachable(address, str(error)) from error
        self._selector, self._is_folder, self._is_nothing = fs.FileSelector, fs.FileType.Directory, fs.FileType.NotFound
        self._has_renames = self._fs.type_name in _RENAMES
        self.is_local = self._fs.type_name == "local"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock out other writing commands. Only where locks exist: elsewhere the operator must not start two."""
        if not self.is_local:
            yield
            return
        Path(self._base).mkdir(parents=True, exist_ok=True)
        with Path(self.path(_LOCK)).open("w", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise OutBusy(self.address) from error
            yield

    def path(self, name: str) -> str:
        """The path for programs on this machine."""
        return f"{self._base}/{name}"

    def uri(self, name: str) -> str:
        """The address for Spark."""
        return f"{for_spark(self.address)}/{name}"

    def other_uri(self, name: str) -> str:
        """The address for programs other than Spark and pyarrow."""
        return self.path(name) if self.is_local else f"{for_arrow(self.address).rstrip('/')}/{name}"

    def read(self, name: str) -> bytes | None:
        """A file's bytes; None: there is none."""
        try:
            with self._fs.open_input_stream(self.path(name)) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OutUnreachable(self.address, str(error)) from error

    def write(self, name: str, data: bytes) -> None:
        folder, _, last = name.rpartition("/")
        try:
            self._fs.create_dir(self.path(folder), recursive=True)
            target = self.path(f"{folder}/{_TEMPORARY}{last}") if self._has_renames else self.path(name)
            with self._fs.open_output_stream(target) as stream:
                stream.write(data)
            if self._has_renames:
                self._sync(target)
                self._fs.move(target, self.path(name))
                self._sync(self.path(folder))
        except OSError as error:
            raise OutUnreachable(self.address, str(error)) from error

    def folders(self, name: str) -> list[str]:
        """Names of the folders right below `name`, sorted; empty if it does not exist."""
        return sorted(info.base_name for info in self._infos(name) if info.type == self._is_folder)

    def files(self, name: str) -> list[str]:
        """Names of the files right below `name`, sorted; empty if it does not exist."""
        return sorted(info.base_name for info in self._infos(name) if info.type != self._is_folder)

    def rows(self, name: str) -> int:
        """Rows of a folder of Parquet files, from their footers."""
        return sum(footer.num_rows for footer in self._footers(name))

    def parquet(self, name: str) -> list[Written]:
        """The Parquet files right below a folder."""
        from pyarrow import parquet

        infos = sorted(
            (one for one in self._infos(name) if one.base_name.endswith(".parquet")), key=lambda one: one.path
        )
        return [
            Written(
                one.base_name, one.size, one.mtime_ns // 1_000_000, parquet.read_metadata(one.path, filesystem=self._fs)
            )
            for one in infos
        ]

    def records(self, name: str) -> list[dict[str, Any]]:
        """The rows of a small folder of Parquet files."""
        from pyarrow import parquet

        tables = [parquet.read_table(path, filesystem=self._fs, partitioning=None) for path in self._parquet(name)]
        return [row for table in tables for row in table.to_pylist()]

    def values(self, name: str, column: str) -> set[Any]:
        """The values of one column of a small folder of Parquet files."""
        from pyarrow import parquet

        found: set[Any] = set()
        for path in self._parquet(name):
            rows = parquet.read_table(path, columns=[column], filesystem=self._fs, partitioning=None)
            found.update(rows[column].unique().to_pylist())
        return found

    def filled(self, name: str, column: str) -> int:
        """The number of rows of a folder of Parquet files with a value in a column, from their footers."""
        filled = 0
        for footer in self._footers(name):
            index = footer.schema.names.index(column)
            for n in range(footer.num_row_groups):
                group = footer.row_group(n)
                statistics = group.column(index).statistics
                # Without statistics it may be all of them.
                filled += group.num_rows - (statistics.null_count if statistics and statistics.has_null_count else 0)
        return filled

    def exists(self, name: str) -> bool:
        try:
            return bool(self._fs.get_file_info([self.path(name)])[0].type != self._is_nothing)
        except OSError as error:
            raise OutUnreachable(self.address, str(error)) from error

    def remove(self, name: str) -> None:
        """Remove a folder with its contents; nothing if it does not exist."""
        try:
            self._fs.delete_dir(self.path(name))
        except FileNotFoundError:
            return
        except OSError as error:
            if self.exists(name):
                raise OutUnreachable(self.address, str(error)) from error

    def _footers(self, name: str) -> list[Any]:
        from pyarrow import parquet

        return [parquet.read_metadata(path, filesystem=self._fs) for path in self._parquet(name)]

    def _parquet(self, name: str) -> list[str]:
        return [self.path(f"{name}/{file}") for file in self.files(name) if file.endswith(".parquet")]

    def _infos(self, name: str) -> list[Any]:
        try:
            return list(self._fs.get_file_info(self._selector(self.path(name), allow_not_found=True)))
        except OSError as error:
            raise OutUnreachable(self.address, str(error)) from error

    def _sync(self, path: str) -> None:
        if self.is_local:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
