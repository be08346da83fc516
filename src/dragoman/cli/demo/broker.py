"""The demo's broker: a separate process, so that it can be killed, with free ports and a temporary data directory."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from dragoman.cli.admin_client import ask
from dragoman.cli.ports import lasting_addresses
from dragoman.client.address import BROKER_FILE
from dragoman.errors import AdminUnreachable, BrokerUnreachable
from dragoman.runtime.config.listeners import LISTENERS

START_S: Final = 20.0
STOP_S: Final = 15.0
LOOK_S: Final = 0.02


class Broker:
    """A broker process that listens on the same ports after a restart, so that its peers find it."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.listen = lasting_addresses(LISTENERS) | {"http": "off"}
        self.log = data.parent / "broker.log"
        self.process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start the process and wait until it listens."""
        process = self.launch()
        ends = time.monotonic() + START_S
        while self.card().get("pid") != process.pid:
            if process.poll() is not None:
                raise BrokerUnreachable(str(self.data), START_S, self.log.read_text(errors="replace"))
            if time.monotonic() > ends:
                raise BrokerUnreachable(str(self.data), START_S, "it does not listen yet")
            await asyncio.sleep(LOOK_S)
        self.listen |= self.card()["listeners"]

    def launch(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dragoman", "up", "--data", str(self.data), "--durability", "os"]
        command += [f"--listen={name}={address}" for name, address in self.listen.items()]
        with self.log.open("ab") as log:
            # A separate session: Ctrl-C ends only the demo, and the demo ends the broker.
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        return self.process

    def card(self) -> dict[str, Any]:
        """The contents of its broker file; empty before it is written."""
        try:
            card: dict[str, Any] = json.loads((self.data / BROKER_FILE).read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return card

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def kill(self) -> None:
        """Send SIGKILL and wait for the process to end."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    async def counters(self) -> dict[str, Any]:
        """The broker's counters; empty while it does not respond."""
        try:
            counters: dict[str, Any] = await asyncio.to_thread(ask, self.data, "counters")
        except AdminUnreachable:
            return {}
        return counters

    def end(self) -> None:
        """Stop the process, whatever its state."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
