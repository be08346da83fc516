"""Journals to damage, each made by a real broker process under load.

A specimen is the files of one journal directory, how the broker was stopped, and the settings a broker needs to go on with it. Every body
carries a token of its own, so that a delivered body can be recognised and compared.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import zmq

from dragoman.client.app import App
from dragoman.client.worker import WorkerSettings
from dragoman.errors import Refused
from dragoman.journal.format import segment_name
from dragoman.journal.tools.backup import backup, restore
from dragoman.journal.tools.salvage import salvage
from dragoman.testing.broker import running_worker
from tests.chaos.daemon import Daemon

SEGMENT_SIZE = 65536
HEAD_MAX = 20
SIZE_MAX = 1 << 20  # what a load with ballast exceeds, so that records are carried and segments dropped
BALLAST_SIZE = 3_000  # of a settled job: what was done fills a journal, not what waits
FULL_S_MAX = 60.0
FOREIGN_NAME = "foreign.seg"
VERSION = b"eMQP/1.0"
WAITING_QUEUES = ("orders", "mail", "reports")
SETTINGS = (
    f"journal.segment_size={SEGMENT_SIZE}",
    f"queues.head_max={HEAD_MAX}",
    "queues.backoff_initial_s=1",
    "queues.quarantine_after=1",
)


@dataclass(frozen=True)
class Specimen:
    """`is_clean`: the broker was stopped in order, so every fact it ever wrote is named by what the stop left."""

    name: str
    files: dict[str, bytes]
    is_clean: bool


@dataclass(frozen=True)
class Journals:
    """`foreign`: a segment of another broker's journal."""

    specimens: list[Specimen]
    foreign: bytes


def make_specimens(directory: Path, seed: int) -> Journals:
    """Every kind of journal that a user may have."""
    stopped = _run(directory / "stopped", seed, "disk", 150, stop=Daemon.stop)
    killed = _run(directory / "killed", seed + 1, "os", 150, stop=Daemon.kill)
    full = _run(directory / "full", seed + 2, "os", 30, stop=Daemon.stop, size_max=SIZE_MAX)
    small = _run(directory / "small", seed + 3, "disk", 25, stop=Daemon.stop)
    foreign = _files(_run(directory / "foreign", seed + 4, "os", 10, stop=Daemon.stop))
    specimens = [
        Specimen("stopped", _files(stopped), True),
        Specimen("killed", _files(killed), False),
        Specimen("carried", _files(full), True),
        Specimen("one segment", _files(small), True),
        Specimen("restored", _restored(directory, stopped), True),
        Specimen("salvaged", _salvaged(directory, full, Random(seed)), True),
    ]
    return Journals(sorted(specimens, key=lambda specimen: specimen.name), foreign[segment_name(1)])


def save_specimens(journals: Journals, directory: Path) -> Path:
    """Keep journals, so that a trial can be run again on the same bytes."""
    for specimen in journals.specimens:
        where = directory / ("clean" if specimen.is_clean else "killed") / specimen.name
        where.mkdir(parents=True)
        for name, content in specimen.files.items():
            (where / name).write_bytes(content)
    (directory / FOREIGN_NAME).write_bytes(journals.foreign)
    return directory


def load_specimens(directory: Path) -> Journals:
    """In the order of their names: a seed means the same trial on the same journals."""
    found = [
        Specimen(where.name, {path.name: path.read_bytes() for path in sorted(where.iterdir())}, how == "clean")
        for how in ("clean", "killed")
        for where in sorted((directory / how).iterdir())
    ]
    return Journals(sorted(found, key=lambda specimen: specimen.name), (directory / FOREIGN_NAME).read_bytes())


def _run(
    data: Path, seed: int, durability: str, messages: int, *, stop: Callable[[Daemon], object], size_max: int = 0
) -> Path:
    settings = (*SETTINGS, f"journal.size_max={size_max}") if size_max else SETTINGS
    daemon = Daemon(data, durability, settings)
    daemon.start()
    try:
        asyncio.run(_load(data, Random(seed), messages, BALLAST_SIZE if size_max else 0))
        if size_max:
            _wait_until_gone(data / "journal" / segment_name(1))
    finally:
        stop(daemon)
    return data


def _wait_until_gone(segment: Path) -> None:
    """Its live records were carried forward, so it was dropped."""
    ends_s = time.monotonic() + FULL_S_MAX
    while segment.exists():
        assert time.monotonic() < ends_s, f"{segment.name} is never dropped"
        time.sleep(0.01)


async def _load(data: Path, chance: Random, messages: int, ballast_size: int) -> None:
    """Messages that wait in three queues, some delayed; a schedule; jobs that are done; jobs that are quarantined."""
    async with App(f"file:{data}") as app, App(f"file:{data}?dialect=rq") as rq:
        done = app.job(queue="done")(_length)
        with running_worker(app, WorkerSettings(slots=8)):
            for number in range(messages):
                await _send(app, rq, chance, number, is_small=ballast_size > 0)
                for _ in range(20 if ballast_size else number % 2):
                    with contextlib.suppress(Refused):
                        assert await done.ask("-" * ballast_size) == ballast_size
        for _ in range(3):
            await app.send("deadly", json.dumps(["run", {"token": token(chance)}]).encode())
            await asyncio.to_thread(_die_with_a_message, data)
        await app.every(3600, app.job(queue="reports")(_length), token(chance))


async def _send(app: App, rq: App, chance: Random, number: int, *, is_small: bool) -> None:
    queue, size = chance.choice(WAITING_QUEUES), chance.choice((0, 30, 200, 200, 3000))
    if number % 50 == 49 and not is_small:
        size = chance.choice((70_000, 150_000))  # larger than a segment
    body = json.dumps(["run", {"token": token(chance), "pad": chance.randbytes(size // 2).hex()}]).encode()
    headers = chance.choice(((), (), (), ("priority:5",), ("delay:3",), ("expires:86400",), (f"dedupe:{number}",)))
    ends_s = time.monotonic() + FULL_S_MAX
    while True:
        try:
            await (rq.send(queue, body) if number % 10 == 5 else app.send(queue, body, headers))
            return
        except Refused:  # full: until records are carried and segments dropped
            assert time.monotonic() < ends_s, "the journal stays full"
            await asyncio.sleep(0.05)


def token(chance: Random) -> str:
    return f"token-{chance.randrange(1 << 60):015x}"


def _length(text: str) -> int:
    return len(text)


def _die_with_a_message(data: Path) -> None:
    """A worker that takes one message and is gone: the broker quarantines what its workers die with."""
    listeners = json.loads((data / "broker.json").read_text())["listeners"]
    with zmq.Context() as context, context.socket(zmq.DEALER) as worker:
        worker.linger = 0
        worker.rcvtimeo = int(FULL_S_MAX * 1000)
        worker.connect(listeners["emqp.worker"])
        worker.send_multipart([b"", VERSION, b"INFORM", b"mortal", b'[[10,"deadly"]]', b"worker", b"bytes"])
        worker.send_multipart([b"", VERSION, b"READY", b"rd"])
        while worker.recv_multipart()[2] != b"REQUEST":
            pass


def _files(data: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((data / "journal").iterdir()) if path.is_file()}


def _restored(directory: Path, data: Path) -> dict[str, bytes]:
    backup(str(data), str(directory / "backup"))
    restore(str(directory / "backup"), str(directory / "restored"))
    return _files(directory / "restored")


def _salvaged(directory: Path, data: Path, chance: Random) -> dict[str, bytes]:
    """The result of a salvage after one byte in the middle was damaged."""
    source = directory / "damaged"
    shutil.copytree(data, source)
    segments = sorted((source / "journal").glob("*.seg"))
    path = segments[len(segments) // 2]
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content) // 2)] ^= 0xFF
    path.write_bytes(content)
    salvage(str(source / "journal"), str(directory / "salvaged" / "journal"))
    return _files(directory / "salvaged")
