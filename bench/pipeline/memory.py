"""The peak memory of a process and all its children: Spark's is Python and Java together."""

from __future__ import annotations

import os
import threading
from pathlib import Path

EVERY_S = 0.1
MB = 1_000_000
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Peak:
    """Looks at a process tree until told to stop; `mb` is the largest sum of resident memory seen."""

    def __init__(self, pid: int) -> None:
        self.mb = 0.0
        self._pid = pid
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> float:
        self._is_over.set()
        self._thread.join()
        return self.mb

    def _look(self) -> None:
        while not self._is_over.wait(EVERY_S):
            self.mb = max(self.mb, sum(_resident(pid) for pid in tree(self._pid)) / MB)


def tree(root: int) -> list[int]:
    """A process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:  # it ended
                continue
            children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0
