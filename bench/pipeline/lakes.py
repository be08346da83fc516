"""The lakes that are measured: made by `dragoman generate`, from the same seed, once; kept for the next run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

SEED = 1
GENERATE_S = 4 * 3600.0


def default_root() -> Path:
    """Outside the tree: 50 million facts are a gigabyte."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "dragoman-bench"


def lake(root: Path, facts: int, is_incoming: bool, said: Callable[[str], None]) -> Path:
    """A lake of so many facts: in large history files, or in small ones as a running sealer writes them."""
    path = root / f"facts-{facts}{'-incoming' if is_incoming else ''}-seed-{SEED}"
    if path.exists():
        return path
    said(f"making a lake of {facts:,} facts (once)")
    root.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"_{path.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    command = [sys.executable, "-m", "dragoman", "generate", "--facts", str(facts), "--seed", str(SEED)]
    command += ["--out", str(unfinished), *(["--incoming"] if is_incoming else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GENERATE_S)
    if done.returncode != 0:
        raise RuntimeError(f"dragoman generate failed: {done.stderr.strip()[-2000:]}")
    unfinished.rename(path)
    return path


def bytes_per_fact(path: Path, facts: int) -> float:
    """What a fact takes on disk."""
    return sum(file.stat().st_size for file in path.rglob("*.parquet")) / facts
