"""Brokers of a test's own, ended with it; and one that quick tests share."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.daemon import Daemon

NewBroker = Callable[..., Daemon]
DISK_SIZE = 2 * 2**20


@pytest.fixture
def new_broker(tmp_path: Path) -> Iterator[NewBroker]:
    """Makes a broker that is not yet started."""
    made: list[Daemon] = []

    def make(*settings: str, data: Path | None = None, **options: Any) -> Daemon:
        name = f"data{len(made)}"
        # Never on a test's small disk: a log line is cut there, too.
        options = {"logs": tmp_path / "logs" / name} | options
        made.append(Daemon(data or tmp_path / name, *settings, **options))
        return made[-1]

    yield make
    for broker in made:
        if broker.program is not None:
            broker.kill()


@pytest.fixture
def broker(new_broker: NewBroker) -> Daemon:
    """A running one, on its defaults but for free ports and a journal that is not synced."""
    return new_broker().start()


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One that the tests of a file share: queues have names of their own there."""
    broker = Daemon(tmp_path_factory.mktemp("common") / "data").start()
    yield broker
    broker.kill()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB, in a mount namespace that a process of ours holds open."""
    place = tmp_path / "disk"
    place.mkdir()
    script = f'mount -t tmpfs -o size={DISK_SIZE} none "$0" && echo mounted && exec sleep 600'
    holder = subprocess.Popen(["unshare", "-rm", "sh", "-c", script, place], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    try:
        if holder.stdout.readline() != b"mounted\n":
            pytest.skip("this machine lets nobody mount a tmpfs of their own")
        yield Path(f"/proc/{holder.pid}/root{place}")
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
