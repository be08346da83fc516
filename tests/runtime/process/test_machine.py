"""How much memory this process may use, as the machine and its control groups say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from dragoman.limits import MEMORY_SHARE_MAX
from dragoman.runtime.memory import default_size
from dragoman.runtime.process import machine

GIB = 2**30


def written(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


MEMINFO = {"proc__meminfo": f"MemTotal:       {8 * GIB // 1024} kB\nMemFree: 1 kB\n"}


def test_without_control_groups_it_is_the_machine_s(tmp_path: Path) -> None:
    assert machine.memory_size(written(tmp_path, **MEMINFO)) == 8 * GIB


def test_nothing_known_is_nothing(tmp_path: Path) -> None:
    assert machine.memory_size(tmp_path) == 0
    written(tmp_path, proc__meminfo="MemTotal: much\n", proc__self__cgroup="rubbish\n")
    assert machine.memory_size(tmp_path) == 0


def test_a_group_of_version_2_and_those_around_it_bound_it(tmp_path: Path) -> None:
    written(
        tmp_path,
        **MEMINFO,
        proc__self__cgroup="0::/slice/unit\n",
        sys__fs__cgroup__slice__unit__memory_DOT_max="max\n",
        sys__fs__cgroup__slice__memory_DOT_max=f"{2 * GIB}\n",
    )
    assert machine.memory_size(tmp_path) == 2 * GIB


def test_a_group_of_version_1_bounds_it_also_where_its_path_is_the_host_s(tmp_path: Path) -> None:
    written(
        tmp_path,
        **MEMINFO,
        proc__self__cgroup="5:cpu,cpuacct:/\n4:memory:/docker/abc\n",
        sys__fs__cgroup__memory__memory_DOT_limit_in_bytes=f"{GIB}\n",
    )
    assert machine.memory_size(tmp_path) == GIB


def test_the_huge_number_of_a_group_without_a_bound_is_none(tmp_path: Path) -> None:
    written(
        tmp_path,
        **MEMINFO,
        proc__self__cgroup="4:memory:/\n",
        sys__fs__cgroup__memory__memory_DOT_limit_in_bytes="9223372036854771712\n",
    )
    assert machine.memory_size(tmp_path) == 8 * GIB


def test_the_default_budget_is_a_quarter_and_at_most_four_gib() -> None:
    assert default_size() == min(machine.memory_size() // 4, MEMORY_SHARE_MAX)


# Bodies of a flood, freed, with small objects that live on between them: in a process of its own, whose memory nothing else uses.
FREED_BETWEEN = """
from dragoman.runtime.process.machine import resident_size, return_free_memory
kept = []
for _ in range(3):  # the first large blocks are mapped by themselves; once some were freed, they share the heap
    bodies = []
    for number in range(200):
        bodies.append(bytes(1_000_000))
        kept.append(bytes(1000 + number))
    del bodies
before = resident_size()
return_free_memory()
print(before, resident_size())
"""


def test_memory_freed_between_objects_that_live_on_goes_back_to_the_system() -> None:
    ran = subprocess.run([sys.executable, "-c", FREED_BETWEEN], capture_output=True, text=True, check=True)
    before, after = map(int, ran.stdout.split())
    assert before > 150_000_000
    assert after < 80_000_000


RSS_OF_FREED = """
from dragoman.runtime.process.machine import map_large_blocks, resident_size
{call}
freed = bytearray(b"z") * (30 << 20)
del freed
large, small = [], []
for _ in range(200):
    large.append(bytearray(b"x") * (1 << 20))
    small.append(bytes(5000))
large.clear()
print(resident_size())
"""


def test_large_blocks_are_returned_to_the_system_when_they_are_freed() -> None:
    command = [sys.executable, "-c", RSS_OF_FREED.format(call="map_large_blocks()")]
    left_size = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert left_size < 100 << 20, "200 MiB were freed, between small blocks that are still used"
