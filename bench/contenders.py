"""The contenders: each is a process of its own that says where it listens and is ended by its own pid."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.dialogues import EMQP, LOOP, PROXY, Dialogue
from dragoman.runtime.config.listeners import ALL_LISTENERS, HTTP

ROOT = Path(__file__).parent.parent
START_S = 60.0  # a broker that recovers ten million messages may take a while
STOP_S = 20.0


class ContenderFailed(RuntimeError):
    """A contender did not start, or ended on its own."""


@dataclass
class Running:
    """A started contender."""

    name: str
    mode: str  # the endpoint's --mode
    process: subprocess.Popen[str]
    pid: int  # the process whose processor time counts
    client_address: str
    worker_address: str
    data: Path | None = None
    started_s: float = 0.0  # from spawn to listening
    keep_data: bool = field(default=False)

    def kill(self) -> None:
        """End at once, as a power cut of the process would."""
        self.process.kill()
        self.process.wait(STOP_S)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()
        if self.data is not None and not self.keep_data:
            shutil.rmtree(self.data, ignore_errors=True)


def start_module(name: str, module: str, mode: str) -> Running:
    """Start one of the yardsticks: a module here that prints its addresses as JSON."""
    process = subprocess.Popen([sys.executable, "-m", module], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise ContenderFailed(f"{name} did not start")
    addresses = json.loads(line)
    return Running(name, mode, process, process.pid, addresses["client"], addresses["worker"])


def start_broker(
    durability: str,
    data_root: Path,
    data: Path | None = None,
    dialogue: Dialogue = EMQP,
    lake: str = "off",
    *,
    has_page: bool = False,
    is_indexed: bool = False,
    python: str = sys.executable,
    prefix: list[str] | None = None,
) -> Running:
    """Start `dragoman up` on a fresh directory below `data_root`, or again on `data`, with the listeners of one dialogue, and the web page
    and the journal's index if asked for; return once it listens. `python`: the interpreter of the environment whose build is to run; `prefix`: a program
    to run it under."""
    keep_data = data is not None
    if data is None:
        data_root.mkdir(parents=True, exist_ok=True)
        data = Path(tempfile.mkdtemp(prefix=f"{durability}-", dir=data_root))
    file = data / "broker.json"
    file.unlink(missing_ok=True)  # a killed broker leaves its own behind
    wanted = {*dialogue.listeners, HTTP} if has_page else set(dialogue.listeners)
    listen = [f"{name}={'tcp://127.0.0.1:0' if name in wanted else 'off'}" for name in ALL_LISTENERS]
    command = [*(prefix or []), python, "-m", "dragoman", "up", "--data", str(data), "--durability", durability]
    command += ["--set", f"lake.mode={lake}", "--set", f"journal.index={'auto' if is_indexed else 'off'}"]
    command += [part for value in listen for part in ("--listen", value)]
    begun = time.monotonic()
    with (data / "bench.log").open("a") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, text=True)
    while not file.exists():
        if process.poll() is not None or time.monotonic() - begun > START_S:
            process.kill()
            tail = (data / "bench.log").read_text()[-2000:]
            raise ContenderFailed(f"dragoman up --durability {durability} did not start:\n{tail}")
        time.sleep(0.002)
    started_s = time.monotonic() - begun
    about = json.loads(file.read_text())
    listeners = about["listeners"]
    client, worker = listeners[dialogue.client], listeners[dialogue.worker]
    return Running(durability, dialogue.mode, process, about["pid"], client, worker, data, started_s, keep_data)


@contextmanager
def fresh_broker(data_root: Path, *, lake: str = "off", is_indexed: bool = False) -> Iterator[Running]:
    """A broker of its own at `os`, gone afterwards."""
    broker = start_broker("os", data_root, lake=lake, is_indexed=is_indexed)
    try:
        yield broker
    finally:
        broker.stop()


def start(name: str, data_root: Path, dialogue: Dialogue) -> Running:
    if name == PROXY:
        return start_module(name, "bench.proxy", dialogue.proxy_mode)
    if name == LOOP:
        return start_module(name, "bench.pyzmq_loop", dialogue.mode)
    return start_broker(name, data_root, dialogue=dialogue)


def broker_flavour(python: str = sys.executable) -> str:
    """What `dragoman --version` says: the version, and whether the hot packages are compiled."""
    command = [python, "-m", "dragoman", "--version"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=os.environ)
    return done.stdout.strip() or "unknown"
