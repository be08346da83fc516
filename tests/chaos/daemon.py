"""The real broker process, to be killed and started again on the same data and the same ports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from dragoman.cli.ports import lasting_addresses
from dragoman.runtime.config.listeners import LISTENERS

START_S_MAX = 30.0
STOP_S_MAX = 30.0


class Daemon:
    """`start` returns once it listens."""

    def __init__(self, data: Path, durability: str, settings: tuple[str, ...] = (), http: str = "off") -> None:
        self.data, self.durability, self.settings = data, durability, settings
        self.addresses = lasting_addresses(LISTENERS) | {"http": http}
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.log = data.parent / f"{data.name}.log"

    def start(self) -> None:
        card = self.data / "broker.json"
        card.unlink(missing_ok=True)
        command = [sys.executable, "-m", "dragoman", "up", "--data", str(self.data), "--durability", self.durability]
        command += ["--set", "lake.mode=off"]
        for setting in self.settings:
            command += ["--set", setting]
        for name, address in self.addresses.items():
            command += ["--listen", f"{name}={address}"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline_s = time.monotonic() + START_S_MAX
        while not card.exists():
            if self.process.poll() is not None or time.monotonic() > deadline_s:
                raise RuntimeError(f"the broker does not start:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.01)
        self.addresses |= json.loads(card.read_text())["listeners"]
        self.starts += 1

    def port(self, name: str) -> int:
        return int(self.addresses[name].rpartition(":")[2])

    def kill(self) -> None:
        """kill -9, at once."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(STOP_S_MAX)
