"""`dragoman up` as an operator runs it: a process of its own, its flags, its log, its signals and its exit code."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from dragoman.cli.admin_client import ask
from dragoman.cli.ports import lasting_addresses
from dragoman.journal.reader import JournalReader
from dragoman.model.facts.decode import decode_block
from dragoman.runtime.config.listeners import LISTENERS
from tests.eventmq.programs import Program
from tests.waiting import wait_for

ZMTP_LISTENERS = [name for name in LISTENERS if name != "rq"]
SOCKET_TYPES = {
    "emqp.subscribe": b"SUB",
    "ebus.subscribe": b"SUB",
    "scale0.publish": b"SUB",
    "ebus.publish": b"PUB",
}  # of the peers that fit there; a DEALER does anywhere else
FREE = "tcp://127.0.0.1:0"  # stands for a port that is still there when the broker comes back
END_S = 60.0


class Daemon:
    """One data directory and the process that lives in it. Started again it keeps its ports, so that peers find it."""

    def __init__(
        self,
        data: Path,
        *settings: str,
        durability: str = "os",
        listen: dict[str, str] | None = None,
        flags: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        before: tuple[str, ...] = (),
        logs: Path | None = None,
    ) -> None:
        self.data = data
        listen = dict.fromkeys(LISTENERS, FREE) if listen is None else listen
        lasting = lasting_addresses(name for name, address in listen.items() if address == FREE)
        self.listen = {"http": "off"} | listen | lasting  # a test that wants the web page says so
        settings = ("lake.mode=off", *settings)  # a test that wants a lake says so
        self.flags = (f"--durability={durability}", *(f"--set={setting}" for setting in settings), *flags)
        self.env = os.environ | (env or {})
        self.logs = logs or data.parent / "logs"
        self.before = before  # the command that runs the broker's own
        self.program: Program | None = None

    def launch(self) -> Program:
        """Start the process and wait for nothing."""
        listen = [f"--listen={name}={address}" for name, address in self.listen.items()]
        command = [*self.before, sys.executable, "-m", "dragoman", "up", "--data", str(self.data), *listen, *self.flags]
        self.program = Program(self.data.name, command, self.env, self.logs)
        return self.program

    @property
    def process(self) -> Program:
        assert self.program is not None, "not started"
        return self.program

    @property
    def card_file(self) -> Path:
        return self.data / "broker.json"

    @property
    def card(self) -> dict[str, Any]:
        card = json.loads(self.card_file.read_text())
        assert isinstance(card, dict)
        return card

    def start(self) -> Daemon:
        """Start it and wait until it has told where it listens."""
        process = self.launch()

        def is_told() -> bool:
            assert process.is_running(), f"the broker ended:\n{process.log()}"
            try:
                return bool(self.card["pid"] == self.pid)
            except FileNotFoundError:  # not there yet, or a killed predecessor's is just being taken away
                return False

        wait_for("broker.json", is_told)
        self.listen |= self.card["listeners"]
        return self

    @property
    def pid(self) -> int:
        return self.process.pid

    def address(self, name: str) -> str:
        return self.listen[name]

    def place(self, name: str) -> tuple[str, int]:
        """Where a plain socket connects."""
        return "127.0.0.1", int(self.listen[name].rpartition(":")[2])

    def ask(self, op: str, **args: object) -> Any:
        return ask(self.data, op, **args)

    def lines(self, event: str = "") -> list[dict[str, Any]]:
        """What it logged, all of it or one kind of line; everything must be JSON, for nobody reads it on a terminal."""
        lines = [json.loads(line) for line in self.process.log().splitlines()]
        return [line for line in lines if not event or line["event"] == event]

    def wait_line(self, event: str) -> dict[str, Any]:
        found: list[dict[str, Any]] = wait_for(f"the log line {event!r}", lambda: self.lines(event))
        return found[-1]

    def facts(self, name: str = "") -> list[dict[str, Any]]:
        """What its journal contains, all or one kind of fact, in order, each with the broker's time of it."""
        facts: list[dict[str, Any]] = []
        for block in JournalReader(str(self.data / "journal")).read(0):
            facts += [{**fact, "time_ns": block.time_ns} for fact in decode_block(block.records)]
        return [fact for fact in facts if not name or fact["fact"] == name]

    def facts_of(self, client_id: bytes) -> list[dict[str, Any]]:
        """Those of one message."""
        facts = self.facts()
        (number,) = {fact["message_no"] for fact in facts if fact.get("client_id") == client_id.decode()}
        return [fact for fact in facts if fact.get("message_no") == number]

    def memory_size(self) -> int:
        """Resident bytes."""
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def send_signal(self, number: int) -> None:
        self.process.process.send_signal(number)

    def kill(self) -> None:
        """kill −9."""
        self.process.kill_group()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.send_signal(signal.SIGTERM)
        return self.exit_code()

    def exit_code(self) -> int:
        return self.process.exit_code(END_S)
