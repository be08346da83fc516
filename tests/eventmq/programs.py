"""The original programs as child processes: each in a group of its own, its output kept in a file for the failing test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

from tests.waiting import wait_for

PROGRAMS = Path(__file__).parent / "site"
END_S = 60.0
ANSWER_S = 20.0


class Program:
    """One running program and everything it has forked."""

    def __init__(self, name: str, command: list[str], env: dict[str, str], log_dir: Path, piped: bool = False) -> None:
        self.name = name
        log_dir.mkdir(parents=True, exist_ok=True)
        self.log_file = log_dir / f"{name}.log"
        pipe = subprocess.PIPE if piped else subprocess.DEVNULL
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(
                command,
                env=env,
                stdin=pipe,
                stdout=subprocess.PIPE if piped else log,
                stderr=log,
                # A session of its own: killing the group reaches the forks, and a terminal's Ctrl-C does not.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def is_running(self) -> bool:
        return self.process.poll() is None

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def kill_alone(self) -> None:
        """kill −9 the main process only: what it forked lives on and keeps its sockets open."""
        self.process.kill()
        self.process.wait(END_S)

    def kill_group(self) -> None:
        """kill −9 the main process and all it forked, as the loss of a machine would."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(END_S)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def exit_code(self, deadline_s: float = END_S) -> int:
        return self.process.wait(deadline_s)


class Client:
    """The client program (site/talk.py): EventMQ's own client library, driven line by line."""

    def __init__(self, program: Program, listeners: dict[str, str]) -> None:
        self.program = program
        self.received: list[list[str]] = []
        self.order("connect", client=listeners["emqp.client"], publish=listeners["emqp.publish"])

    def order(self, do: str, **arguments: Any) -> Any:
        process = self.program.process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
        process.stdin.flush()
        # A client that hangs must fail its test by name, not by the suite's timeout.
        guard = threading.Timer(ANSWER_S, process.kill)
        guard.start()
        line = process.stdout.readline()
        guard.cancel()
        assert line, f"the client program ended or hung on {do!r}:\n{self.program.log()}"
        return json.loads(line)

    def defer(self, func: str, **options: Any) -> str:
        message_id = self.order("defer", func=func, options=options)
        assert isinstance(message_id, str)
        return message_id

    def schedule(self, func: str, **options: Any) -> str:
        message_id = self.order("schedule", func=func, options=options)
        assert isinstance(message_id, str)
        return message_id

    def send(self, command: str, *frames: str) -> str:
        message_id = self.order("send", command=command, frames=frames)
        assert isinstance(message_id, str)
        return message_id

    def look(self, wait_ms: int = 50) -> None:
        """Take what has arrived; wait a moment when there is nothing."""
        while frames := self.order("receive", wait_ms=wait_ms):
            self.received.append(frames)
            wait_ms = 0

    def messages(self, command: str, message_id: str, frames: int) -> list[list[str]]:
        """Every received message of that command and length whose last frame is the id."""
        return [
            message
            for message in self.received
            if message[2] == command and message[-1] == message_id and len(message) == frames
        ]

    def wait_message(self, command: str, message_id: str, frames: int, deadline_s: float) -> list[str]:
        def look() -> list[list[str]]:
            self.look()
            return self.messages(command, message_id, frames)

        return wait_for(f"{command} of {message_id}", look, deadline_s)[0]

    def result(self, message_id: str, deadline_s: float = 15.0) -> Any:
        """The decoded value of the result REPLY: `['', version, REPLY, id, value, request id]`."""
        return json.loads(self.wait_message("REPLY", message_id, 6, deadline_s)[4])

    def wait_handed_over(self, message_id: str, deadline_s: float = 15.0) -> None:
        self.wait_message("REPLY", message_id, 5, deadline_s)

    def wait_kept(self, message_id: str, deadline_s: float = 15.0) -> None:
        self.wait_message("ACK", message_id, 5, deadline_s)
