"""The broker under test: dragoman, or (to prove the harness itself) the original router and publisher."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from dragoman.cli.ports import lasting_addresses
from dragoman.runtime.config.listeners import LISTENERS
from tests.eventmq.programs import Program
from tests.waiting import wait_for

START_S = 60.0
ORIGINAL = os.environ.get("DRAGOMAN_TEST_ORIGINAL_ROUTER") == "1"
beyond_the_original = pytest.mark.skipif(ORIGINAL, reason="EventMQ's own router cannot do this")


class Dragoman:
    """`dragoman up` on one data directory; restarted it takes the same ports."""

    def __init__(self, data: Path, *settings: str) -> None:
        self.data = data
        self.settings = settings
        self.listeners = lasting_addresses(LISTENERS) | {"http": "off"}
        self.start()

    def start(self) -> None:
        told = self.data / "broker.json"
        told.unlink(missing_ok=True)  # what a killed broker left says nothing about the next one
        command = [sys.executable, "-m", "dragoman", "up", "--data", str(self.data)]
        for name, address in self.listeners.items():
            command += ["--listen", f"{name}={address}"]
        for setting in ("lake.mode=off", *self.settings):
            command += ["--set", setting]
        self.program = Program("broker", command, dict(os.environ), self.data.parent / "logs")

        def look() -> bool:
            assert self.program.is_running(), f"the broker ended:\n{self.program.log()}"
            return told.exists()

        try:
            wait_for("broker.json", look, START_S)
        except AssertionError:
            self.program.kill_group()
            raise
        self.listeners = json.loads(told.read_text())["listeners"]

    def kill(self) -> None:
        self.program.kill_group()

    def log(self) -> str:
        return self.program.log()


class Original:
    """`emq-router` and `emq-pubsub`. They keep nothing, so there is nothing to restart."""

    def __init__(self, environment: Path, data: Path) -> None:
        data.mkdir(parents=True, exist_ok=True)
        self.listeners = lasting_addresses(LISTENERS)
        config = data / "router.conf"
        config.write_text(
            "[global]\n"
            f"frontend_addr = {self.listeners['emqp.client']}\n"
            f"backend_addr = {self.listeners['emqp.worker']}\n"
            f"administrative_addr = {self.listeners['emqp.admin']}\n"
            f"wal = {data / 'wal.log'}\n"
            "[publisher]\n"
            f"publisher_incoming_addr = {self.listeners['emqp.publish']}\n"
            f"publisher_outgoing_addr = {self.listeners['emqp.subscribe']}\n"
        )
        env = {**os.environ, "EVENTMQ_CONFIG_FILE": str(config)}
        python, logs = str(environment / "python"), data.parent / "logs"
        self.program = Program("router", [python, str(environment / "emq-router")], env, logs)
        self.publisher = Program("pubsub", [python, str(environment / "emq-pubsub")], env, logs)

    def kill(self) -> None:
        self.program.kill_group()
        self.publisher.kill_group()

    def log(self) -> str:
        return self.program.log() + self.publisher.log()
