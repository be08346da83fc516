"""A broker of the demo and of a bench: a separate process, so that it can be killed, with free ports."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from dragoman.cli.ports import lasting_addresses
from dragoman.client.address import BROKER_FILE
from dragoman.errors import BrokerUnreachable
from dragoman.runtime.config.listeners import LISTENERS

START_S: Final = 20.0
STOP_S: Final = 15.0
LOOK_S: Final = 0.02


class BrokerProcess:
    """A broker process that listens on the same ports after a restart, so that its peers find it."""

    def __init__(self, data: Path, durability: str, *settings: str) -> None:
        self.data = data
        self.listen = lasting_addresses(LISTENERS) | {"http": "off"}
        self.log = data.parent / "broker.log"
        self.process: subprocess.Popen[bytes] | None = None
        self._flags = ["--durability", durability, *(f"--set={setting}" for setting in settings)]

    def start(self) -> None:
        """Start the process and wait until it listens."""
        command = [sys.executable, "-m", "dragoman", "up", "--data", str(self.data), *self._flags]
        command += [f"--listen={name}={address}" for name, address in self.listen.items()]
        with self.log.open("ab") as log:
            # A separate session: Ctrl-C ends only this program, which then ends the broker.
            self.process = process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        ends = time.monotonic() + START_S
        while self.broker_file().get("pid") != process.pid:
            if process.poll() is not None:
                raise BrokerUnreachable(str(self.data), START_S, self.log.read_text(errors="replace"))
            if time.monotonic() > ends:
                raise BrokerUnreachable(str(self.data), START_S, "it does not listen yet")
            time.sleep(LOOK_S)
        self.listen |= self.broker_file()["listeners"]

    def broker_file(self) -> dict[str, Any]:
        """The contents of its broker.json; empty before it is written."""
        try:
            content: dict[str, Any] = json.loads((self.data / BROKER_FILE).read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return content

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def kill(self) -> None:
        """Send SIGKILL and wait for the process to end."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Stop the process, whatever its state."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
