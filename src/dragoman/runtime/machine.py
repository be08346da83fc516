"""What the machine has for this process: memory, as far as its control group lets it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path, PurePosixPath

ROOT = Path("/")


def memory_size(root: Path = ROOT) -> int:
    """Bytes of memory this process may use: the machine's, or less where a control group (v1 or v2) around it says so; 0: unknown."""
    bounds = [*_of_machine(root), *_of_groups(root)]
    return min(bounds, default=0)


def _of_machine(root: Path) -> list[int]:
    with suppress(OSError, ValueError, IndexError):
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemTotal:"):
                return [int(line.split()[1]) * 1024]
    return []


def _of_groups(root: Path) -> list[int]:
    """The bounds of every group this process is in, and of those around them."""
    bounds: list[int] = []
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return bounds
    for line in lines:
        _, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        if not controllers:
            folder, file = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            folder, file = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        # In a container the path may be the host's: what is not there is passed over, and the root is the container's own group.
        within = PurePosixPath("/", path).relative_to("/")
        for group in (within, *within.parents):
            with suppress(OSError, ValueError):  # "max", or no such file
                bounds.append(int((folder / group / file).read_text()))
    return bounds
