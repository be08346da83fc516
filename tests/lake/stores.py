"""A lake's file system that dies at a chosen step: before it, in the middle of it or behind it."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from dragoman.lake.store import Lake


class Died(Exception):
    """The process is gone: nobody catches this but the test."""


class LastWrite(io.RawIOBase):
    """Takes one write: half of it reaches the disk, or all; then the process dies."""

    def __init__(self, path: str, is_whole: bool) -> None:
        super().__init__()
        self._path, self._is_whole = Path(path), is_whole

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        raw = bytes(data)
        self._path.write_bytes(raw if self._is_whole else raw[: len(raw) // 2])
        raise Died("write")


class MortalFiles(fs.FileSystemHandler):  # type: ignore[misc]
    """The local disk until step `dies_at` (counted from 1; 0: never). A step changes something: making a directory, writing,
    renaming, deleting. `when`: `before`, `torn` (only a write can be) or `after`."""

    def __init__(self, dies_at: int = 0, when: str = "before") -> None:
        self._files = fs.LocalFileSystem()
        self._dies_at, self._when = dies_at, when
        self.steps: list[str] = []

    def _step(self, name: str, act: Callable[[], Any]) -> Any:
        self.steps.append(name)
        dies = len(self.steps) == self._dies_at
        if dies and self._when == "before":
            raise Died(name)
        result = act()
        if dies and self._when == "after":
            raise Died(name)
        return result

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        self.steps.append("write")
        if len(self.steps) != self._dies_at:
            return self._files.open_output_stream(path)
        if self._when == "before":
            raise Died("write")
        return pa.PythonFile(LastWrite(path, self._when == "after"), mode="w")

    def create_dir(self, path: str, recursive: bool) -> None:
        self._step("create_dir", lambda: self._files.create_dir(path, recursive=recursive))

    def move(self, src: str, dest: str) -> None:
        self._step("move", lambda: self._files.move(src, dest))

    def delete_file(self, path: str) -> None:
        self._step("delete_file", lambda: self._files.delete_file(path))

    def get_type_name(self) -> str:
        return "mortal"

    def get_file_info(self, paths: list[str]) -> Any:
        return self._files.get_file_info(paths)

    def get_file_info_selector(self, selector: Any) -> Any:
        return self._files.get_file_info(selector)

    def open_input_stream(self, path: str) -> Any:
        return self._files.open_input_stream(path)

    def open_input_file(self, path: str) -> Any:
        return self._files.open_input_file(path)

    def normalize_path(self, path: str) -> str:
        return str(self._files.normalize_path(path))

    def copy_file(self, src: str, dest: str) -> None:
        raise NotImplementedError

    def delete_dir(self, path: str) -> None:
        raise NotImplementedError

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        raise NotImplementedError

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        raise NotImplementedError


def mortal_lake(root: Path, dies_at: int = 0, when: str = "before") -> tuple[Lake, MortalFiles]:
    handler = MortalFiles(dies_at, when)
    return Lake(str(root), fs.PyFileSystem(handler)), handler
